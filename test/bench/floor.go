package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/platform/transport"
)

// The floor: what an append must do to the database at the least, by hand, in one
// pipelined round trip. It checks nothing and answers nobody.
const (
	floorCreate = `
		insert into bz_agent_conversation_audits (conversation_id, client_archive_id, client_conversation_id, creator_session_id,
			client_app_id, route_key, request_hash, state, member_count, confirmed_count, last_sequence, message_count, turn_count,
			text_bytes, stream_version, created_at, updated_at)
		values ($1, $1, 'floor', $1, 'floor', 'floor', sha256('floor'), 'ready', 1, 1, 0, 0, 0, 0, 1, now(), now())`
	floorLocks = `select pg_advisory_xact_lock_shared(bz_lock_key(l.kind, l.key))
		from unnest(array['client', 'route'], array['floor', 'floor']) as l (kind, key)`
	floorHeader = `select last_sequence, text_bytes from bz_agent_conversation_audits where conversation_id = $1 for no key update`
	floorEvents = `
		insert into bz_agent_conversation_events (conversation_id, sequence, event_id, client_turn_id, kind, content, created_at)
		select $1, s, id, 'turn-1', 'user_message', c, now() from unnest($2::int[], $3::text[], $4::text[]) as e (s, id, c)`
	floorUpdate = `
		update bz_agent_conversation_audits set last_sequence = $2, message_count = $2, text_bytes = $3,
			stream_version = stream_version + 1, updated_at = now() where conversation_id = $1`
	floorOutbox = `
		insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		values ($1, 'archive', $2, 1, 'verbatim.archive.events_appended.v1', '{"first_sequence":1,"state":{"last_sequence":50}}', $3, now())`
)

type floorWriter struct {
	pool  *pgxpool.Pool
	batch int

	id       string
	sequence int
	bytes    int
}

func newFloor(ctx context.Context, dsn string, clients, batch int) ([]writer, func(), error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, nil, err
	}
	cfg.MaxConns = int32(min(clients, maxConns))
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	writers := make([]writer, clients)
	for i := range writers {
		writers[i] = &floorWriter{pool: pool, batch: batch}
	}
	return writers, pool.Close, nil
}

func (w *floorWriter) prepare(ctx context.Context) error {
	if w.id != "" && fits(w.sequence, w.bytes, w.batch) {
		return nil
	}
	w.id, w.sequence, w.bytes = uuid.NewString(), 0, 0
	_, err := w.pool.Exec(ctx, floorCreate, w.id)
	return err
}

// fits reports whether one more batch stays below an archive's limits.
func fits(sequence, bytes, batch int) bool {
	return sequence+batch <= archive.MaxEvents && bytes+batch*len(text) <= archive.MaxArchiveBytes
}

func (w *floorWriter) send(ctx context.Context) error {
	sequences, ids, contents := make([]int32, w.batch), make([]string, w.batch), make([]string, w.batch)
	for i := range w.batch {
		n := w.sequence + i + 1
		sequences[i], ids[i], contents[i] = int32(n), "event-"+strconv.Itoa(n), text
	}
	w.sequence += w.batch
	w.bytes += w.batch * len(text)
	b := &pgx.Batch{}
	b.Queue("begin")
	b.Queue(floorLocks)
	b.Queue(floorHeader, w.id)
	b.Queue(floorEvents, w.id, sequences, ids, contents)
	b.Queue(floorUpdate, w.id, w.sequence, w.bytes)
	b.Queue(floorOutbox, transport.Partition(w.id), w.id, w.batch*len(text))
	b.Queue("commit")
	if err := w.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	return nil
}
