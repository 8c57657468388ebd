package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// idleFor is how long the services are left alone.
	idleFor = 10 * time.Second
	// bigClients send bodies of bigBody bytes: as much text as a batch may have, escaped.
	bigClients  = 64
	bigBody     = 2 << 20
	bigMessages = 8
	bigText     = 32 << 10
)

// footprint is what both services take as processes.
type footprint struct {
	IdleCPU    float64 `json:"idle_cpu"`          // of one core
	IdleMemory int64   `json:"idle_memory_bytes"` // resident
	BusyMemory int64   `json:"busy_memory_bytes"` // resident, the highest
	BigBodies  int64   `json:"big_bodies"`        // that were acknowledged meanwhile
}

// footprint measures both services at rest, and while many clients send the largest
// bodies that there may be.
func (b *bench) footprint(ctx context.Context) (*footprint, error) {
	b.say("the services as processes, idle for %s", b.options.idle)
	p, err := startPrograms(ctx, b.server.processIngest, b.server.processAuditview)
	if err != nil {
		return nil, err
	}
	f, err := b.measureFootprint(ctx, p)
	return f, errors.Join(err, p.stop())
}

func (b *bench) measureFootprint(ctx context.Context, p *programs) (*footprint, error) {
	var stored atomic.Int64
	if _, _, err := load(ctx, newAgents(p.ingest.url, 2, 1, &stored), 0, b.options.duration); err != nil {
		return nil, err
	}
	f := &footprint{}
	before, err := p.cpu()
	if err != nil {
		return nil, err
	}
	rest := time.NewTimer(b.options.idle)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	after, err := p.cpu()
	if err != nil {
		return nil, err
	}
	f.IdleCPU = (after - before).Seconds() / b.options.idle.Seconds()
	if f.IdleMemory, err = p.memory("VmRSS"); err != nil {
		return nil, err
	}
	b.say("%d clients send bodies of %d bytes", bigClients, bigBody)
	if err := sendBig(ctx, p.ingest.url, b.options.duration, &f.BigBodies); err != nil {
		return nil, err
	}
	f.BusyMemory, err = p.memory("VmHWM")
	return f, err
}

// sendBig has the clients send for so long, each to archives of its own.
func sendBig(ctx context.Context, url string, duration time.Duration, sent *int64) error {
	until := time.Now().Add(duration)
	var acknowledged atomic.Int64
	errs := make([]error, bigClients)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			w := &agentWriter{url: url, who: usual}
			if errs[i] = w.connect(ctx); errs[i] != nil {
				return
			}
			defer w.disconnect()
			for errs[i] == nil && time.Now().Before(until) {
				if errs[i] = w.create(); errs[i] == nil {
					errs[i] = w.conn.exchange(http.MethodPost, w.path, bigBatch())
				}
				acknowledged.Add(1)
			}
		})
	}
	group.Wait()
	*sent = acknowledged.Load()
	return errors.Join(errs...)
}

// bigBatch is a body of nearly bigBody bytes that is valid.
func bigBatch() []byte {
	var events []string
	for i := range bigMessages - 1 {
		events = append(events, fmt.Sprintf(`{"event_id":"e%d","sequence":%d,"client_turn_id":"t","kind":"user_message","content":"%s"}`,
			i+2, i+2, strings.Repeat(`\u0061`, bigText)))
	}
	body := `{"events":[{"event_id":"e1","sequence":1,"client_turn_id":"t","kind":"turn_start"},` + strings.Join(events, ",") + `]}`
	return []byte(body + strings.Repeat(" ", bigBody-len(body)))
}
