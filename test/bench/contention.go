package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/ingest"
)

// compare lets two workloads of single events take turns on ingest alone, and returns the
// second's throughput and latencies beside the first's.
func (b *bench) compare(ctx context.Context, name string, first, second contender) (comparison, error) {
	both := []contender{first, second}
	rounds := make([][]round, len(both))
	for n := range b.options.rounds {
		b.say("%s, round %d of %d", name, n+1, b.options.rounds)
		for k := range both {
			i := (k + n) % len(both)
			r, _, err := load(ctx, both[i].writers, b.options.warmup, b.options.duration)
			if err != nil {
				return comparison{}, fmt.Errorf("%s: %w", both[i].name, err)
			}
			rounds[i] = append(rounds[i], r)
		}
	}
	c := comparison{What: name, First: first.name, Second: second.name}
	var rates, medians []float64
	for n := range rounds[0] {
		rates = append(rates, rounds[1][n].perSecond/max(rounds[0][n].perSecond, 1))
		medians = append(medians, float64(percentile(rounds[1][n].latencies, 50))/float64(max(percentile(rounds[0][n].latencies, 50), 1)))
	}
	c.Throughput, c.Latency = spreadOf(rates), spreadOf(medians)
	return c, nil
}

// contender is one of two workloads.
type contender struct {
	name    string
	writers []writer
}

// comparison is how the second of two workloads does beside the first.
type comparison struct {
	What       string          `json:"what"`
	First      string          `json:"first"`
	Second     string          `json:"second"`
	Throughput spread[float64] `json:"throughput"` // of the second by that of the first
	Latency    spread[float64] `json:"p50"`        // of the second by that of the first
}

// contention compares many busy archives of one client and route with as many of
// different ones: whether the locks of what authorizes are in the way.
func (b *bench) contention(ctx context.Context) (comparison, error) {
	if _, err := ingest.Apply(ctx, config.Secret(b.server.held), registryOfMany()); err != nil {
		return comparison{}, err
	}
	one, many := contender{name: "one client"}, contender{name: fmt.Sprintf("%d clients", manyClients)}
	stored := &b.appends.variants[1].events
	for _, a := range clients() {
		one.writers = append(one.writers, &agentWriter{url: b.held.ingestURL, who: usual, batch: newBatch(1), stored: stored})
		many.writers = append(many.writers, &agentWriter{url: b.held.ingestURL, who: a, batch: newBatch(1), stored: stored})
	}
	return b.compare(ctx, fmt.Sprintf("%d archives", manyClients), many, one)
}

const (
	// deepWriters write words only, so that an archive does not end by its bytes.
	deepWriters          = 8
	deepText, deepQuoted = "A few words.", `"A few words."`
)

// depth compares appends to archives that are nearly full with those to new ones.
func (b *bench) depth(ctx context.Context) (comparison, error) {
	fresh, deep := contender{name: "new archives"}, contender{name: fmt.Sprintf("archives of %d events", b.options.deep)}
	for range deepWriters {
		fresh.writers = append(fresh.writers, b.shortWriter(1))
		deep.writers = append(deep.writers, &deepWriter{agentWriter: b.shortWriter(1), filler: b.shortWriter(archive.MaxBatchEvents), depth: b.options.deep})
	}
	return b.compare(ctx, "depth", fresh, deep)
}

// bigEvents is how many events a big database has.
const bigEvents = 10_000_000

// makeBig fills a database with archives of a thousand short events.
var makeBig = []string{
	`insert into bz_agent_conversation_audits (conversation_id, client_archive_id, client_conversation_id, creator_session_id,
		client_app_id, route_key, membership_version, request_hash, state, member_count, confirmed_count, last_sequence,
		message_count, turn_count, text_bytes, stream_version, created_at, updated_at)
	select a.id, a.id, 'big', a.id, 'big', 'big', 1, sha256('big'), 'ready', 1, 1, 1000, 1000, 1, 13000, 21, now(), now()
	from (select gen_random_uuid() as id from generate_series(1, $1 / 1000)) as a`,
	`insert into bz_agent_conversation_events (conversation_id, sequence, event_id, client_turn_id, kind, content, created_at)
	select a.conversation_id, s, 'event-' || s, 'turn-1', 'user_message', '` + deepText + `', now()
	from bz_agent_conversation_audits a, generate_series(1, 1000) as s where a.route_key = 'big'`,
}

// big compares appends into a database of many events with those into a small one.
func (b *bench) big(ctx context.Context) (comparison, error) {
	b.say("%d events are stored", bigEvents)
	err := withConn(ctx, b.server.big, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, makeBig[0], bigEvents); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, makeBig[1])
		return err
	})
	if err != nil {
		return comparison{}, fmt.Errorf("fill the big database: %w", err)
	}
	if err := withConn(ctx, b.server.bigOwner, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `vacuum (analyze) bz_agent_conversation_events, bz_agent_conversation_audits`)
		return err
	}); err != nil {
		return comparison{}, fmt.Errorf("vacuum the big database: %w", err)
	}
	if err := b.server.checkpoint(ctx); err != nil {
		return comparison{}, err
	}
	full, err := startHeld(ctx, b.server.big)
	if err != nil {
		return comparison{}, err
	}
	defer func() { _ = full.close(context.WithoutCancel(ctx)) }()
	small, large := contender{name: "a small database"}, contender{name: fmt.Sprintf("a database of %d events", bigEvents)}
	for range deepWriters {
		small.writers = append(small.writers, b.shortWriter(1))
		w := b.shortWriter(1)
		w.url, w.stored = full.ingestURL, new(atomic.Int64)
		large.writers = append(large.writers, w)
	}
	return b.compare(ctx, "size of the database", small, large)
}

func (b *bench) shortWriter(size int) *agentWriter {
	short, quotedShort := deepText, deepQuoted
	w := &agentWriter{url: b.held.ingestURL, who: usual, batch: newBatch(size), stored: &b.appends.variants[1].events}
	w.batch.text, w.batch.quoted, w.batch.one = &short, &quotedShort, true
	return w
}

// deepWriter is an agent whose archives begin with so many events.
type deepWriter struct {
	*agentWriter
	filler *agentWriter
	depth  int
}

func (w *deepWriter) prepare(ctx context.Context) error {
	if w.id == "" || !w.batch.fits(w.last, w.bytes) {
		f := w.filler
		f.conn = w.conn
		if err := f.create(); err != nil {
			return err
		}
		for f.last < w.depth {
			f.fill()
			if err := f.send(ctx); err != nil {
				return err
			}
		}
		w.id, w.path, w.last, w.bytes = f.id, f.path, f.last, f.bytes
	}
	w.fill()
	return nil
}
