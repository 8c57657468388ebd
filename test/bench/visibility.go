package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// visibleTimeout is when an acknowledged event counts as lost.
const visibleTimeout = time.Minute

// visibility measures the time from an acknowledgement until the admin API's detail
// shows the event: one event at each tick, asked for without a pause. The answer that
// shows it may have been one request late, so the delay is known to within pollP50.
func (b *bench) visibility(ctx context.Context) (*visibility, error) {
	b.say("delay until visible, %d events, one every %s", b.options.samples, b.options.period)
	if err := b.drained(ctx); err != nil {
		return nil, err
	}
	agent := &agentWriter{url: b.both.ingestURL, batch: newBatch(1), stored: &b.complete.events}
	if err := agent.connect(ctx); err != nil {
		return nil, fmt.Errorf("connect to ingest: %w", err)
	}
	defer agent.disconnect()
	admin, err := dial(ctx, b.both.auditviewURL, adminToken)
	if err != nil {
		return nil, fmt.Errorf("connect to auditview: %w", err)
	}
	defer admin.close()
	m := &visibilityMeter{agent: agent, admin: admin}
	tick := time.NewTicker(b.options.period)
	defer tick.Stop()
	if err := m.warm(ctx); err != nil {
		return nil, err
	}
	for range b.options.samples {
		if err := agent.prepare(ctx); err != nil {
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := m.sample(ctx); err != nil {
			return nil, err
		}
	}
	return m.result(b.options.period), nil
}

// visibilityMeter is one agent and one administrator who looks at its archive.
type visibilityMeter struct {
	agent                  *agentWriter
	admin                  *keptAlive
	appends, delays, polls []time.Duration
}

// warm makes both sides' statements and connections known.
func (m *visibilityMeter) warm(ctx context.Context) error {
	const rounds = 20
	for range rounds {
		if err := m.agent.prepare(ctx); err != nil {
			return err
		}
		if err := m.sample(ctx); err != nil {
			return err
		}
	}
	m.appends, m.delays, m.polls = nil, nil, nil
	return nil
}

func (m *visibilityMeter) sample(ctx context.Context) error {
	started := time.Now()
	if err := m.agent.send(ctx); err != nil {
		return err
	}
	acknowledged := time.Now()
	m.appends = append(m.appends, acknowledged.Sub(started))
	path := fmt.Sprintf("%s/%s?limit=1&after_sequence=%d", adminArchivesPath, m.agent.id, m.agent.last-1)
	for asked := acknowledged; ; {
		visible, err := m.visible(path)
		if err != nil {
			return err
		}
		answered := time.Now()
		m.polls = append(m.polls, answered.Sub(asked))
		if visible {
			m.delays = append(m.delays, answered.Sub(acknowledged))
			return nil
		}
		if answered.Sub(acknowledged) > visibleTimeout {
			return errors.New("an acknowledged event did not become visible")
		}
		asked = answered
	}
}

// visible asks whether the last event is served. Until its creation is projected, an
// archive is not found.
func (m *visibilityMeter) visible(path string) (bool, error) {
	var detail struct {
		Events []struct {
			Sequence int `json:"sequence"`
		} `json:"events"`
	}
	err := m.admin.do(http.MethodGet, path, nil, &detail)
	if status := (statusError{}); errors.As(err, &status) && status.code == http.StatusNotFound {
		return false, nil
	}
	return len(detail.Events) == 1 && detail.Events[0].Sequence == m.agent.last, err
}

func (m *visibilityMeter) result(period time.Duration) *visibility {
	for _, durations := range [][]time.Duration{m.appends, m.delays, m.polls} {
		slices.Sort(durations)
	}
	return &visibility{
		Samples: len(m.delays), Period: period.String(),
		AppendP50: millis(percentile(m.appends, 50)), AppendP99: millis(percentile(m.appends, 99)),
		DelayP50: millis(percentile(m.delays, 50)), DelayP99: millis(percentile(m.delays, 99)),
		PollP50: millis(percentile(m.polls, 50)),
	}
}
