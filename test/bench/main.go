// Command bench measures Verbatim beside the same SQL by hand, in one run on one
// machine, and prints a table. Absolute numbers belong to that machine and to that
// hour; the ratios are the result.
//
// Appends are closed loops: each client sends its next batch once the last one is
// acknowledged, over a connection that it keeps. The variants of a cell (batch size and
// clients) take turns in short rounds, each with a warm-up of its own, and the table
// shows medians over the rounds with their extremes:
//
//   - floor: the least that an append can do, one pipelined round trip through pgx;
//   - ingest: the service over HTTP, its relay held, so that both store the same and no more;
//   - ingest+auditview: both services on this machine and this server, the relay working.
//
// Events of executions are measured like appends. The delay until an administrator sees
// what was acknowledged is measured with an open loop: one event at each tick of a clock, at
// half of what the services take in a closed loop, and once a second.
//
// The audit trace of the longest run there may be is read in two ways. Its last page is
// compared with its first. And all of it is written, assembled from facts in memory and by
// the admin API from stored ones, beside the JSON library that writes finished records.
//
// Every run ends with a check that the databases hold exactly what was acknowledged.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/platform/memory"
)

// The parts of a run, as -only and BENCH name them.
const (
	partAppend     = "append"
	partContention = "contention"
	partDepth      = "depth"
	partExecution  = "execution"
	partVisibility = "visibility"
	partFootprint  = "footprint"
	partReads      = "reads"
	partPages      = "pages"
	partAssembly   = "assembly"
	// partLarge is what takes long, and is measured only when it is named.
	partLarge = "large"
)

var parts = []string{
	partAppend, partContention, partDepth, partExecution, partVisibility, partFootprint, partReads, partPages, partAssembly, partLarge,
}

// options are what the flags say.
type options struct {
	rounds      int
	duration    time.Duration // the measured part of one round of one variant
	warmup      time.Duration // before it
	samples     int           // of the delay until visible
	period      time.Duration // between the events of a slow pace
	slowSamples int           // of the delay at that pace
	deep        int           // events of an archive that is nearly full
	idle        time.Duration // the services are left alone
	listed      int           // archives of the list that is read
	events      int           // of the run whose trace is read
	postgres    string        // DSN of a superuser; "" starts a container
	artifacts   string        // the directory of bench.json
	profiles    string        // the directory of profiles; "" takes none
	only        []string      // the parts to measure; empty means all but the large one
}

func (o options) measures(part string) bool {
	return slices.Contains(o.only, part) || len(o.only) == 0 && part != partLarge
}

func parse(args []string) (options, error) {
	o := options{warmup: 300 * time.Millisecond, samples: 500, period: time.Second, slowSamples: 30, deep: 19_000, idle: idleFor, listed: listedArchives}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	smoke := flags.Bool("smoke", false, "run so briefly that only the working is checked")
	only := flags.String("only", os.Getenv("BENCH"), "measure only these parts, separated by commas: "+strings.Join(parts, ", ")+" (default $BENCH)")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of each variant")
	flags.DurationVar(&o.duration, "duration", 2*time.Second, "the measured part of a round")
	flags.IntVar(&o.events, "events", execution.MaxEvents, "events of the run whose trace is read")
	flags.StringVar(&o.postgres, "postgres", "", "measure on this server, as its superuser (default: a container, with fsync on)")
	flags.StringVar(&o.artifacts, "artifacts", "artifacts", "the directory that bench.json is written to")
	flags.StringVar(&o.profiles, "profiles", "", "write CPU and allocation profiles of every round into this directory")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, part := range o.only {
		if !slices.Contains(parts, part) {
			return o, fmt.Errorf("-only and BENCH take %s, not %q", strings.Join(parts, ", "), part)
		}
	}
	if *smoke {
		o.rounds, o.duration, o.warmup, o.samples, o.events = 1, 200*time.Millisecond, 50*time.Millisecond, 20, 10_000
		o.period, o.slowSamples, o.deep, o.listed, o.idle = 50*time.Millisecond, 5, 1000, 1000, time.Second
	}
	if o.rounds < 1 || o.duration <= 0 {
		return o, errors.New("-rounds and -duration take a value above 0")
	}
	if least := slices.Max(pageSizes); o.events < least || o.events > execution.MaxEvents {
		return o, fmt.Errorf("-events takes %d to %d", least, execution.MaxEvents)
	}
	return o, nil
}

func main() {
	memory.Tune() // as the services' programs do
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o, os.Stdout, os.Stderr)
		stop()
	}
	if err != nil {
		log.SetFlags(0)
		log.Fatalf("bench: %v", err)
	}
}

// run measures, prints the table to out and tells on progress how far it is.
func run(ctx context.Context, o options, out, progress io.Writer) (err error) {
	s, err := startServer(ctx, o.postgres)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove(context.WithoutCancel(ctx))) }()
	b, err := newBench(ctx, o, s, progress)
	if err != nil {
		return err
	}
	r := report{Machine: s.machine(ctx), Rounds: o.rounds, Duration: o.duration.String(), Started: b.started}
	for _, part := range []struct {
		name    string
		measure func() error
	}{
		{partAppend, func() (err error) { r.Appends, err = b.measure(ctx, b.appends); return err }},
		{partContention, func() error { return r.compared(b.contention(ctx)) }},
		{partDepth, func() error { return r.compared(b.depth(ctx)) }},
		{partExecution, func() (err error) { r.Executions, err = b.measure(ctx, b.executions); return err }},
		{partVisibility, func() (err error) { r.Visibility, err = b.visibilities(ctx); return err }},
		{partFootprint, func() (err error) { r.Footprint, err = b.footprint(ctx); return err }},
		{partLarge, func() (err error) { r.Soak, err = b.soaked(ctx); return err }},
		{partLarge, func() error { return r.compared(b.big(ctx)) }},
	} {
		if err == nil && o.measures(part.name) {
			err = part.measure()
		}
	}
	if err == nil {
		err = b.check(ctx)
	}
	// What is stored by hand comes after the check.
	if err == nil && o.measures(partReads) {
		r.Reads, err = b.reads(ctx, o.listed)
	}
	if err == nil && o.measures(partLarge) {
		var rows []readRow
		rows, err = b.reads(ctx, manyListed)
		r.Reads = append(r.Reads, rows...)
	}
	if err == nil {
		err = b.traces(ctx, &r)
	}
	if err = errors.Join(err, b.close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	if err := r.print(out); err != nil {
		return err
	}
	return r.write(filepath.Join(o.artifacts, "bench.json"))
}
