package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/runv1"
)

// partTraceEvents bounds the trace events of one part of a run's snapshot; batchBytes
// bounds their metadata.
const partTraceEvents = 500

const (
	hasTable = `select to_regclass($1) is not null`
	// completionsTable comes with migration 061; before it a run has one version, no
	// completion and no trace, and may not be locked.
	completionsTable = `bz_agent_run_completions`

	runForSnapshot   = `select ` + runColumns + `, stream_version from bz_agent_client_runs where run_id = $1`
	lockRun          = ` for share`
	endOfTrace       = `select coalesce(max(position), 0), max(created_at) from bz_agent_run_trace_events where run_id = $1`
	traceForSnapshot = `
		select ` + traceColumns + ` from (
			select *, sum(octet_length(metadata::text)) over (order by position) - octet_length(metadata::text) as before
			from bz_agent_run_trace_events
			where run_id = $1 and position > $2 and position <= $3
			order by position limit $4
		) e where before < $5 order by e.position`
)

// runHead is what a run's stream was at one version.
type runHead struct {
	run        runv1.Run
	completion *runv1.Completed
	last       int // the position at which the trace ends
	version    int64
	at         time.Time // of the latest of it
}

func (s *store) runSnapshot(ctx context.Context, id string, replace bool, trace string, emit func([]cloudevent.Event) error) error {
	h, err := s.runHead(ctx, id)
	if err != nil {
		return err
	}
	after := 0
	for part := 1; ; part++ {
		var events []runv1.TraceEvent
		if h.last > 0 {
			if events, err = s.tracePart(ctx, id, after, h.last); err != nil {
				return err
			}
			if len(events) == 0 || events[0].Position != after+1 {
				return errBroken
			}
			after = events[len(events)-1].Position
		}
		m := runv1.Snapshot{Run: h.run, Completion: h.completion, Events: events, Last: after == h.last, Replace: replace}
		data, err := runv1.Marshal(m)
		if err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		e := cloudevent.New(runv1.StreamKind, id, h.version, part, runv1.TypeSnapshot, h.at, data)
		e.TraceParent = trace
		if err := emit([]cloudevent.Event{e}); err != nil || m.Last {
			return err
		}
	}
}

// runHead reads a run with its completion and the end of its trace under the stream's lock.
func (s *store) runHead(ctx context.Context, id string) (h runHead, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var migrated bool
		if err := tx.QueryRow(ctx, hasTable, completionsTable).Scan(&migrated); err != nil {
			return err
		}
		query := runForSnapshot
		if migrated {
			query += lockRun
		}
		if err := tx.QueryRow(ctx, query, id).Scan(append(runDest(&h.run), &h.version)...); err != nil {
			return err
		}
		h.run.CreatedAt = h.run.CreatedAt.UTC()
		h.at = h.run.CreatedAt
		if !migrated {
			return nil
		}
		return h.readRest(ctx, tx, id)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoStream
	}
	return h, err
}

// readRest reads, by statements later than the lock, what the run's later messages said.
func (h *runHead) readRest(ctx context.Context, tx pgx.Tx, id string) error {
	f := newFacts()
	rows, err := tx.Query(ctx, completionsByID, []string{id})
	if err != nil {
		return err
	}
	if err := f.scanCompletions(rows); err != nil {
		return err
	}
	if c, ok := f.completions[id]; ok {
		h.completion = &c
		h.at = latest(h.at, c.CompletedAt)
	}
	var traced *time.Time
	if err := tx.QueryRow(ctx, endOfTrace, id).Scan(&h.last, &traced); err != nil {
		return err
	}
	if traced != nil {
		h.at = latest(h.at, traced.UTC())
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (s *store) tracePart(ctx context.Context, id string, after, last int) ([]runv1.TraceEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, traceForSnapshot, id, after, last, partTraceEvents, batchBytes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (runv1.TraceEvent, error) { return scanTraceEvent(row) })
}
