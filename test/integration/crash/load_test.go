package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/ingest"
	"verbatim.internal/test/integration/internal/kit"
)

const (
	batchesOfArchive = 12 // at most
	turnEvents       = 50 // at most
	textRepeats      = 12 // at most; one is 70 bytes
)

// load is what agents do, all the time: each writer has archives of its own, sends
// whatever it sends unchanged until it is acknowledged, and remembers what was.
type load struct {
	s     *system
	stop  chan struct{}
	ended sync.WaitGroup

	batches  atomic.Int64 // acknowledged
	repeated atomic.Int64 // sent again

	executions executions

	mu       sync.Mutex
	archives []*record
	errs     []error
}

// record is what one archive was acknowledged to hold.
type record struct {
	id       string
	creation kit.Creation
	run      kit.Run // with an id if there is one

	mu     sync.Mutex
	events []kit.Event
}

// acknowledged returns the events that the archive must serve.
func (r *record) acknowledged() []kit.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[:len(r.events):len(r.events)]
}

// startLoad starts writers and orchestrators, which end with ctx at the latest.
func startLoad(ctx context.Context, s *system, writers, orchestrators int, seed uint64) *load {
	l := &load{s: s, stop: make(chan struct{})}
	for n := range writers {
		w := &writer{load: l, random: kit.Choices(seed, n+1), creator: 2*n + 1, other: 2*n + 2}
		l.repeat(ctx, fmt.Sprintf("writer-%d", n), w.archive)
	}
	for n := range orchestrators {
		name := fmt.Sprintf("orchestrator-%d", n)
		o := &orchestrator{load: l, name: name, random: kit.Choices(seed, writers+n+1)}
		l.repeat(ctx, name, o.execution)
	}
	return l
}

// repeat does something until the load ends or it fails.
func (l *load) repeat(ctx context.Context, name string, do func(ctx context.Context) error) {
	l.ended.Go(func() {
		for !l.stopping() && ctx.Err() == nil {
			if err := do(ctx); err != nil {
				l.mu.Lock()
				l.errs = append(l.errs, fmt.Errorf("%s: %w", name, err))
				l.mu.Unlock()
				return
			}
		}
	})
}

// finish lets every writer get its last answer, and returns what went wrong.
func (l *load) finish() error {
	close(l.stop)
	l.ended.Wait()
	return l.failed()
}

func (l *load) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}

func (l *load) stopping() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

func (l *load) records() []*record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.archives[:len(l.archives):len(l.archives)]
}

// writer is one agent and a second member.
type writer struct {
	*load
	random         *rand.Rand
	creator, other int
	archives       int
}

// archive writes one archive, or a part of it when the load ends.
func (w *writer) archive(ctx context.Context) error {
	w.archives++
	creation := kit.NewCreation(kit.SessionID(w.creator), kit.SessionID(w.other))
	body, err := w.post(ctx, w.creator, kit.ArchivesPath, kit.JSON(creation))
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	var header kit.Header
	if err := json.Unmarshal(body, &header); err != nil {
		return err
	}
	path := kit.ArchivesPath + "/" + header.ConversationID
	if _, err := w.post(ctx, w.other, path+"/confirm", []byte("{}")); err != nil {
		return fmt.Errorf("confirm: %w", err)
	}
	r := &record{id: header.ConversationID, creation: creation}
	w.mu.Lock()
	w.load.archives = append(w.load.archives, r)
	w.mu.Unlock()
	if w.archives%3 == 1 {
		if err := w.register(ctx, r); err != nil {
			return fmt.Errorf("apply a run: %w", err)
		}
	}
	for n := range 1 + w.random.IntN(batchesOfArchive) {
		turn := w.turn(r, n)
		cut := 1 + w.random.IntN(len(turn)) // a turn is one batch or two
		for _, batch := range [][]kit.Event{turn[:cut], turn[cut:]} {
			if len(batch) == 0 {
				continue
			}
			if err := w.append(ctx, path, r, batch); err != nil {
				return fmt.Errorf("append: %w", err)
			}
		}
		if w.stopping() {
			return nil
		}
	}
	return nil
}

// register makes a run known that the archive's first turn links to.
func (w *writer) register(ctx context.Context, r *record) error {
	r.run = kit.Run{
		RunID: kit.UUID(), SessionID: kit.SessionID(w.other), ClientAppID: "app", RouteKey: "orders",
		ThreadID: 1 + w.random.Int64N(1<<40), ClientConversationID: r.creation.ClientConversationID, ClientTurnID: "turn-0",
	}
	file := kit.Registry{Runs: []kit.Run{r.run}}.Encode()
	return kit.Until(ctx, patience, func() error {
		_, err := ingest.Apply(ctx, config.Secret(w.s.IngestDB.ServiceDSN), file)
		return err
	})
}

// turn returns the archive's n-th turn.
func (w *writer) turn(r *record, n int) []kit.Event {
	events := kit.Turn(fmt.Sprintf("turn-%d", n), len(r.events)+1, 2+w.random.IntN(turnEvents-1))
	for i := range events {
		e := &events[i]
		e.Content = strings.Repeat(e.Content, 1+w.random.IntN(textRepeats))
	}
	if n == 0 && r.run.RunID != "" && len(events) > 2 {
		events[1] = kit.Event{
			EventID: events[1].EventID, Sequence: events[1].Sequence, ClientTurnID: r.run.ClientTurnID,
			Kind: "run_link", RunID: r.run.RunID, MemberSessionID: r.run.SessionID,
		}
	} else if n == 0 {
		r.run.ClientTurnID = "" // the run stays without a link
	}
	return events
}

func (w *writer) append(ctx context.Context, path string, r *record, batch []kit.Event) error {
	body, err := w.post(ctx, w.creator, path+"/events", kit.JSON(map[string]any{"events": batch}))
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.events = append(r.events, batch...)
	r.mu.Unlock()
	w.batches.Add(1)
	var header kit.Header
	if err := json.Unmarshal(body, &header); err != nil {
		return err
	}
	if last := batch[len(batch)-1].Sequence; header.LastSequence != last {
		return fmt.Errorf("the acknowledgement says %d, want %d", header.LastSequence, last)
	}
	return nil
}

// post sends the same bytes until they are acknowledged.
func (w *writer) post(ctx context.Context, session int, path string, body []byte) ([]byte, error) {
	return w.send(ctx, kit.Request{Method: http.MethodPost, Path: path, Bearer: w.s.bearer(session), Body: body})
}

// send sends the same request until it is acknowledged.
func (l *load) send(ctx context.Context, request kit.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	first := true
	answer, err := persist(ctx, func() (kit.Response, error) {
		if !first {
			l.repeated.Add(1)
		}
		first = false
		return exchange(ctx, l.s.Ingest, request)
	})
	return answer.Body, err
}

// exchange is one exchange that is not held against the contract.
func exchange(ctx context.Context, e *kit.Endpoint, request kit.Request) (kit.Response, error) {
	r, err := http.NewRequestWithContext(ctx, request.Method, e.URL+request.Path, bytes.NewReader(request.Body))
	if err != nil {
		return kit.Response{}, err
	}
	for name, values := range request.Header {
		r.Header[name] = values
	}
	r.Header.Set("Authorization", "Bearer "+request.Bearer)
	r.Header.Set("Content-Type", "application/json")
	answer, err := e.Client.Do(r)
	if err != nil {
		return kit.Response{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	return kit.Response{Status: answer.StatusCode, Header: answer.Header, Body: content}, err
}
