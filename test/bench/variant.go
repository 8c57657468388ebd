package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// The variants' names, in the table and in bench.json.
const (
	variantFloor = "floor"
	variantHeld  = "ingest"
	variantBoth  = "ingest+auditview"
)

// variant is one way to store batches.
type variant struct {
	name string
	// open makes clients for batches of a size, and what closes them.
	open func(ctx context.Context, clients, size int) ([]writer, func(), error)
	// settle waits until all that was acknowledged is visible; nil when nothing ever is.
	settle func(ctx context.Context) error
	// database is where the events are, and readModel where they are served from, if anywhere.
	database, readModel string
	// events counts those that were acknowledged.
	events atomic.Int64
}

// check compares what is stored, and what is served, with what was acknowledged.
func (v *variant) check(ctx context.Context) error {
	err := withConn(ctx, v.database, func(conn *pgx.Conn) error {
		var headers, events int64
		err := conn.QueryRow(ctx, `
			select coalesce(sum(last_sequence), 0), (select count(*) from bz_agent_conversation_events)
			from bz_agent_conversation_audits`).Scan(&headers, &events)
		return v.compare(err, "stores", headers, events)
	})
	if v.readModel == "" {
		return err
	}
	return errors.Join(err, withConn(ctx, v.readModel, func(conn *pgx.Conn) error {
		var headers, events int64
		err := conn.QueryRow(ctx, `
			select coalesce(sum(last_sequence), 0), (select count(*) from archive_events) from archives`).Scan(&headers, &events)
		return v.compare(err, "shows", headers, events)
	}))
}

func (v *variant) compare(err error, verb string, headers, events int64) error {
	if want := v.events.Load(); err == nil && (headers != want || events != want) {
		err = fmt.Errorf("it %s %d events, and %d by the headers, but %d were acknowledged", verb, events, headers, want)
	}
	if err != nil {
		return fmt.Errorf("%s: check: %w", v.name, err)
	}
	return nil
}

// bench is one run: the variants on one server.
type bench struct {
	options  options
	server   *server
	progress io.Writer
	started  time.Time

	held, both *stack
	floor      *variant
	ingest     *variant
	complete   *variant
}

func newBench(ctx context.Context, o options, s *server, progress io.Writer) (*bench, error) {
	b := &bench{options: o, server: s, progress: progress, started: time.Now()}
	var err error
	if b.held, err = startHeld(ctx, s.held); err != nil {
		return nil, err
	}
	if b.both, err = startBoth(ctx, s.ingest, s.auditview); err != nil {
		return nil, errors.Join(err, b.held.close(ctx))
	}
	b.floor = newFloor(s)
	b.ingest = newService(variantHeld, b.held, s.held)
	b.complete = newService(variantBoth, b.both, s.ingest)
	b.complete.readModel = s.auditview
	b.complete.settle = b.drained
	return b, nil
}

func newService(name string, s *stack, dsn string) *variant {
	v := &variant{name: name, database: dsn}
	v.open = func(_ context.Context, clients, size int) ([]writer, func(), error) {
		return newAgents(s.ingestURL, clients, size, &v.events), func() {}, nil
	}
	return v
}

// variants are all variants; the others are compared with the first.
func (b *bench) variants() []*variant { return []*variant{b.floor, b.ingest, b.complete} }

func (b *bench) check(ctx context.Context) error {
	if err := b.drained(ctx); err != nil {
		return err
	}
	var err error
	for _, v := range b.variants() {
		err = errors.Join(err, v.check(ctx))
	}
	return err
}

func (b *bench) close(ctx context.Context) error {
	return errors.Join(b.both.close(ctx), b.held.close(ctx))
}

func (b *bench) say(format string, args ...any) {
	// Nothing depends on whether progress is seen.
	_, _ = fmt.Fprintf(b.progress, "bench: "+format+"\n", args...)
}

const (
	drainPeriod  = 5 * time.Millisecond
	drainTimeout = 5 * time.Minute
)

// drained waits until the outbox is empty: a row leaves it once the read model has it.
func (b *bench) drained(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	return withConn(ctx, b.server.ingest, func(conn *pgx.Conn) error {
		tick := time.NewTicker(drainPeriod)
		defer tick.Stop()
		for {
			var waiting bool
			if err := conn.QueryRow(ctx, `select exists (select from outbox)`).Scan(&waiting); err != nil {
				return fmt.Errorf("wait for the relay: %w", err)
			}
			if !waiting {
				return nil
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("wait for the relay: %w", ctx.Err())
			}
		}
	})
}
