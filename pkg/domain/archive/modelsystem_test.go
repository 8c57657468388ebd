package archive_test

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// system is the code under test with as much of a store around it as it needs.
// It reads the model's world as its registry, and nothing else of the model.
type system struct {
	registry *model
	stored   []*storedArchive
}

type storedArchive struct {
	*archive.Archive
	events []archive.Event
	id     int
}

func at(seconds int) time.Time { return instant.Add(time.Duration(seconds) * time.Second) }

func (s *system) facts(id identity.UUID, b identity.Binding) identity.Facts {
	var f identity.Facts
	if x, ok := s.registry.sessions[string(id)]; ok {
		f.Session = &identity.Session{
			ID: id, ClientAppID: x.client, OnBehalfOf: x.behalf, AllowedRoutes: x.routes, RefreshExpiresAt: at(x.expires),
			Principal: identity.Principal{ID: x.id, Tenant: x.tenant, Roles: x.roles, Audience: x.audience, Channel: x.where},
		}
		if x.revoked {
			f.Session.RevokedAt = ptr(at(0))
		}
	}
	if x, ok := s.registry.clients[b.ClientAppID]; ok {
		f.Client = &identity.Client{AppID: b.ClientAppID, Name: x.name, AllowedRoutes: x.routes, Enabled: x.on}
	}
	if x, ok := s.registry.routes[b.RouteKey]; ok {
		f.Route = &identity.Route{RouteKey: b.RouteKey, Enabled: x.on, AgentAccess: x.agents, Audience: identity.Audience{
			Enabled: x.policy != nil, Clients: x.policy["clients"], Channels: x.policy["channels"], Tenants: x.policy["tenants"],
			Roles: x.policy["roles"], Principals: x.policy["principals"], Audiences: x.policy["audiences"],
		}}
	}
	return f
}

func (s *system) group(members []archive.Member) archive.Group {
	g := archive.Group{}
	for _, m := range members {
		g[m.SessionID] = s.facts(m.SessionID, m.Binding)
	}
	return g
}

// create returns the code of the refusal, or "" and the archive, new or found.
func (s *system) create(in mCreation, bearer string) (string, *storedArchive) {
	c, err := newCreation(in)
	if err != nil {
		return codeOf(err), nil
	}
	id := identity.UUID(sessionUUID(90_000 + len(s.stored)))
	now := at(s.registry.now)
	asked, err := c.New(id, identity.Bearer{SessionID: identity.UUID(bearer), ClientAppID: s.registry.sessions[bearer].client}, now)
	if err != nil {
		return codeOf(err), nil
	}
	group := s.group(asked.Members)
	if asked.MembershipVersion == archive.CommonBinding { // the others are not even read
		group = archive.Group{asked.CreatorSessionID: group[asked.CreatorSessionID]}
	}
	for _, old := range s.stored {
		if old.CreatorSessionID == asked.CreatorSessionID && old.Binding.RouteKey == asked.Binding.RouteKey && old.ClientArchiveID == asked.ClientArchiveID {
			return codeOf(old.Recreate(asked, group, now)), old
		}
	}
	if err := asked.Enrol(group, now); err != nil {
		return codeOf(err), nil
	}
	s.stored = append(s.stored, &storedArchive{Archive: asked, id: len(s.stored)})
	return "", s.stored[len(s.stored)-1]
}

func newCreation(in mCreation) (archive.Creation, error) {
	if in.v2 {
		return archive.NewCreationV2(archive.FieldsV2{ClientArchiveID: in.archive, ClientConversationID: in.conversation, Members: in.members})
	}
	f := archive.FieldsV1{ClientArchiveID: in.archive, ClientConversationID: in.conversation, Route: in.route, MemberLabels: in.labels}
	for _, m := range in.members {
		f.MemberSessionIDs = append(f.MemberSessionIDs, m.SessionID)
	}
	return archive.NewCreationV1(f)
}

func (s *system) confirm(a *storedArchive, bearer string) string {
	_, err := a.Confirm(identity.UUID(bearer), s.group(a.Members), at(s.registry.now))
	return codeOf(err)
}

func (s *system) append(a *storedArchive, bearer string, fields []archive.Fields) string {
	batch, err := archive.NewBatch(fields)
	if err != nil {
		return codeOf(err)
	}
	now := at(s.registry.now)
	if err := a.MayAppend(identity.UUID(bearer), s.group(a.Members), now); err != nil {
		return codeOf(err)
	}
	fresh, err := a.Append(batch, s.history(a, batch), now)
	a.events = append(a.events, fresh...)
	return codeOf(err)
}

// history holds exactly what archive.History asks for, and nothing beyond the batch.
func (s *system) history(a *storedArchive, batch []archive.Event) archive.History {
	h := archive.History{
		Stored: map[int]archive.Event{}, EventIDs: map[string]int{}, StartedTurns: map[string]bool{},
		Runs: map[identity.UUID]identity.Run{}, LinkedRuns: map[identity.UUID]bool{},
	}
	for _, e := range batch {
		for _, old := range a.events {
			if old.Sequence == e.Sequence {
				h.Stored[old.Sequence] = old
			}
			if old.EventID == e.EventID {
				h.EventIDs[old.EventID] = old.Sequence
			}
			if old.Kind == archive.TurnStart && old.ClientTurnID == e.ClientTurnID {
				h.StartedTurns[e.ClientTurnID] = true
			}
		}
		if r, exists := s.registry.runs[string(e.RunID)]; exists {
			h.Runs[e.RunID] = identity.Run{
				RunID: e.RunID, SessionID: identity.UUID(r.session), Binding: binding(r.client, r.route), ThreadID: r.thread,
				ClientConversationID: r.conversation, ClientTurnID: r.turn,
			}
		}
		for _, other := range s.stored {
			if e.Kind == archive.RunLink && slices.ContainsFunc(other.events, func(old archive.Event) bool { return old.RunID == e.RunID }) {
				h.LinkedRuns[e.RunID] = true
			}
		}
	}
	return h
}

func codeOf(err error) string {
	if code := refusal.CodeOf(err); code != "" || err == nil {
		return string(code)
	}
	return "no refusal: " + err.Error()
}

// view is what both sides say of an archive.
type view struct {
	State, Last, Current                 string
	Confirmed, Sequence, Messages, Turns int
	Text, Commits                        int64
	Created, Updated                     time.Time
	Header, Members                      string
	Events                               []mEvent
}

func (a *storedArchive) view() view {
	v := view{
		State: string(a.State), Last: string(a.LastTurnStatus), Current: a.CurrentTurnID,
		Confirmed: a.ConfirmedCount, Sequence: a.LastSequence, Messages: a.MessageCount, Turns: a.TurnCount,
		Text: a.TextBytes, Commits: a.StreamVersion, Created: a.CreatedAt, Updated: a.UpdatedAt,
		Header: fmt.Sprint(a.CreatorSessionID, a.Binding.RouteKey, a.ClientConversationID, a.MembershipVersion),
	}
	for _, m := range a.Members {
		v.Members += fmt.Sprintf("%s %s %s %q %q %q", m.SessionID, m.Binding.ClientAppID, m.Binding.RouteKey, m.Label, m.ClientName, m.Display())
		if c := m.Confirmation; c != nil {
			p := c.Principal
			v.Members += mSession{
				client: m.Binding.ClientAppID, behalf: c.OnBehalfOf, id: p.ID, tenant: p.Tenant, audience: p.Audience, where: p.Channel, roles: p.Roles,
			}.identity(string(m.SessionID)) + c.At.String()
		}
		v.Members += "\n"
	}
	for _, e := range a.events {
		v.Events = append(v.Events, mEvent{
			e.Sequence, e.EventID, e.ClientTurnID, string(e.Kind), e.Content, string(e.Status),
			string(e.RunID), string(e.MemberSessionID), e.ThreadID, int(e.CreatedAt.Sub(instant) / time.Second),
		})
	}
	return v
}

func (a *mArchive) view() view {
	v := view{
		State: "ready", Current: running(a.events), Sequence: len(a.events), Text: a.text(a.events), Commits: a.commits,
		Created: at(a.created), Updated: at(a.updated), Events: a.events,
	}
	version := archive.CommonBinding
	if a.v2 {
		version = archive.MemberBindings
	}
	for _, m := range a.members {
		if m.id == a.creator {
			v.Header = fmt.Sprint(a.creator, m.route, a.conversation, version)
		}
		display := m.label
		if display == "" {
			display = m.id
		}
		v.Members += fmt.Sprintf("%s %s %s %q %q %q", m.id, m.client, m.route, m.label, m.name, display)
		if m.confirmed {
			v.Confirmed++
			v.Members += m.frozen + at(m.at).String()
		} else {
			v.State = "enrolling"
		}
		v.Members += "\n"
	}
	for _, e := range a.events {
		switch e.kind {
		case "turn_start":
			v.Turns, v.Last = v.Turns+1, "running"
		case "turn_end":
			v.Last = e.status
		case "user_message", "assistant_message":
			v.Messages++
		}
	}
	return v
}

// difference returns how the two sides differ, or "".
func difference(s *system, m *model) string {
	if len(s.stored) != len(m.archives) {
		return fmt.Sprintf("%d archives, want %d", len(s.stored), len(m.archives))
	}
	for i, a := range s.stored {
		if got, want := a.view(), m.archives[i].view(); !reflect.DeepEqual(got, want) {
			return fmt.Sprintf("archive %d:\ngot  %+v\nwant %+v", i, got, want)
		}
	}
	return ""
}
