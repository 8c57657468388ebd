package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// soakFor is how long appends go on at full speed, and soakPart the part at either end
	// that is compared.
	soakFor, soakPart = 5 * time.Minute, time.Minute
	soakClients       = 16
	soakSize          = 50
	lagPeriod         = 100 * time.Millisecond
)

// soak is how the relay keeps up with appends at full speed.
type soak struct {
	For     string  `json:"for"`
	Batches float64 `json:"batches_per_second"`
	First   millis  `json:"first_minute_lag_ms"` // median age of the oldest message that waits
	Last    millis  `json:"last_minute_lag_ms"`
}

// lag is what waited at a moment.
type lag struct {
	at  time.Time
	age time.Duration
}

// soaked appends at full speed and looks at the oldest message that waits.
func (b *bench) soaked(ctx context.Context) (*soak, error) {
	b.say("appends at full speed for %s", soakFor)
	if err := b.drained(ctx); err != nil {
		return nil, err
	}
	looking, stop := context.WithCancel(ctx)
	lags := make(chan []lag, 1)
	var failed error
	go func() {
		var seen []lag
		failed = withConn(looking, b.server.ingest, func(conn *pgx.Conn) (err error) {
			seen, err = lagsOf(looking, conn)
			return err
		})
		lags <- seen
	}()
	begun := time.Now()
	r, _, err := load(ctx, newAgents(b.both.ingestURL, soakClients, soakSize, &b.complete.events), 0, soakFor)
	ended := time.Now()
	stop()
	seen := <-lags
	if err == nil && failed != nil && looking.Err() == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	within := func(from, to time.Time) millis {
		var ages []time.Duration
		for _, l := range seen {
			if l.at.After(from) && l.at.Before(to) {
				ages = append(ages, l.age)
			}
		}
		slices.Sort(ages)
		return millis(percentile(ages, 50))
	}
	return &soak{soakFor.String(), r.perSecond, within(begun, begun.Add(soakPart)), within(ended.Add(-soakPart), ended)}, nil
}

// lagsOf looks until ctx ends, which is no error.
func lagsOf(ctx context.Context, conn *pgx.Conn) ([]lag, error) {
	tick := time.NewTicker(lagPeriod)
	defer tick.Stop()
	var seen []lag
	for {
		var seconds float64
		err := conn.QueryRow(ctx, `select coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 from outbox`).Scan(&seconds)
		if ctx.Err() != nil {
			return seen, nil
		}
		if err != nil {
			return seen, fmt.Errorf("look at the outbox: %w", err)
		}
		seen = append(seen, lag{time.Now(), time.Duration(seconds * float64(time.Second))})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return seen, nil
		}
	}
}
