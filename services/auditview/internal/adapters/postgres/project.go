package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// Project implements app.ProjectionStore: one transaction with a constant number of
// statements, in three round trips (four when snapshots replace runs), whatever the size
// of the batch: its BEGIN travels with the locks. Whether the writes met what they build
// on is known before the COMMIT is sent.
func (s *Store) Project(ctx context.Context, streams []readmodel.Stream, plan app.PlanFunc) error {
	if len(streams) == 0 {
		return nil
	}
	return database.RetrySerialization(ctx, func() error { return s.project(ctx, streams, plan) })
}

func (s *Store) project(ctx context.Context, streams []readmodel.Stream, plan app.PlanFunc) error {
	pooled, err := s.db.Pool.Acquire(ctx)
	if err != nil {
		return projectionError(fmt.Errorf("acquire a connection: %w", err))
	}
	defer pooled.Release() // a connection that is still in a transaction is closed, not reused
	conn := pooled.Conn()
	heads, err := lockHeads(ctx, conn, streams)
	if err != nil {
		rollback(ctx, conn)
		return projectionError(err)
	}
	changes, err := plan(heads)
	if err != nil {
		rollback(ctx, conn)
		return err
	}
	if err := s.write(ctx, conn, changes); err != nil {
		rollback(ctx, conn)
		var permanent *app.PermanentError
		if errors.As(err, &permanent) {
			return permanent
		}
		return projectionError(err)
	}
	return nil
}

// rollback ends a transaction that is still open. Its error does not matter: a connection
// that cannot roll back is closed, which rolls back too.
func rollback(ctx context.Context, conn *pgx.Conn) {
	if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		_, _ = conn.Exec(ctx, "rollback")
	}
}

// lockHeads locks the rows of streams in their order, which is the order of keys in
// every transaction, and reads their heads. What is parked is read by a later statement
// than the lock: a statement that waits for a lock still sees its old snapshot elsewhere.
func lockHeads(ctx context.Context, conn *pgx.Conn, streams []readmodel.Stream) (map[readmodel.Stream]readmodel.Head, error) {
	kinds, ids := make([]string, len(streams)), make([]string, len(streams))
	for i, s := range streams {
		kinds[i], ids[i] = s.Kind, s.ID
	}
	heads := make(map[readmodel.Stream]readmodel.Head, len(streams))
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue(sqlAddStreams, kinds, ids)
	batch.Queue(sqlLockStreams, kinds, ids).Query(func(rows pgx.Rows) error {
		var s readmodel.Stream
		var version int64
		_, err := pgx.ForEachRow(rows, []any{&s.Kind, &s.ID, &version}, func() error {
			heads[s] = readmodel.Head{Applied: version}
			return nil
		})
		return err
	})
	batch.Queue(sqlParkedHeads, kinds, ids).Query(func(rows pgx.Rows) error {
		var s readmodel.Stream
		var to int64
		var versions []int64
		var parts []int32
		_, err := pgx.ForEachRow(rows, []any{&s.Kind, &s.ID, &to, &versions, &parts}, func() error {
			head := heads[s]
			head.ParkedTo = to
			for i := range versions {
				head.Parts = append(head.Parts, readmodel.PartKey{Version: versions[i], Part: int(parts[i])})
			}
			heads[s] = head
			return nil
		})
		return err
	})
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("lock streams: %w", err)
	}
	return heads, nil
}

const (
	sqlAddStreams = `
insert into streams (stream_kind, stream_id)
select * from unnest($1::text[], $2::text[])
on conflict do nothing`

	sqlLockStreams = `
select s.stream_kind, s.stream_id, s.version
from streams s
join unnest($1::text[], $2::text[]) as k (kind, id) on s.stream_kind = k.kind and s.stream_id = k.id
order by s.stream_kind, s.stream_id
for update of s`

	sqlParkedHeads = `
select p.stream_kind, p.stream_id, max(p.version),
       coalesce(array_agg(p.version order by p.version, p.part) filter (where p.part > 0), '{}'),
       coalesce(array_agg(p.part order by p.version, p.part) filter (where p.part > 0), '{}')
from parked_messages p
join unnest($1::text[], $2::text[]) as k (kind, id) on p.stream_kind = k.kind and p.stream_id = k.id
group by p.stream_kind, p.stream_id`
)

// errIncomplete is a snapshot whose last part came without the ones before it.
var errIncomplete = &app.PermanentError{Reason: "the snapshot is incomplete"}

// write queues the statements of the changes, in the order that the changes define, and
// sends them in one round trip, and the commit in another.
func (s *Store) write(ctx context.Context, conn *pgx.Conn, c readmodel.Changes) error {
	w := &writer{batch: &pgx.Batch{}}
	w.replaced(c.Replaced)
	w.headers(sqlInsertArchives, c.Created)
	w.headers(sqlInsertArchives+sqlReplaceArchives, c.Headers)
	w.states(c.States)
	w.members(c.Members)
	w.confirmed(c.Confirmed)
	w.events(sqlInsertEvents+sqlSameEvents, c.Events)
	w.events(sqlInsertEvents+sqlReplaceEvents, c.Restored)
	w.links(c.Links)
	w.finishReplaced(c.Replaced)
	if err := s.writeRuns(ctx, conn, w, c); err != nil {
		return err
	}
	if err := w.executions(c.Executions); err != nil {
		return err
	}
	w.versions(c.Versions)
	w.unparked(c.Unparked)
	if err := errors.Join(w.registry(c.Registry, false), w.registry(c.RestoredRegistry, true), w.parked(c.Parked, s.now())); err != nil {
		return err
	}
	if w.batch.Len() > 0 {
		if err := conn.SendBatch(ctx, w.batch).Close(); err != nil {
			return fmt.Errorf("write changes: %w", err)
		}
	}
	tag, err := conn.Exec(ctx, "commit")
	if err == nil && tag.String() != "COMMIT" {
		err = errors.New("the transaction was rolled back by the database")
	}
	return err
}

// writeRuns queues the statements of what the changes do to runs. What could be written
// before migration 003 still is: runs as they were recorded, and snapshots without more.
func (s *Store) writeRuns(ctx context.Context, conn *pgx.Conn, w *writer, c readmodel.Changes) error {
	bare := !slices.ContainsFunc(c.ReplacedRuns, func(r readmodel.ReplacedRun) bool {
		return r.Completion != nil || r.LastPosition > 0
	})
	if len(c.ReplacedRuns) > 0 && bare {
		var migrated bool
		if err := conn.QueryRow(ctx, sqlHasTraces).Scan(&migrated); err != nil {
			return fmt.Errorf("look for the traces: %w", err)
		}
		if !migrated {
			for _, r := range c.ReplacedRuns {
				c.Runs = append(c.Runs, r.Run)
			}
			c.ReplacedRuns = nil
		}
	}
	w.runs(sqlInsertRuns, c.Recorded)
	w.runs(sqlInsertRuns+sqlReplaceRuns, c.Runs)
	if err := errors.Join(w.replacedRuns(c.ReplacedRuns), w.completed(c.Completed)); err != nil {
		return err
	}
	w.traced(c.Traced)
	w.traceEvents(sqlInsertTraceEvents+sqlSameTraceEvents, c.TraceEvents)
	w.traceEvents(sqlInsertTraceEvents+sqlReplaceTraceEvents, c.RestoredTrace)
	w.finishReplacedRuns(c.ReplacedRuns)
	return nil
}
