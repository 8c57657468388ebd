package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/cloudevent"
)

// partEvents bounds the events of one part of an archive's snapshot.
const partEvents = 1000

const (
	stateForSnapshot = `
		select ` + headerColumns + `, a.state, a.confirmed_count, a.last_sequence, a.message_count, a.turn_count,
			a.last_turn_status, a.text_bytes, a.updated_at, a.stream_version
		from bz_agent_conversation_audits a where a.conversation_id = $1 for share`
	// A part ends before its text exceeds $5 bytes, but has one event at least.
	eventsForSnapshot = `
		select ` + eventColumns + ` from (
			select *, sum(octet_length(content)) over (order by sequence) - coalesce(octet_length(content), 0) as before
			from bz_agent_conversation_events
			where conversation_id = $1 and sequence > $2 and sequence <= $3
			order by sequence limit $4
		) e where coalesce(before, 0) < $5 order by e.sequence`
)

func (s *store) archiveSnapshot(ctx context.Context, id string, replace bool, trace string, emit func([]cloudevent.Event) error) error {
	h, members, version, err := s.header(ctx, id)
	if err != nil {
		return err
	}
	after := 0
	for part := 1; ; part++ {
		events, err := s.part(ctx, id, after, h.State.LastSequence)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			after = events[len(events)-1].Sequence
		} else if after < h.State.LastSequence {
			return errBroken
		}
		data, err := archivev1.Marshal(archivev1.Snapshot{
			Header: h, Members: members, Events: events, Last: after == h.State.LastSequence, Replace: replace,
		})
		if err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		if err := emit([]cloudevent.Event{snapshotEvent(h, version, part, trace, data)}); err != nil {
			return err
		}
		if after == h.State.LastSequence {
			return nil
		}
	}
}

func snapshotEvent(h archivev1.Header, version int64, part int, trace string, data jsontext.Value) cloudevent.Event {
	e := cloudevent.New(archivev1.StreamKind, h.ConversationID, version, part, archivev1.TypeSnapshot, h.State.UpdatedAt, data)
	e.TraceParent = trace
	return e
}

// header reads an archive's header, members and version under the stream's lock.
func (s *store) header(ctx context.Context, id string) (h archivev1.Header, members []archivev1.Member, version int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	f := facts{members: map[string][]archivev1.Member{}}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		st := &h.State
		dest := append(headerDest(&h), &st.State, &st.ConfirmedCount, &st.LastSequence, &st.MessageCount, &st.TurnCount,
			&st.LastTurnStatus, &st.TextBytes, &st.UpdatedAt, &version)
		if err := tx.QueryRow(ctx, stateForSnapshot, id).Scan(dest...); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, membersByID, []string{id})
		if err != nil {
			return err
		}
		return f.scanMembers(rows)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoStream
	}
	h.CreatedAt, h.State.UpdatedAt = h.CreatedAt.UTC(), h.State.UpdatedAt.UTC()
	return h, f.members[id], version, err
}

func (s *store) part(ctx context.Context, id string, after, last int) ([]archivev1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, eventsForSnapshot, id, after, last, partEvents, batchBytes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (archivev1.Event, error) {
		var e archivev1.Event
		err := row.Scan(eventDest(&e)...)
		e.CreatedAt = e.CreatedAt.UTC()
		return e, err
	})
}
