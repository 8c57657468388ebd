package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// writer sends batch after batch of one client. Its first call may prepare an
// archive; send is what is timed.
type writer interface {
	// prepare makes sure that the next batch fits into the archive.
	prepare(ctx context.Context) error
	// send stores one batch and returns once it is acknowledged.
	send(ctx context.Context) error
}

// round is what one variant did in one round.
type round struct {
	perSecond float64
	latencies []time.Duration // sorted
}

// load drives the writers in closed loops for warm-up and duration, and measures
// the batches that were acknowledged within the duration.
func load(ctx context.Context, writers []writer, warmup, duration time.Duration) (round, error) {
	for _, w := range writers {
		if err := w.prepare(ctx); err != nil {
			return round{}, err
		}
	}
	begin := time.Now().Add(warmup)
	end := begin.Add(duration)
	var group sync.WaitGroup
	all := make([][]time.Duration, len(writers))
	errs := make([]error, len(writers))
	for i, w := range writers {
		group.Go(func() { all[i], errs[i] = drive(ctx, w, begin, end) })
	}
	group.Wait()
	var r round
	for i := range all {
		if errs[i] != nil {
			return round{}, fmt.Errorf("client %d: %w", i, errs[i])
		}
		r.latencies = append(r.latencies, all[i]...)
	}
	slices.Sort(r.latencies)
	r.perSecond = float64(len(r.latencies)) / duration.Seconds()
	return r, nil
}

func drive(ctx context.Context, w writer, begin, end time.Time) ([]time.Duration, error) {
	var latencies []time.Duration
	for {
		if err := w.prepare(ctx); err != nil {
			return nil, err
		}
		started := time.Now()
		if !started.Before(end) {
			return latencies, nil
		}
		if err := w.send(ctx); err != nil {
			return nil, err
		}
		if done := time.Now(); !done.Before(begin) && done.Before(end) {
			latencies = append(latencies, done.Sub(started))
		}
	}
}

// percentile returns the p-th percentile of sorted durations, 0 for none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p/100*float64(len(sorted))))]
}

// median returns the middle of values, which it sorts.
func median[T float64 | time.Duration](values []T) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
