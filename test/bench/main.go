// Command bench measures Verbatim's appends beside the same SQL by hand, and the
// delay until an administrator sees what was acknowledged, in one run on one
// machine. Absolute numbers belong to that machine; the ratios are the result.
//
// All loads are closed loops: a client sends its next batch when the last one is
// acknowledged. Variants are interleaved in short rounds and medians are reported.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are what the flags say.
type options struct {
	rounds    int
	duration  time.Duration // measured part of one round of one variant
	warmup    time.Duration
	samples   int // of the delay until visible
	postgres  string
	artifacts string
	cpuProf   string
	only      string
}

func main() {
	o := options{rounds: 5, duration: 2 * time.Second, warmup: 300 * time.Millisecond, samples: 300}
	smoke := flag.Bool("smoke", false, "run so briefly that only the working is checked")
	flag.IntVar(&o.rounds, "rounds", o.rounds, "rounds of each variant")
	flag.DurationVar(&o.duration, "duration", o.duration, "measured part of a round")
	flag.StringVar(&o.postgres, "postgres", "", "use this server, as a superuser (default: a container with fsync on)")
	flag.StringVar(&o.artifacts, "artifacts", "artifacts", "where bench.json is written")
	flag.StringVar(&o.cpuProf, "cpuprofile", "", "write a CPU profile of the appends to this file")
	flag.StringVar(&o.only, "only", "", "measure appends or visibility only")
	flag.Parse()
	if *smoke {
		o.rounds, o.duration, o.warmup, o.samples = 1, 200*time.Millisecond, 50*time.Millisecond, 20
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		log.Fatalf("bench: %v", err)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	server, remove, err := startPostgres(ctx, o.postgres)
	if err != nil {
		return err
	}
	defer remove()
	var r report
	if o.only != "visibility" {
		if r.Appends, err = measureAppends(ctx, o, server, out); err != nil {
			return err
		}
	}
	if o.only != "appends" {
		if r.Visibility, err = measureVisibility(ctx, o, server); err != nil {
			return err
		}
	}
	if err := r.print(out); err != nil {
		return err
	}
	return r.write(o.artifacts)
}

// progress tells a person that something happens.
func progress(out io.Writer, format string, args ...any) {
	if out == io.Writer(os.Stdout) {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	}
}
