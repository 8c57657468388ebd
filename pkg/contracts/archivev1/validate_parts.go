package archivev1

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

func (c *checker) header(h Header) {
	c.uuid(h.ConversationID, "header.conversation_id")
	c.uuid(h.ClientArchiveID, "header.client_archive_id")
	c.identifier(h.ClientConversationID, "header.client_conversation_id")
	c.uuid(h.CreatorSessionID, "header.creator_session_id")
	c.key(h.ClientAppID, "header.client_app_id")
	c.key(h.RouteKey, "header.route_key")
	c.within(int64(h.MembershipVersion), 1, 2, "header.membership_version")
	c.within(int64(h.MemberCount), 1, MaxMembers, "header.member_count")
	c.time(h.CreatedAt, "header.created_at")
	c.state(h.State, "header.state")
	c.check(h.State.ConfirmedCount <= h.MemberCount, "header.state.confirmed_count", "must not exceed member_count")
	ready := h.State.ConfirmedCount == h.MemberCount
	c.check(ready == (h.State.State == StateReady), "header.state.state", "must be ready exactly when all are confirmed")
}

func (c *checker) state(s State, at string) {
	c.check(s.State == StateEnrolling || s.State == StateReady, at+".state", "must be enrolling or ready")
	c.within(int64(s.ConfirmedCount), 1, MaxMembers, at+".confirmed_count")
	c.within(int64(s.LastSequence), 0, MaxEvents, at+".last_sequence")
	c.within(int64(s.MessageCount), 0, int64(s.LastSequence), at+".message_count")
	c.within(int64(s.TurnCount), 0, int64(s.LastSequence), at+".turn_count")
	c.check(s.MessageCount+s.TurnCount <= s.LastSequence, at+".last_sequence", "must cover messages and turns")
	c.within(s.TextBytes, 0, MaxTextBytes, at+".text_bytes")
	c.check((s.TextBytes > 0) == (s.MessageCount > 0), at+".text_bytes", "must agree with message_count")
	c.check((s.TurnCount > 0) == (s.LastSequence > 0), at+".turn_count", "must agree with last_sequence")
	c.check((s.TurnCount > 0) == (s.LastTurnStatus != nil), at+".last_turn_status", "must be null exactly before the first turn")
	if s.LastTurnStatus != nil {
		known := []string{StatusRunning, StatusCompleted, StatusFailed, StatusCancelled}
		c.check(slices.Contains(known, *s.LastTurnStatus), at+".last_turn_status", "must be a turn's status")
	}
	c.check(s.State == StateReady || s.LastSequence == 0, at+".last_sequence", "must be 0 while enrolling")
	c.time(s.UpdatedAt, at+".updated_at")
}

func (c *checker) members(h Header, members []Member) {
	c.check(len(members) == h.MemberCount, "members", "must be member_count many")
	seen := make(map[string]bool, len(members))
	confirmed := 0
	for i, m := range members {
		at := fmt.Sprintf("members[%d]", i)
		c.member(m, at)
		c.check(!seen[m.SessionID], at+".session_id", "must occur once")
		seen[m.SessionID] = true
		if m.ConfirmedAt != nil {
			confirmed++
		}
		c.check((h.MembershipVersion == 2) == (m.ClientAppID != ""), at+".client_app_id", "must be present exactly in version 2")
		if h.MembershipVersion == 2 && m.SessionID == h.CreatorSessionID {
			same := m.ClientAppID == h.ClientAppID && m.RouteKey == h.RouteKey
			c.check(same, at, "must have the header's binding")
		}
	}
	c.check(confirmed == h.State.ConfirmedCount, "members", "must have confirmed_count confirmed ones")
	c.check(seen[h.CreatorSessionID], "members", "must have the creator")
}

func (c *checker) member(m Member, at string) {
	c.uuid(m.SessionID, at+".session_id")
	c.text(m.DisplayLabel, MaxLabelUnits, at+".display_label")
	if m.ClientAppID != "" || m.RouteKey != "" || m.ClientName != "" {
		c.key(m.ClientAppID, at+".client_app_id")
		c.key(m.RouteKey, at+".route_key")
	}
	if m.ConfirmedAt == nil {
		c.check(m.Principal == nil && m.OnBehalfOf == "", at+".principal", "must be absent before confirmation")
		return
	}
	c.time(*m.ConfirmedAt, at+".confirmed_at")
	c.check(compactObject(m.Principal), at+".principal", "must be a JSON object without white space")
}

// compactObject reports whether v is an object that passes through an encoder unchanged.
func compactObject(v jsontext.Value) bool {
	if v.Kind() != '{' {
		return false
	}
	compact := v.Clone()
	return compact.Compact() == nil && bytes.Equal(compact, v) && v.IsValid()
}

func (c *checker) events(events []Event) {
	seen := make(map[string]bool, len(events))
	for i, e := range events {
		c.number = i + 1
		c.event(e)
		c.check(!seen[e.EventID], ".event_id", "must occur once")
		seen[e.EventID] = true
		c.check(i == 0 || e.Sequence == events[i-1].Sequence+1, ".sequence", "must follow without a gap")
	}
	c.number = 0
}

func (c *checker) event(e Event) {
	c.identifier(e.EventID, ".event_id")
	c.within(int64(e.Sequence), 1, MaxEvents, ".sequence")
	c.identifier(e.ClientTurnID, ".client_turn_id")
	c.time(e.CreatedAt, ".created_at")

	message := e.Kind == KindUserMessage || e.Kind == KindAssistantMessage
	link, end := e.Kind == KindRunLink, e.Kind == KindTurnEnd
	c.check(message || link || end || e.Kind == KindTurnStart, ".kind", "must be a kind of event")
	if message {
		c.text(e.Content, MaxContentUnits, ".content")
	} else {
		c.check(e.Content == "", ".content", "must be absent for this kind")
	}
	if end {
		ended := e.Status == StatusCompleted || e.Status == StatusFailed || e.Status == StatusCancelled
		c.check(ended, ".status", "must be how a turn ends")
	} else {
		c.check(e.Status == "", ".status", "must be absent for this kind")
	}
	if link {
		c.uuid(e.RunID, ".run_id")
		c.uuid(e.MemberSessionID, ".member_session_id")
		c.within(e.ThreadID, 1, MaxThreadID, ".thread_id")
	} else {
		absent := e.RunID == "" && e.MemberSessionID == "" && e.ThreadID == 0
		c.check(absent, ".run_id", "must be absent for this kind")
	}
}
