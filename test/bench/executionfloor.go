package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/platform/transport"
)

// The floor's statements: what recording events has to do to the database at the least,
// as with an append.
const (
	floorClient = `
		insert into bz_clients (app_id, name, allowed_routes, enabled, created_at, updated_at)
		values ('floor', 'floor', '{*}', true, now(), now()) on conflict do nothing`
	floorExecution = `
		insert into bz_executions (execution_id, client_app_id, swarm_id, deployment_id, correlation_id, stream_version, created_at)
		values ($1::uuid, 'floor', $1::uuid::text, 'deployment-1', 'correlation-1', 1, now())`
	floorExecutionRow = `
		select last_position, task_count, stream_version
		from bz_executions where client_app_id = 'floor' and swarm_id = $1 for no key update`
	floorExecutionEvents = `
		insert into bz_execution_events (execution_id, position, event_id, event_type, occurred_at, task_id, agent_instance_id,
			payload, dropped_fields, dropped_count, event_hash, recorded_at)
		select $1, e.position, e.event_id, e.event_type, e.occurred_at, e.task_id, e.agent_instance_id,
			e.payload::json, string_to_array(e.dropped_fields, ','), e.dropped_count, e.event_hash, now()
		from unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::int[], $11::bytea[])
			as e (position, event_id, event_type, occurred_at, task_id, agent_instance_id, payload, dropped_fields, dropped_count, event_hash)`
	floorExecutionUpdate = `update bz_executions set last_position = $2, task_count = 0, stream_version = $3 where execution_id = $1`
)

// floorExecutionWriter records events of executions of its own, by hand.
type floorExecutionWriter struct {
	pool   *pgxpool.Pool
	batch  *executionBatch
	stored *atomic.Int64

	id      string
	last    int // of the execution before the batch
	version int64
}

func newExecutionFloorWriter(pool *pgxpool.Pool, size int, stored *atomic.Int64) writer {
	return &floorExecutionWriter{pool: pool, batch: newExecutionBatch(size), stored: stored}
}

// connect has nothing to do: the pool keeps the connections.
func (w *floorExecutionWriter) connect(context.Context) error { return nil }

func (w *floorExecutionWriter) disconnect() {}

func (w *floorExecutionWriter) prepare(ctx context.Context) error {
	if w.id == "" || !w.batch.fits(w.last) {
		w.id, w.last, w.version = uuid.NewString(), 0, 1
		b := &pgx.Batch{}
		b.Queue(floorClient)
		b.Queue(floorExecution, w.id)
		if err := w.pool.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("floor: open an execution: %w", err)
		}
	}
	w.batch.fill(w.last)
	return nil
}

func (w *floorExecutionWriter) send(ctx context.Context) error {
	e := w.batch
	first, last, version := w.last+1, w.last+e.size(), w.version+1
	const rowBytes = 600 // as ingest guesses them
	b := &pgx.Batch{}
	b.Queue("begin")
	b.Queue(floorLocks, []string{"client"}, []string{"floor"})
	b.Queue(floorExecutionRow, w.id)
	b.Queue(floorExecutionEvents, w.id, e.positions, e.ids, e.types, e.times, e.tasks, e.instances, e.payloads, e.dropped, e.counts, e.hashes)
	b.Queue(floorExecutionUpdate, w.id, last, version)
	b.Queue(floorOutbox, transport.Partition(w.id), executionv1.StreamKind, w.id, version, executionv1.TypeEventsRecorded,
		fmt.Sprintf(`{"first_position":%d,"last_position":%d}`, first, last), rowBytes*e.size())
	b.Queue("commit")
	if err := w.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("floor: record events: %w", err)
	}
	w.last, w.version = last, version
	w.stored.Add(int64(e.size()))
	return nil
}
