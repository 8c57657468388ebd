package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// sizes and clients span the table of appends.
var (
	sizes   = []int{50, 1}
	clients = []int{1, 16, 64}
)

// variant is one way to store the batches of one cell of the table.
type variant struct {
	writers []writer
	rounds  []round
}

func measureAppends(ctx context.Context, o options, s server, out io.Writer) ([]appendRow, error) {
	alone, err := deploy(ctx, s, false)
	if err != nil {
		return nil, err
	}
	rows, err := appendTable(ctx, o, s, alone, out)
	err = errors.Join(err, alone.stop(), stored(ctx, s))
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func appendTable(ctx context.Context, o options, s server, d *deployment, out io.Writer) ([]appendRow, error) {
	if o.cpuProf != "" {
		file, err := os.Create(o.cpuProf)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		if err := pprof.StartCPUProfile(file); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	var rows []appendRow
	for _, batch := range sizes {
		for _, n := range clients {
			floorWriters, closeFloor, err := newFloor(ctx, s.floor, n, batch)
			if err != nil {
				return nil, err
			}
			floor, verbatim := &variant{writers: floorWriters}, &variant{writers: d.writers(n, batch)}
			for i := range o.rounds {
				for _, v := range []*variant{floor, verbatim} {
					r, err := load(ctx, v.writers, o.warmup, o.duration)
					if err != nil {
						closeFloor()
						return nil, err
					}
					v.rounds = append(v.rounds, r)
				}
				progress(out, "bench: batches of %d, %d clients, round %d of %d", batch, n, i+1, o.rounds)
			}
			closeFloor()
			rows = append(rows, newAppendRow(batch, n, floor.rounds, verbatim.rounds))
		}
	}
	return rows, nil
}

// stored checks that what was acknowledged is there: the headers and the events agree.
func stored(ctx context.Context, s server) error {
	conn, err := pgx.Connect(ctx, s.ingest)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var wrong int
	err = conn.QueryRow(ctx, `select count(*) from bz_agent_conversation_audits a
		where last_sequence <> (select count(*) from bz_agent_conversation_events e where e.conversation_id = a.conversation_id)`).Scan(&wrong)
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d archives do not hold what was acknowledged", wrong)
	}
	return err
}

// measureVisibility takes the time from an acknowledgement until the admin API's
// detail shows the event, for single events sent one after the other.
func measureVisibility(ctx context.Context, o options, s server) (visibility, error) {
	d, err := deploy(ctx, s, true)
	if err != nil {
		return visibility{}, err
	}
	v, err := d.visibility(ctx, o.samples)
	return v, errors.Join(err, d.stop())
}

// visibleTimeout is when an event counts as lost.
const visibleTimeout = time.Minute

func (d *deployment) visibility(ctx context.Context, samples int) (visibility, error) {
	w := &agentWriter{d: d, batch: 1}
	var appends, delays []time.Duration
	// The first waits until what the appends left in the outbox is projected.
	for i := range samples + 1 {
		if err := w.prepare(ctx); err != nil {
			return visibility{}, err
		}
		started := time.Now()
		if err := w.send(ctx); err != nil {
			return visibility{}, err
		}
		acknowledged := time.Now()
		limit := visibleTimeout
		if i == 0 {
			limit = 10 * visibleTimeout
		}
		if err := d.awaitSequence(ctx, w.id, w.sequence, acknowledged.Add(limit)); err != nil {
			return visibility{}, err
		}
		if i > 0 {
			appends = append(appends, acknowledged.Sub(started))
			delays = append(delays, time.Since(acknowledged))
		}
	}
	slices.Sort(appends)
	slices.Sort(delays)
	return visibility{
		Samples: samples, AppendP50: millis(percentile(appends, 50)), AppendP99: millis(percentile(appends, 99)),
		DelayP50: millis(percentile(delays, 50)), DelayP99: millis(percentile(delays, 99)),
	}, nil
}

// awaitSequence asks, without a pause, until the archive is served up to a sequence.
func (d *deployment) awaitSequence(ctx context.Context, id string, sequence int, deadline time.Time) error {
	path := fmt.Sprintf("/admin/api/conversation-audits/%s?limit=1&after_sequence=%d", id, sequence-1)
	for time.Now().Before(deadline) {
		var detail struct {
			Events []struct {
				Sequence int `json:"sequence"`
			} `json:"events"`
		}
		// Until its creation is projected, the archive is not found.
		if err := d.get(ctx, path, &detail); err == nil && len(detail.Events) == 1 && detail.Events[0].Sequence == sequence {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.New("an acknowledged event did not become visible")
}
