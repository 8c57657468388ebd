package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	counts              counts
	// events counts those that were acknowledged.
	events atomic.Int64
}

// counts are the statements that tell how many events there are by the headers, and how
// many by their rows.
type counts struct{ stored, shown string }

var (
	archiveCounts = counts{
		stored: `
			select coalesce(sum(last_sequence), 0), (select count(*) from bz_agent_conversation_events)
			from bz_agent_conversation_audits`,
		shown: `select coalesce(sum(last_sequence), 0), (select count(*) from archive_events) from archives`,
	}
	executionCounts = counts{
		stored: `select coalesce(sum(last_position), 0), (select count(*) from bz_execution_events) from bz_executions`,
		// Beside those that went through ingest there is the run whose trace is read.
		shown: `
			select coalesce(sum(x.last_position), 0), coalesce(sum((select count(*) from execution_events e where e.execution_id = x.execution_id)), 0)
			from executions x where x.client_app_id = '` + clientID + `'`,
	}
)

// check compares what is stored, and what is served, with what was acknowledged.
func (v *variant) check(ctx context.Context) error {
	err := withConn(ctx, v.database, func(conn *pgx.Conn) error {
		var headers, events int64
		err := conn.QueryRow(ctx, v.counts.stored).Scan(&headers, &events)
		return v.compare(err, "stores", headers, events)
	})
	if v.readModel == "" {
		return err
	}
	return errors.Join(err, withConn(ctx, v.readModel, func(conn *pgx.Conn) error {
		var headers, events int64
		err := conn.QueryRow(ctx, v.counts.shown).Scan(&headers, &events)
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
	appends    workload
	executions workload
	complete   *variant // of the appends
}

// workload is what the variants are compared by: the others with the first.
type workload struct {
	name     string
	cells    []cell
	variants []*variant
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
	b.complete = b.served(newService(b.both, s.ingest, archiveCounts, newAgents))
	b.appends = workload{partAppend, appendCells, []*variant{
		newFloor(s.floor, archiveCounts, newFloorWriter), newService(b.held, s.held, archiveCounts, newAgents), b.complete,
	}}
	b.executions = workload{partExecution, executionCells, []*variant{
		newFloor(s.floor, executionCounts, newExecutionFloorWriter),
		newService(b.held, s.held, executionCounts, newOrchestrators),
		b.served(newService(b.both, s.ingest, executionCounts, newOrchestrators)),
	}}
	return b, nil
}

// newService returns the variant of an ingest whose relay is held.
func newService(s *stack, dsn string, c counts, clients func(url string, clients, size int, stored *atomic.Int64) []writer) *variant {
	v := &variant{name: variantHeld, database: dsn, counts: c}
	v.open = func(_ context.Context, n, size int) ([]writer, func(), error) {
		return clients(s.ingestURL, n, size, &v.events), func() {}, nil
	}
	return v
}

// served makes it the variant of an ingest whose relay works.
func (b *bench) served(v *variant) *variant {
	v.name, v.readModel, v.settle = variantBoth, b.server.auditview, b.drained
	return v
}

func (b *bench) check(ctx context.Context) error {
	if err := b.drained(ctx); err != nil {
		return err
	}
	var err error
	for _, v := range slices.Concat(b.appends.variants, b.executions.variants) {
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
