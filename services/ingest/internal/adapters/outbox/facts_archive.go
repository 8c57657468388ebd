package outbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/contracts/archivev1"
)

// The bindings of migration 058 are looked up by name: the relay works before,
// after and while the migration is applied.
const (
	headerColumns = `a.conversation_id::text, a.client_archive_id::text, a.client_conversation_id, a.creator_session_id::text,
		a.client_app_id, a.route_key, coalesce((to_jsonb(a) ->> 'membership_version')::int, 1), a.member_count, a.created_at`
	memberColumns = `m.conversation_id::text, m.session_id::text, coalesce(m.label, m.session_id::text),
		coalesce(to_jsonb(m) ->> 'client_app_id', ''), coalesce(to_jsonb(m) ->> 'route_key', ''),
		coalesce(to_jsonb(m) ->> 'client_name', ''), m.confirmed_at, m.principal::text, coalesce(m.on_behalf_of, '')`
	eventColumns = `e.sequence, e.event_id, e.client_turn_id, e.kind, coalesce(e.content, ''), coalesce(e.status, ''),
		coalesce(e.run_id::text, ''), coalesce(e.member_session_id::text, ''), coalesce(e.thread_id, 0), e.created_at`
)

const (
	headersByID = `select ` + headerColumns + ` from bz_agent_conversation_audits a where a.conversation_id = any($1::uuid[])`
	membersByID = `select ` + memberColumns + ` from bz_agent_conversation_members m
		where m.conversation_id = any($1::uuid[]) order by m.conversation_id, m.session_id`
	// The lateral join reads each range by the primary key.
	eventsByRange = `
		select r.n, ` + eventColumns + `
		from unnest($1::int[], $2::uuid[], $3::int[], $4::int[]) as r (n, id, low, high)
		cross join lateral (
			select * from bz_agent_conversation_events
			where conversation_id = r.id and sequence between r.low and r.high
		) e order by r.n, e.sequence`
)

// archiveNames are what rows name of archives.
type archiveNames struct {
	ids         []string
	ranges      []string
	indexes     []int // the rows of ranges
	lows, highs []int
}

func (n *archiveNames) add(i int, r row) {
	if r.eventType != archivev1.TypeEventsAppended {
		n.ids = append(n.ids, r.streamID)
		return
	}
	if p, err := parsePayload[ArchivePayload](r); err == nil && p.inRange() {
		n.indexes, n.ranges = append(n.indexes, i), append(n.ranges, r.streamID)
		n.lows, n.highs = append(n.lows, p.FirstSequence), append(n.highs, p.State.LastSequence)
	}
}

func (n *archiveNames) queue(b *pgx.Batch, f *facts) {
	if len(n.ids) > 0 {
		b.Queue(headersByID, n.ids).Query(f.scanHeaders)
		b.Queue(membersByID, n.ids).Query(f.scanMembers)
	}
	if len(n.ranges) > 0 {
		b.Queue(eventsByRange, n.indexes, n.ranges, n.lows, n.highs).Query(f.scanEvents)
	}
}

// archiveData makes the data of a row about an archive.
func (f *facts) archiveData(i int, r row) (jsontext.Value, error) {
	p, err := parsePayload[ArchivePayload](r)
	if err != nil {
		return nil, err
	}
	switch r.eventType {
	case archivev1.TypeCreated:
		header := f.headers[r.streamID]
		header.State = p.State
		return archivev1.Marshal(archivev1.Created{Header: header, Members: asCreated(f.members[r.streamID], header.CreatorSessionID)})
	case archivev1.TypeMemberConfirmed:
		for _, m := range f.members[r.streamID] {
			if m.SessionID == p.Member {
				return archivev1.Marshal(archivev1.MemberConfirmed{State: p.State, Member: m})
			}
		}
		return nil, errors.New("the member is not stored")
	default:
		if len(f.events[i]) != p.State.LastSequence-p.FirstSequence+1 {
			return nil, errors.New("the events are not all stored")
		}
		return archivev1.Marshal(archivev1.EventsAppended{State: p.State, Events: f.events[i]})
	}
}

// asCreated returns the members as the creation left them: only the creator
// confirmed, whoever has confirmed since.
func asCreated(members []archivev1.Member, creator string) []archivev1.Member {
	out := make([]archivev1.Member, len(members))
	for i, m := range members {
		if m.SessionID != creator {
			m.ConfirmedAt, m.Principal, m.OnBehalfOf = nil, nil, ""
		}
		out[i] = m
	}
	return out
}

func (f *facts) scanHeaders(rows pgx.Rows) error {
	for rows.Next() {
		var h archivev1.Header
		if err := rows.Scan(headerDest(&h)...); err != nil {
			return fmt.Errorf("read a header: %w", err)
		}
		h.CreatedAt = h.CreatedAt.UTC()
		f.headers[h.ConversationID] = h
	}
	return rows.Err()
}

func headerDest(h *archivev1.Header) []any {
	return []any{
		&h.ConversationID, &h.ClientArchiveID, &h.ClientConversationID, &h.CreatorSessionID,
		&h.ClientAppID, &h.RouteKey, &h.MembershipVersion, &h.MemberCount, &h.CreatedAt,
	}
}

func (f *facts) scanMembers(rows pgx.Rows) error {
	for rows.Next() {
		var m archivev1.Member
		var id string
		var confirmedAt *time.Time
		var principal *string
		if err := rows.Scan(&id, &m.SessionID, &m.DisplayLabel, &m.ClientAppID, &m.RouteKey, &m.ClientName,
			&confirmedAt, &principal, &m.OnBehalfOf); err != nil {
			return fmt.Errorf("read a member: %w", err)
		}
		if confirmedAt != nil && principal != nil {
			at := confirmedAt.UTC()
			m.ConfirmedAt, m.Principal = &at, jsontext.Value(*principal)
		}
		f.members[id] = append(f.members[id], m)
	}
	return rows.Err()
}

func (f *facts) scanEvents(rows pgx.Rows) error {
	for rows.Next() {
		var n int
		var e archivev1.Event
		if err := rows.Scan(append([]any{&n}, eventDest(&e)...)...); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		e.CreatedAt = e.CreatedAt.UTC()
		f.events[n] = append(f.events[n], e)
	}
	return rows.Err()
}

func eventDest(e *archivev1.Event) []any {
	return []any{
		&e.Sequence, &e.EventID, &e.ClientTurnID, &e.Kind, &e.Content, &e.Status,
		&e.RunID, &e.MemberSessionID, &e.ThreadID, &e.CreatedAt,
	}
}
