package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/platform/transport"
)

// The floor's statements: what an append has to do to the database at the least. They
// read nothing but the header that they lock, and check nothing.
const (
	floorCreate = `
		insert into bz_agent_conversation_audits (conversation_id, client_archive_id, client_conversation_id, creator_session_id,
			client_app_id, route_key, membership_version, request_hash, state, member_count, confirmed_count, last_sequence,
			message_count, turn_count, text_bytes, stream_version, created_at, updated_at)
		values ($1, $1, 'floor', $1, 'floor', 'floor', 1, sha256('floor'), 'ready', 1, 1, 0, 0, 0, 0, 1, now(), now())`
	floorLocks = `
		select pg_advisory_xact_lock_shared(bz_lock_key(l.kind, l.key))
		from unnest($1::text[], $2::text[]) as l (kind, key)`
	floorHeader = `select last_sequence, text_bytes, stream_version from bz_agent_conversation_audits where conversation_id = $1 for no key update`
	floorEvents = `
		insert into bz_agent_conversation_events (conversation_id, sequence, event_id, client_turn_id, kind, content, status, created_at)
		select $1, e.sequence, e.event_id, e.client_turn_id, e.kind, e.content, e.status, now()
		from unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
			as e (sequence, event_id, client_turn_id, kind, content, status)`
	floorUpdate = `
		update bz_agent_conversation_audits
		set last_sequence = $2, message_count = $2, turn_count = 1, last_turn_status = 'running', current_turn_id = 'turn-1',
			text_bytes = $3, stream_version = $4, updated_at = now()
		where conversation_id = $1`
	floorOutbox = `
		insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, now())`
)

// floorPayload is as long as what ingest writes.
var floorPayload = `{"state":{` + strings.Repeat(`"key":123456,`, 18) + `"key":0}}`

// newFloor returns the floor: the clients share as many connections as ingest has.
func newFloor(dsn string, c counts, client func(pool *pgxpool.Pool, size int, stored *atomic.Int64) writer) *variant {
	v := &variant{name: variantFloor, database: dsn, counts: c}
	v.open = func(ctx context.Context, clients, size int) ([]writer, func(), error) {
		cfg, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			return nil, nil, err
		}
		cfg.MaxConns = min(int32(clients), maxConns)
		cfg.MinConns = cfg.MaxConns
		pool, err := pgxpool.NewWithConfig(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		writers := make([]writer, clients)
		for i := range writers {
			writers[i] = client(pool, size, &v.events)
		}
		return writers, pool.Close, nil
	}
	return v
}

// floorWriter appends to archives of its own, by hand.
type floorWriter struct {
	pool   *pgxpool.Pool
	batch  *batch
	stored *atomic.Int64

	id          string
	last, bytes int // of the archive before the batch
	version     int64
	batchBytes  int
}

func newFloorWriter(pool *pgxpool.Pool, size int, stored *atomic.Int64) writer {
	return &floorWriter{pool: pool, batch: newBatch(size), stored: stored}
}

// connect has nothing to do: the pool keeps the connections.
func (w *floorWriter) connect(context.Context) error { return nil }

func (w *floorWriter) disconnect() {}

func (w *floorWriter) prepare(ctx context.Context) error {
	if w.id == "" || !w.batch.fits(w.last, w.bytes) {
		w.id, w.last, w.bytes, w.version = uuid.NewString(), 0, 0, 1
		if _, err := w.pool.Exec(ctx, floorCreate, w.id); err != nil {
			return fmt.Errorf("floor: create: %w", err)
		}
	}
	w.batchBytes = w.batch.fill(w.last)
	return nil
}

func (w *floorWriter) send(ctx context.Context) error {
	e := w.batch
	last, bytes, version := w.last+e.size(), w.bytes+w.batchBytes, w.version+1
	b := &pgx.Batch{}
	b.Queue("begin")
	b.Queue(floorLocks, []string{"client", "route"}, []string{"floor", "floor"})
	b.Queue(floorHeader, w.id)
	b.Queue(floorEvents, w.id, e.sequences, e.ids, e.turns, e.kinds, e.contents, e.statuses)
	b.Queue(floorUpdate, w.id, last, bytes, version)
	b.Queue(floorOutbox, transport.Partition(w.id), archivev1.StreamKind, w.id, version, archivev1.TypeEventsAppended, floorPayload, w.batchBytes)
	b.Queue("commit")
	if err := w.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("floor: append: %w", err)
	}
	w.last, w.bytes, w.version = last, bytes, version
	w.stored.Add(int64(e.size()))
	return nil
}
