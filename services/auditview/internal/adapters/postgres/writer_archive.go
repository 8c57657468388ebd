package postgres

import (
	"time"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/services/auditview/internal/readmodel"
)

func (w *writer) replaced(replaced []readmodel.Replaced) {
	if len(replaced) == 0 {
		return
	}
	var ids column[string]
	var keep column[int]
	for _, r := range replaced {
		ids.add(r.ConversationID)
		keep.add(r.KeepEvents)
	}
	w.batch.Queue(sqlDeleteEventsAbove, ids, keep)
	w.batch.Queue(`delete from archive_members where conversation_id = any($1::text[]::uuid[])`, ids)
	w.batch.Queue(`delete from run_links where conversation_id = any($1::text[]::uuid[])`, ids)
}

// finishReplaced makes the links of replaced archives from their events, and checks that
// the parts of each snapshot were all there.
func (w *writer) finishReplaced(replaced []readmodel.Replaced) {
	if len(replaced) == 0 {
		return
	}
	var ids column[string]
	var last column[int]
	for _, r := range replaced {
		ids.add(r.ConversationID)
		last.add(r.LastSequence)
	}
	w.batch.Queue(sqlLinksOfEvents, ids)
	w.batch.Queue(sqlIncomplete, ids, last).QueryRow(complete)
}

func (w *writer) headers(sql string, headers []archivev1.Header) {
	if len(headers) == 0 {
		return
	}
	var (
		id, archive, conversation, creator, client, route column[string]
		membership, members                               column[int]
		created                                           column[time.Time]
		s                                                 stateColumns
	)
	for _, h := range headers {
		id.add(h.ConversationID)
		archive.add(h.ClientArchiveID)
		conversation.add(h.ClientConversationID)
		creator.add(h.CreatorSessionID)
		client.add(h.ClientAppID)
		route.add(h.RouteKey)
		membership.add(h.MembershipVersion)
		members.add(h.MemberCount)
		created.add(h.CreatedAt)
		s.add(h.State)
	}
	w.batch.Queue(sql, append([]any{id, archive, conversation, creator, client, route, membership, members, created}, s.args()...)...)
}

func (w *writer) states(states []readmodel.StateChange) {
	if len(states) == 0 {
		return
	}
	var id column[string]
	var before column[int]
	var s stateColumns
	for _, c := range states {
		id.add(c.ConversationID)
		before.add(c.Before)
		s.add(c.State)
	}
	w.exactly(len(states), sqlUpdateStates, append([]any{id, before}, s.args()...)...)
}

// stateColumns are the columns of archives' states.
type stateColumns struct {
	state                               column[string]
	confirmed, sequence, messages, turn column[int]
	status                              column[*string]
	text                                column[int64]
	updated                             column[time.Time]
}

func (c *stateColumns) add(s archivev1.State) {
	c.state.add(s.State)
	c.confirmed.add(s.ConfirmedCount)
	c.sequence.add(s.LastSequence)
	c.messages.add(s.MessageCount)
	c.turn.add(s.TurnCount)
	c.status.add(s.LastTurnStatus)
	c.text.add(s.TextBytes)
	c.updated.add(s.UpdatedAt)
}

func (c *stateColumns) args() []any {
	return []any{c.state, c.confirmed, c.sequence, c.messages, c.turn, c.status, c.text, c.updated}
}

func (w *writer) members(members []readmodel.MemberChange) {
	if len(members) > 0 {
		w.batch.Queue(sqlInsertMembers, memberArgs(members)...)
	}
}

func (w *writer) confirmed(members []readmodel.MemberChange) {
	if len(members) > 0 {
		w.exactly(len(members), sqlConfirmMembers, memberArgs(members)...)
	}
}

func memberArgs(members []readmodel.MemberChange) []any {
	var (
		id, session, label                         column[string]
		client, route, name, principal, onBehalfOf column[*string]
		confirmed                                  column[*time.Time]
	)
	for _, c := range members {
		m := c.Member
		id.add(c.ConversationID)
		session.add(m.SessionID)
		label.add(m.DisplayLabel)
		bound, isConfirmed := m.ClientAppID != "", m.ConfirmedAt != nil
		client.add(when(bound, m.ClientAppID))
		route.add(when(bound, m.RouteKey))
		name.add(when(bound, m.ClientName))
		confirmed.add(m.ConfirmedAt)
		principal.add(when(isConfirmed, string(m.Principal)))
		onBehalfOf.add(when(isConfirmed, m.OnBehalfOf))
	}
	return []any{id, session, label, client, route, name, confirmed, principal, onBehalfOf}
}

func (w *writer) events(sql string, events []readmodel.EventChange) {
	if len(events) == 0 {
		return
	}
	var (
		id, event, turn, kind        column[string]
		sequence                     column[int]
		content, status, run, member column[*string]
		thread                       column[*int64]
		created                      column[time.Time]
	)
	for _, c := range events {
		e := c.Event
		id.add(c.ConversationID)
		sequence.add(e.Sequence)
		event.add(e.EventID)
		turn.add(e.ClientTurnID)
		kind.add(e.Kind)
		content.add(when(e.Content != "", e.Content))
		status.add(when(e.Status != "", e.Status))
		run.add(when(e.RunID != "", e.RunID))
		member.add(when(e.MemberSessionID != "", e.MemberSessionID))
		thread.add(when(e.ThreadID != 0, e.ThreadID))
		created.add(e.CreatedAt)
	}
	w.exactly(len(events), sql, id, sequence, event, turn, kind, content, status, run, member, thread, created)
}

func (w *writer) links(links []readmodel.EventChange) {
	if len(links) == 0 {
		return
	}
	var run, id, member, turn column[string]
	var sequence column[int]
	var thread column[int64]
	for _, c := range links {
		run.add(c.Event.RunID)
		id.add(c.ConversationID)
		sequence.add(c.Event.Sequence)
		member.add(c.Event.MemberSessionID)
		turn.add(c.Event.ClientTurnID)
		thread.add(c.Event.ThreadID)
	}
	w.batch.Queue(sqlInsertLinks, run, id, sequence, member, turn, thread)
}
