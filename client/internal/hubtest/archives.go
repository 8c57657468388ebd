package hubtest

import (
	"net/http"
	"slices"
)

// Event is a stored event.
type Event struct {
	EventID         string `json:"event_id"`
	Sequence        int    `json:"sequence"`
	ClientTurnID    string `json:"client_turn_id"`
	Kind            string `json:"kind"`
	Content         string `json:"content"`
	Status          string `json:"status"`
	RunID           string `json:"run_id"`
	MemberSessionID string `json:"member_session_id"`
}

// archive is one conversation.
type archive struct {
	id, creator  string
	body         string // of the creation
	client       string // client_archive_id
	conversation string
	members      []string
	confirmed    map[string]bool
	events       []Event
}

// Transcript returns the events of the archive with a client_archive_id.
func (h *Hub) Transcript(clientArchiveID string) []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.archives {
		if a.client == clientArchiveID {
			return slices.Clone(a.events)
		}
	}
	return nil
}

// Unconfirm forgets that the members of all archives but their creators are confirmed, as
// a hub does that was restored from an older copy.
func (h *Hub) Unconfirm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.archives {
		a.confirmed = map[string]bool{a.creator: true}
	}
}

func (h *Hub) archiveRoute(s *session, parts []string, body []byte) reply {
	switch {
	case len(parts) == 0:
		return h.create(s, body)
	case len(parts) == 1 && parts[0] == "capabilities":
		return ok(map[string]any{
			"schema":                "bailing.agent-conversation-audit-capabilities.v1",
			"cross_binding_members": h.cross, "member_bindings": "session-client-route.v1",
		})
	case len(parts) != 2:
		return refuse(http.StatusNotFound, "not_found")
	}
	a := h.archives[parts[0]]
	if a == nil || !slices.Contains(a.members, s.id) {
		return refuse(http.StatusNotFound, "conversation_audit_not_found")
	}
	for _, id := range a.members {
		if h.sessions[id].revoked {
			return refuse(http.StatusForbidden, "conversation_audit_authorization_invalid")
		}
	}
	switch parts[1] {
	case "confirm":
		a.confirmed[s.id] = true
		return ok(a.header())
	case "events":
		return h.append(s, a, body)
	}
	return refuse(http.StatusNotFound, "not_found")
}

func (h *Hub) create(s *session, body []byte) reply {
	var c struct {
		Schema               string            `json:"schema"`
		ClientArchiveID      string            `json:"client_archive_id"`
		ClientConversationID string            `json:"client_conversation_id"`
		Route                string            `json:"route"`
		MemberSessionIDs     []string          `json:"member_session_ids"`
		MemberLabels         map[string]string `json:"member_labels"`
		Members              []struct {
			SessionID   string `json:"session_id"`
			ClientAppID string `json:"client_app_id"`
			Route       string `json:"route"`
			Label       string `json:"label"`
		} `json:"members"`
	}
	if !decode(body, &c) || (c.Schema == "") != (c.Route != "") {
		return refuse(http.StatusBadRequest, "invalid_request")
	}
	members := c.MemberSessionIDs
	for _, m := range c.Members {
		members = append(members, m.SessionID)
		if known := h.sessions[m.SessionID]; known == nil || known.client != m.ClientAppID || known.revoked {
			return refuse(http.StatusForbidden, "conversation_audit_authorization_invalid")
		}
	}
	if !slices.Contains(members, s.id) {
		return refuse(http.StatusNotFound, "conversation_audit_not_found")
	}
	key := s.id + c.ClientArchiveID
	if id := h.created[key]; id != "" {
		if a := h.archives[id]; a.body == string(body) {
			return ok(a.header())
		}
		return refuse(http.StatusConflict, "conversation_audit_conflict")
	}
	a := &archive{
		id: h.uuid(), creator: s.id, body: string(body), client: c.ClientArchiveID, conversation: c.ClientConversationID,
		members: members, confirmed: map[string]bool{s.id: true},
	}
	h.created[key], h.archives[a.id] = a.id, a
	return ok(a.header())
}

func (a *archive) header() map[string]any {
	state := "enrolling"
	if len(a.confirmed) == len(a.members) {
		state = "ready"
	}
	return map[string]any{
		"schema": "bailing.agent-conversation-audit.v1", "conversation_id": a.id, "client_archive_id": a.client,
		"client_conversation_id": a.conversation, "state": state, "member_count": len(a.members), "last_sequence": len(a.events),
	}
}

// append keeps the rules of sequences, ids and repetitions, and the limits of a batch.
func (h *Hub) append(s *session, a *archive, body []byte) reply {
	var batch struct {
		Events []Event `json:"events"`
	}
	text := 0
	if !decode(body, &batch) || len(batch.Events) == 0 || len(batch.Events) > 50 {
		return refuse(http.StatusBadRequest, "invalid_request")
	}
	for _, e := range batch.Events {
		text += len(e.Content)
	}
	switch {
	case text > 256<<10 || len(body) > 2<<20:
		return refuse(http.StatusRequestEntityTooLarge, "conversation_audit_limit")
	case s.id != a.creator:
		return refuse(http.StatusNotFound, "conversation_audit_not_found")
	case len(a.confirmed) < len(a.members):
		return refuse(http.StatusConflict, "conversation_audit_not_ready")
	}
	events := slices.Clone(a.events)
	for _, e := range batch.Events {
		known := slices.IndexFunc(events, func(o Event) bool { return o.EventID == e.EventID })
		switch {
		case known >= 0 && events[known] == e:
		case known < 0 && e.Sequence == len(events)+1:
			events = append(events, e)
		default:
			return refuse(http.StatusConflict, "conversation_audit_conflict")
		}
	}
	a.events = events
	return ok(map[string]any{
		"schema": "bailing.agent-conversation-audit-ack.v1", "conversation_id": a.id, "last_sequence": len(a.events),
	})
}

// ArchiveCount returns how many archives there are.
func (h *Hub) ArchiveCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.archives)
}
