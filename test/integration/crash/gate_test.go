package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"verbatim.internal/test/integration/internal/kit"
)

// delivery is one batch on its way from a relay to auditview.
type delivery struct {
	topic string
	ids   []string // of its CloudEvents, in order
}

// has tells whether the batch has a message of the stream.
func (d delivery) has(stream string) bool {
	return slices.ContainsFunc(d.ids, func(id string) bool { return strings.Contains(id, stream) })
}

// snapshot tells whether the batch is a part of one: kind/stream/version/part.
func (d delivery) snapshot() bool { return strings.Count(d.ids[0], "/") == 3 }

// gate stands between a relay and auditview's internal listener. What passes it arrives,
// even when the relay is gone meanwhile, as on a network. Safe for concurrent use.
type gate struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	target string
	before func(d delivery)
	after  func(d delivery, status int) (answer bool)
	passed []delivery // that auditview has acknowledged
}

// newGate returns an open gate. It is closed at the test's end.
func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{t: t}
	g.server = httptest.NewServer(http.HandlerFunc(g.pass))
	t.Cleanup(g.server.Close)
	return g
}

// to sets where the gate leads, and returns where it begins.
func (g *gate) to(url string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = url
	return g.server.URL
}

// onBefore sets what is called with each batch before auditview gets it; nil is nothing.
func (g *gate) onBefore(f func(d delivery)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = f
}

// onAfter sets what is called when auditview has answered and the relay does not know
// yet; it says whether the relay shall get the answer. Nil is nothing.
func (g *gate) onAfter(f func(d delivery, status int) (answer bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.after = f
}

// acknowledged returns the batches that auditview has acknowledged.
func (g *gate) acknowledged() []delivery {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.passed)
}

func (g *gate) pass(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the relay is gone
	}
	var events []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &events); err != nil {
		g.t.Errorf("a batch is no array of events: %v", err)
		panic(http.ErrAbortHandler)
	}
	d := delivery{topic: r.URL.Path}
	for _, e := range events {
		d.ids = append(d.ids, e.ID)
	}
	g.mu.Lock()
	before, target := g.before, g.target
	g.mu.Unlock()
	if before != nil {
		before(d)
	}
	answer, err := forward(r, target, body)
	if err != nil {
		panic(http.ErrAbortHandler) // auditview is gone: no answer
	}
	g.mu.Lock()
	if answer.Status == http.StatusOK {
		g.passed = append(g.passed, d)
	}
	after := g.after
	g.mu.Unlock()
	if after != nil && !after(d, answer.Status) {
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body)
}

func forward(r *http.Request, target string, body []byte) (kit.Response, error) {
	ctx := context.WithoutCancel(r.Context())
	onward, err := http.NewRequestWithContext(ctx, r.Method, target+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return kit.Response{}, err
	}
	onward.Header = r.Header.Clone()
	answer, err := http.DefaultClient.Do(onward)
	if err != nil {
		return kit.Response{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	return kit.Response{Status: answer.StatusCode, Header: answer.Header, Body: content}, err
}

// event is something that happens once and may be told more than once.
type event struct {
	once sync.Once
	c    chan struct{}
}

func newEvent() *event { return &event{c: make(chan struct{})} }

func (e *event) happen() { e.once.Do(func() { close(e.c) }) }

// await waits until the event has happened.
func (e *event) await(t *testing.T) {
	t.Helper()
	kit.Eventually(t, patience, func() error {
		select {
		case <-e.c:
			return nil
		default:
			return context.DeadlineExceeded
		}
	})
}
