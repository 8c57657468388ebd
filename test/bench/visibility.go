package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// visibleTimeout is when an acknowledged event counts as lost.
	visibleTimeout = time.Minute
	// openClients is how many agents share an open loop.
	openClients = 16
	// lookedAt is how many events a second administrators look for at most: looking costs too.
	lookedAt = 25
)

// visibilities measure the time from an acknowledgement until the admin API's detail shows
// the event, in open loops: one event at each tick, at half of what the services take in
// a closed loop, and at a slow pace. The append's own time is that of the same events.
func (b *bench) visibilities(ctx context.Context) ([]visibility, error) {
	if err := b.drained(ctx); err != nil {
		return nil, err
	}
	writers := newAgents(b.both.ingestURL, openClients, 1, &b.complete.events)
	capacity, _, err := load(ctx, writers, b.options.warmup, max(b.options.duration, time.Second))
	if err != nil {
		return nil, err
	}
	var rows []visibility
	for _, l := range []struct {
		name    string
		period  time.Duration
		samples int
	}{
		{"half of the capacity", time.Duration(2 * float64(time.Second) / capacity.perSecond), b.options.samples},
		{"one a second", b.options.period, b.options.slowSamples},
	} {
		b.say("delay until visible, %s, one event every %s", l.name, l.period.Round(time.Microsecond))
		if err := b.drained(ctx); err != nil {
			return nil, err
		}
		m, err := b.openLoop(ctx, l.period, l.samples)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		rows = append(rows, m.result(l.name, l.period))
	}
	return rows, nil
}

// openLoop sends an event at each tick until enough of them were looked for.
func (b *bench) openLoop(ctx context.Context, period time.Duration, samples int) (*visibilityMeter, error) {
	m := &visibilityMeter{}
	free := make(chan *looker, openClients)
	for range openClients {
		l := &looker{agent: &agentWriter{url: b.both.ingestURL, who: usual, batch: newBatch(1), stored: &b.complete.events}}
		if err := l.connect(ctx, b.both.auditviewURL); err != nil {
			return nil, err
		}
		defer l.disconnect()
		free <- l
	}
	every := max(1, int(time.Second/lookedAt/period))
	tick := time.NewTicker(period)
	defer tick.Stop()
	var sending sync.WaitGroup
	defer sending.Wait()
	for n := 0; m.count() < samples; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		l := <-free
		sending.Go(func() {
			m.record(l.send(ctx, n%every == 0))
			free <- l
		})
		if err := m.failed(); err != nil {
			return nil, err
		}
	}
	return m, m.failed()
}

// looker is one agent, and one administrator who looks at its archive.
type looker struct {
	agent *agentWriter
	admin *keptAlive
}

// connect makes both sides' statements and connections known.
func (l *looker) connect(ctx context.Context, auditviewURL string) error {
	const rounds = 10
	if err := l.agent.connect(ctx); err != nil {
		return fmt.Errorf("connect to ingest: %w", err)
	}
	var err error
	if l.admin, err = dial(ctx, auditviewURL, adminToken); err != nil {
		return fmt.Errorf("connect to auditview: %w", err)
	}
	if err := l.agent.prepare(ctx); err != nil {
		return err
	}
	for range rounds {
		if _, err := l.send(ctx, true); err != nil {
			return err
		}
	}
	return nil
}

func (l *looker) disconnect() {
	l.agent.disconnect()
	l.admin.close()
}

// sighting is one event that was looked for.
type sighting struct{ appended, delayed, polled time.Duration }

// send sends the prepared event and, if it is to be looked for, asks for it without a
// pause until it is served. The answer that shows it may have been one request late.
func (l *looker) send(ctx context.Context, look bool) (*sighting, error) {
	started := time.Now()
	if err := l.agent.send(ctx); err != nil {
		return nil, err
	}
	acknowledged := time.Now()
	s := &sighting{appended: acknowledged.Sub(started)}
	path := fmt.Sprintf("%s/%s?limit=1&after_sequence=%d", adminArchivesPath, l.agent.id, l.agent.last-1)
	for asked := acknowledged; look; {
		visible, err := l.visible(path)
		if err != nil {
			return nil, err
		}
		answered := time.Now()
		s.polled = answered.Sub(asked)
		if visible {
			s.delayed = answered.Sub(acknowledged)
			break
		}
		if answered.Sub(acknowledged) > visibleTimeout {
			return nil, errors.New("an acknowledged event did not become visible")
		}
		asked = answered
	}
	if err := l.agent.prepare(ctx); err != nil || !look {
		return nil, err
	}
	return s, nil
}

// visible asks whether the last event is served. Until its creation is projected, an
// archive is not found.
func (l *looker) visible(path string) (bool, error) {
	var detail struct {
		Events []struct {
			Sequence int `json:"sequence"`
		} `json:"events"`
	}
	err := l.admin.do(http.MethodGet, path, nil, &detail)
	if status := (statusError{}); errors.As(err, &status) && status.code == http.StatusNotFound {
		return false, nil
	}
	return len(detail.Events) == 1 && detail.Events[0].Sequence == l.agent.last, err
}

// visibilityMeter collects what was seen. Safe for concurrent use.
type visibilityMeter struct {
	mu                     sync.Mutex
	appends, delays, polls []time.Duration
	err                    error
}

func (m *visibilityMeter) record(s *sighting, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && m.err == nil {
		m.err = err
	}
	if s != nil {
		m.appends, m.delays, m.polls = append(m.appends, s.appended), append(m.delays, s.delayed), append(m.polls, s.polled)
	}
}

func (m *visibilityMeter) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.delays)
}

func (m *visibilityMeter) failed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *visibilityMeter) result(name string, period time.Duration) visibility {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, durations := range [][]time.Duration{m.appends, m.delays, m.polls} {
		slices.Sort(durations)
	}
	return visibility{
		Load: name, Samples: len(m.delays), Period: period.String(),
		AppendP50: millis(percentile(m.appends, 50)), AppendP99: millis(percentile(m.appends, 99)),
		DelayP50: millis(percentile(m.delays, 50)), DelayP99: millis(percentile(m.delays, 99)),
		PollP50: millis(percentile(m.polls, 50)),
	}
}
