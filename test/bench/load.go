package main

import (
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"sync"
	"time"
)

// writer stores the batches of one client, one after the other.
type writer interface {
	// connect is called before each round, and disconnect after it.
	connect(ctx context.Context) error
	disconnect()
	// prepare makes the next batch ready, and a new archive when it does not fit into the last one.
	prepare(ctx context.Context) error
	// send stores the batch and returns once it is acknowledged.
	send(ctx context.Context) error
}

// round is what one variant did in one round.
type round struct {
	perSecond float64         // batches acknowledged within the measured part
	latencies []time.Duration // of those, sorted
	// visiblePerSecond counts all batches of the round up to the moment when the last one was
	// visible; 0 for a variant that shows nothing to anybody.
	visiblePerSecond float64
}

// load drives the writers in closed loops for warm-up and duration. It returns what was
// acknowledged within the duration, and the number of all batches that were acknowledged.
func load(ctx context.Context, writers []writer, warmup, duration time.Duration) (round, int, error) {
	for i, w := range writers {
		if err := w.connect(ctx); err != nil {
			return round{}, 0, fmt.Errorf("client %d: connect: %w", i, err)
		}
		defer w.disconnect()
		if err := w.prepare(ctx); err != nil {
			return round{}, 0, fmt.Errorf("client %d: %w", i, err)
		}
	}
	begin := time.Now().Add(warmup)
	end := begin.Add(duration)
	var group sync.WaitGroup
	clients := make([]client, len(writers))
	for i, w := range writers {
		group.Go(func() {
			// So that a profile can leave out what is not the service's own work.
			pprof.Do(ctx, pprof.Labels("side", "client"), func(ctx context.Context) { clients[i].drive(ctx, w, begin, end) })
		})
	}
	group.Wait()
	var r round
	sent := 0
	for i := range clients {
		if err := clients[i].err; err != nil {
			return round{}, 0, fmt.Errorf("client %d: %w", i, err)
		}
		r.latencies = append(r.latencies, clients[i].latencies...)
		sent += clients[i].sent
	}
	slices.Sort(r.latencies)
	r.perSecond = float64(len(r.latencies)) / duration.Seconds()
	return r, sent, nil
}

// client is one closed loop.
type client struct {
	latencies []time.Duration
	sent      int
	err       error
}

func (c *client) drive(ctx context.Context, w writer, begin, end time.Time) {
	for {
		started := time.Now()
		if !started.Before(end) {
			return
		}
		if c.err = w.send(ctx); c.err != nil {
			return
		}
		c.sent++
		if done := time.Now(); !done.Before(begin) && done.Before(end) {
			c.latencies = append(c.latencies, done.Sub(started))
		}
		if c.err = w.prepare(ctx); c.err != nil {
			return
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
