package main

import (
	"context"
	"fmt"
	"time"

	"verbatim.internal/pkg/domain/execution"
)

// appendCells span the table of appends, executionCells that of events of executions.
var (
	appendCells    = []cell{{50, 1}, {50, 16}, {50, 64}, {1, 1}, {1, 16}, {1, 64}}
	executionCells = []cell{{execution.MaxBatch, 1}, {execution.MaxBatch, 16}}
)

// cell is one load.
type cell struct {
	size    int // events of a batch
	clients int
}

// measure measures every cell of a workload.
func (b *bench) measure(ctx context.Context, w workload) ([]appendRow, error) {
	var rows []appendRow
	for _, c := range w.cells {
		measured, err := b.cell(ctx, w, c)
		if err != nil {
			return nil, fmt.Errorf("%s: batches of %d, %d clients: %w", w.name, c.size, c.clients, err)
		}
		rows = append(rows, measured...)
	}
	return rows, nil
}

// cell lets the variants take turns. Each has its own clients through all rounds.
func (b *bench) cell(ctx context.Context, load workload, c cell) ([]appendRow, error) {
	variants := load.variants
	writers := make([][]writer, len(variants))
	rounds := make([][]round, len(variants))
	for i, v := range variants {
		w, closeAll, err := v.open(ctx, c.clients, c.size)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		defer closeAll()
		writers[i] = w
	}
	if err := b.server.checkpoint(ctx); err != nil {
		return nil, err
	}
	for n := range b.options.rounds {
		b.say("%s: batches of %d, %d clients, round %d of %d", load.name, c.size, c.clients, n+1, b.options.rounds)
		for k := range variants {
			i := (k + n) % len(variants) // so that none always comes after the same
			r, err := b.round(ctx, variants[i], writers[i], fmt.Sprintf("%s-%dx%d-%s-%d", load.name, c.size, c.clients, variants[i].name, n+1))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", variants[i].name, err)
			}
			rounds[i] = append(rounds[i], r)
		}
	}
	rows := make([]appendRow, len(variants))
	for i, v := range variants {
		rows[i] = newAppendRow(c, v.name, rounds[i], rounds[0])
	}
	return rows, nil
}

func (b *bench) round(ctx context.Context, v *variant, writers []writer, name string) (round, error) {
	profile, err := startProfile(b.options.profiles, name)
	if err != nil {
		return round{}, err
	}
	started := time.Now()
	r, sent, err := load(ctx, writers, b.options.warmup, b.options.duration)
	if err == nil {
		err = profile.stop()
	}
	if err == nil && v.settle != nil {
		if err = v.settle(ctx); err == nil {
			r.visiblePerSecond = float64(sent) / time.Since(started).Seconds()
		}
	}
	return r, err
}
