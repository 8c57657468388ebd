package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/domain/trace"
)

const (
	// partRows bounds the rows of one part of an execution's snapshot; batchBytes bounds
	// what they hold, each counted with rowBytes more. One row may be larger.
	partRows = 1000
	rowBytes = 512
)

const (
	executionForSnapshot = `select ` + executionColumns + `, last_position, stream_version from bz_executions where execution_id = $1 for share`
	endOfAttempts        = `select coalesce(max(position), 0) from bz_execution_callback_attempts where execution_id = $1`

	executionEventsForSnapshot = `
		select ` + executionEventColumns + ` from (
			select *, sum(size) over (order by position) - size as before from (
				select *, octet_length(payload::text) + octet_length(array_to_string(dropped_fields, ',')) + $5 as size
				from bz_execution_events where execution_id = $1 and position > $2 and position <= $3
			) s order by position limit $4
		) e where before < $6 order by e.position`
	attemptsForSnapshot = `
		select ` + attemptColumns + ` from (
			select *, sum(size) over (order by position) - size as before from (
				select *, octet_length(facts::text) + $5 as size
				from bz_execution_callback_attempts where execution_id = $1 and position > $2 and position <= $3
			) s order by position limit $4
		) e where before < $6 order by e.position`
)

// factsForSnapshot reads facts of one kind by their ids, the next after $2.
func factsForSnapshot(table, id string) string {
	return `
		select e.name, e.version, e.facts::text, e.recorded_at from (
			select *, sum(size) over (order by name) - size as before from (
				select ` + id + ` as name, version, facts, recorded_at, octet_length(facts::text) + $4 as size
				from ` + table + ` where execution_id = $1 and ` + id + ` > $2
			) s order by name limit $3
		) e where before < $5 order by e.name`
}

var (
	tasksForSnapshot     = factsForSnapshot("bz_execution_tasks", "task_id")
	approvalsForSnapshot = factsForSnapshot("bz_execution_approvals", "approval_id")
	grantsForSnapshot    = factsForSnapshot("bz_execution_grants", "grant_id")
)

// executionSnapshot sends an execution in parts, and holds no more than one part and one
// read of it. Its events and attempts are those of its version; its facts are read after
// them, and may be of later versions, whose own messages repeat them.
func (s *store) executionSnapshot(ctx context.Context, id string, replace bool, traceParent string, emit func([]cloudevent.Event) error) error {
	p := parts{store: s, id: id, emit: emit, traceParent: traceParent}
	attempts, err := p.begin(ctx)
	if err != nil {
		return err
	}
	p.next.Replace = replace
	if err := p.events(ctx); err != nil {
		return err
	}
	if err := pages(ctx, &p, tasksForSnapshot, &p.next.Tasks, &p.next.Counts.Tasks, asTask); err != nil {
		return err
	}
	if err := pages(ctx, &p, approvalsForSnapshot, &p.next.Approvals, &p.next.Counts.Approvals, asApproval); err != nil {
		return err
	}
	if err := pages(ctx, &p, grantsForSnapshot, &p.next.Grants, &p.next.Counts.Grants, asGrant); err != nil {
		return err
	}
	if err := p.attempts(ctx, attempts); err != nil {
		return err
	}
	p.next.Last = true
	return p.send()
}

// parts fills and sends the parts of an execution's snapshot.
type parts struct {
	store       *store
	id          string
	version     int64
	traceParent string
	emit        func([]cloudevent.Event) error

	sent        int
	next        executionv1.Snapshot // the part that is being filled
	rows, bytes int                  // of it
}

// begin reads the head of an execution under its lock, and how many attempts it has.
func (p *parts) begin(ctx context.Context) (attempts int, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var migrated bool
	if err := p.store.pool.QueryRow(ctx, hasTable, "bz_executions").Scan(&migrated); err != nil {
		return 0, err
	}
	if !migrated {
		return 0, ErrNoStream
	}
	m := &p.next
	err = pgx.BeginFunc(ctx, p.store.pool, func(tx pgx.Tx) error {
		dest := append(executionDest(&m.Execution), &m.LastPosition, &p.version)
		if err := tx.QueryRow(ctx, executionForSnapshot, p.id).Scan(dest...); err != nil {
			return err
		}
		// By a statement later than the lock: what the version says is there.
		return tx.QueryRow(ctx, endOfAttempts, p.id).Scan(&attempts)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoStream
	}
	m.Execution.CreatedAt = m.Execution.CreatedAt.UTC()
	m.Result, m.LatestAt = trace.Info, m.Execution.CreatedAt
	return attempts, err
}

// full reports whether a row must wait for the next part.
func (p *parts) full(size int) bool {
	return p.rows == partRows || p.rows > 0 && p.bytes+size > batchBytes
}

func (p *parts) count(size int) {
	p.rows++
	p.bytes += size
}

// send sends the part and begins the next one.
func (p *parts) send() error {
	data, err := executionv1.Marshal(p.next)
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	p.sent++
	e := cloudevent.New(executionv1.StreamKind, p.id, p.version, p.sent, executionv1.TypeSnapshot, p.next.LatestAt, data)
	e.TraceParent = p.traceParent
	m := &p.next
	m.Events, m.Tasks, m.Approvals, m.Grants, m.Attempts = nil, nil, nil, nil, nil
	p.rows, p.bytes = 0, 0
	return p.emit([]cloudevent.Event{e})
}

func (p *parts) events(ctx context.Context) error {
	for after := 0; after < p.next.LastPosition; {
		read, err := readPart(ctx, p.store, scanExecutionEvent, executionEventsForSnapshot,
			p.id, after, p.next.LastPosition, partRows, rowBytes, batchBytes)
		if err != nil {
			return err
		}
		if len(read) == 0 {
			return errBroken
		}
		for _, e := range read {
			size := rowBytes + len(e.Payload)
			for _, name := range e.DroppedFields {
				size += len(name) + 1
			}
			if p.full(size) {
				if err := p.send(); err != nil {
					return err
				}
			}
			if after++; e.Position != after {
				return errBroken
			}
			m := &p.next
			m.Events, m.LatestAt = append(m.Events, e), e.RecordedAt
			if result := trace.ResultOf(e.EventType); result != trace.Info {
				m.Result = result
			}
			p.count(size)
		}
	}
	return nil
}

func (p *parts) attempts(ctx context.Context, last int) error {
	for after := 0; after < last; {
		read, err := readPart(ctx, p.store, scanAttempt, attemptsForSnapshot, p.id, after, last, partRows, rowBytes, batchBytes)
		if err != nil {
			return err
		}
		if len(read) == 0 {
			return errBroken
		}
		for _, a := range read {
			size := rowBytes + len(a.Facts)
			if p.full(size) {
				if err := p.send(); err != nil {
					return err
				}
			}
			if after++; a.Position != after {
				return errBroken
			}
			p.next.Attempts = append(p.next.Attempts, a)
			p.next.Counts.Attempts = after
			p.count(size)
		}
	}
	return nil
}

// pages fills the pages of one kind of facts.
func pages[F any](ctx context.Context, p *parts, query string, page **executionv1.Page[F], count *int, as func(word) F) error {
	after := ""
	*page = &executionv1.Page[F]{Items: []F{}}
	for {
		read, err := readPart(ctx, p.store, scanWord, query, p.id, after, partRows, rowBytes, batchBytes)
		if err != nil || len(read) == 0 {
			return err
		}
		for _, w := range read {
			size := rowBytes + len(w.value())
			if p.full(size) {
				if (*page).UpTo = after; (*page).After == after {
					*page = nil // nothing of it is in this part
				}
				if err := p.send(); err != nil {
					return err
				}
				*page = &executionv1.Page[F]{After: after, Items: []F{}}
			}
			(*page).Items = append((*page).Items, as(w))
			*count++
			p.count(size)
			after = w.id
		}
	}
}

func scanWord(row pgx.Row, _ ...any) (w word, err error) {
	if err := row.Scan(&w.id, &w.version, &w.facts, &w.at); err != nil {
		return w, fmt.Errorf("read a fact of an execution: %w", err)
	}
	w.at = w.at.UTC()
	return w, nil
}

// readPart reads rows of at most one part.
func readPart[T any](ctx context.Context, s *store, scan func(row pgx.Row, before ...any) (T, error), query string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (T, error) { return scan(row) })
}
