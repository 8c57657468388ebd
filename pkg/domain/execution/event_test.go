package execution_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/refusal"
)

func TestAnEventIsReadWhole(t *testing.T) {
	t.Parallel()
	by := execution.Attribution{UserID: "ada", ChannelID: "42", Role: "impl", InstanceID: "agent-9", TaskID: "t-9"}
	f := eventFields("e/1")
	f.CorrelationID = ptr("corr")
	bare := execution.EventFields{EventID: "e-2", EventType: "timeline.updated", OccurredAt: "2026-06-08T09:00:00Z"}
	batch, err := execution.NewBatch([]execution.EventFields{f, bare}, by)
	if err != nil {
		t.Fatal(err)
	}
	got := batch[0]
	got.Hash = [32]byte{}
	want := execution.Event{
		EventID: "e/1", EventType: "task.completed", OccurredAt: "2026-06-08T09:00:03.120Z", TaskID: "t-1", AgentInstanceID: "agent-7",
		AgentRole: "impl", UserID: "ada", ChannelID: "42", CorrelationID: "corr", Payload: jsontext.Value(`{"attempt":1}`), DroppedFields: []string{},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v", got)
	}
	if e := batch[1]; e.TaskID != "t-9" || e.AgentInstanceID != "agent-9" || string(e.Payload) != `{}` {
		t.Errorf("headers do not fill in: %+v", e)
	}
}

func TestEventsAreRefusedWhole(t *testing.T) {
	t.Parallel()
	broken := map[string]func(*execution.EventFields){
		"no type":     func(f *execution.EventFields) { f.EventType = "" },
		"a bare type": func(f *execution.EventFields) { f.EventType = "task" },
		"no time":     func(f *execution.EventFields) { f.OccurredAt = "" },
		"a local":     func(f *execution.EventFields) { f.OccurredAt = "2026-06-08T09:00:00" },
		"a leap":      func(f *execution.EventFields) { f.OccurredAt = "2016-12-31T23:59:60Z" },
		"ten digits":  func(f *execution.EventFields) { f.OccurredAt = "2026-06-08T09:00:00.0123456789Z" },
		"prose":       func(f *execution.EventFields) { f.OccurredAt = "yesterday" },
		"a payload":   func(f *execution.EventFields) { f.Payload = jsontext.Value(`{"status":"two words"}`) },
	}
	for what, name := range unnamed() {
		broken["id "+what] = func(f *execution.EventFields) { f.EventID = name }
		broken["task "+what] = func(f *execution.EventFields) { f.TaskID = &name }
		broken["instance "+what] = func(f *execution.EventFields) { f.AgentInstanceID = &name }
		broken["correlation "+what] = func(f *execution.EventFields) { f.CorrelationID = &name }
	}
	for name, breaks := range broken {
		f := eventFields("e-2")
		breaks(&f)
		_, err := execution.NewBatch([]execution.EventFields{eventFields("e-1"), f}, nobody)
		if refusal.CodeOf(err) != refusal.InvalidRequest {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_, err := execution.NewBatch(nil, nobody)
	wantCode(t, err, refusal.InvalidRequest)
	_, err = execution.NewBatch(make([]execution.EventFields, 201), nobody)
	wantCode(t, err, refusal.InvalidRequest)
}

// The hash is of what is kept of the body: not of spellings, of what was dropped, nor of headers.
func TestTheHashTellsBodiesApart(t *testing.T) {
	t.Parallel()
	hash := func(change func(*execution.EventFields), by execution.Attribution) [32]byte {
		f := eventFields("e")
		change(&f)
		batch, err := execution.NewBatch([]execution.EventFields{f}, by)
		if err != nil {
			t.Fatal(err)
		}
		return batch[0].Hash
	}
	stays := func(*execution.EventFields) {}
	first := hash(stays, nobody)
	for name, change := range map[string]func(*execution.EventFields){
		"nothing":         stays,
		"a correlation":   func(f *execution.EventFields) { f.CorrelationID = ptr("c") },
		"a dropped field": func(f *execution.EventFields) { f.Payload = jsontext.Value(`{"attempt":1.0,"prompt":"x"}`) },
		"an offset":       func(f *execution.EventFields) { f.OccurredAt = "2026-06-08T09:00:03.120Z" },
	} {
		if hash(change, execution.Attribution{UserID: "ada", TaskID: "t-9", Role: "impl"}) != first {
			t.Errorf("%s makes another event", name)
		}
	}
	for name, change := range map[string]func(*execution.EventFields){
		"its type":     func(f *execution.EventFields) { f.EventType = "task.failed" },
		"its id":       func(f *execution.EventFields) { f.EventID = "E" },
		"its digits":   func(f *execution.EventFields) { f.OccurredAt = "2026-06-08T09:00:03.12Z" },
		"its task":     func(f *execution.EventFields) { f.TaskID = nil },
		"its instance": func(f *execution.EventFields) { f.AgentInstanceID, f.TaskID = f.TaskID, f.AgentInstanceID },
		"its payload":  func(f *execution.EventFields) { f.Payload = nil },
	} {
		if hash(change, nobody) == first {
			t.Errorf("%s does not matter", name)
		}
	}
}

func TestRecordDecides(t *testing.T) {
	t.Parallel()
	e1, e2 := newEvents(t, eventFields("e-1"))[0], newEvents(t, eventFields("e-2"))[0]
	other := eventFields("e-1")
	other.EventType = "task.failed"
	e1other := newEvents(t, other)[0]
	of := func(correlation string) execution.Event {
		f := eventFields("e-3")
		f.CorrelationID = &correlation
		return newEvents(t, f)[0]
	}
	stored := map[string][32]byte{"e-1": e1.Hash}
	for name, tc := range map[string]struct {
		batch     []execution.Event
		history   execution.EventHistory
		positions []int
		err       error
	}{
		"the first":             {[]execution.Event{e1, e2}, execution.EventHistory{}, []int{1, 2}, nil},
		"after others":          {[]execution.Event{e2}, execution.EventHistory{LastPosition: 7, Stored: stored}, []int{8}, nil},
		"one known":             {[]execution.Event{e1, e2}, execution.EventHistory{LastPosition: 7, Stored: stored}, []int{8}, nil},
		"all known":             {[]execution.Event{e1}, execution.EventHistory{LastPosition: 7, Stored: stored}, nil, nil},
		"twice in the batch":    {[]execution.Event{e1, e2, e1}, execution.EventHistory{}, []int{1, 2}, nil},
		"another body":          {[]execution.Event{e2, e1other}, execution.EventHistory{LastPosition: 7, Stored: stored}, nil, execution.ErrEvent},
		"another in the batch":  {[]execution.Event{e1, e1other}, execution.EventHistory{}, nil, execution.ErrEvent},
		"its correlation":       {[]execution.Event{of("c")}, execution.EventHistory{CorrelationID: "c"}, []int{1}, nil},
		"another correlation":   {[]execution.Event{e1, of("d")}, execution.EventHistory{CorrelationID: "c"}, nil, execution.ErrCorrelation},
		"an unknown one":        {[]execution.Event{of("d")}, execution.EventHistory{}, nil, execution.ErrCorrelation},
		"the last that may be":  {[]execution.Event{e1}, execution.EventHistory{LastPosition: 999_999}, []int{1_000_000}, nil},
		"one more":              {[]execution.Event{e1}, execution.EventHistory{LastPosition: 1_000_000}, nil, refusal.New(refusal.RunLimit, "")},
		"known, though full":    {[]execution.Event{e1}, execution.EventHistory{LastPosition: 1_000_000, Stored: stored}, nil, nil},
		"one too many of a few": {[]execution.Event{e1, e2}, execution.EventHistory{LastPosition: 999_999}, nil, refusal.New(refusal.RunLimit, "")},
	} {
		fresh, err := execution.Record(tc.batch, tc.history)
		if tc.err != nil {
			if refusal.CodeOf(err) != refusal.CodeOf(tc.err) {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		var positions []int
		for _, e := range fresh {
			positions = append(positions, e.Position)
		}
		if err != nil || fmt.Sprint(positions) != fmt.Sprint(tc.positions) {
			t.Errorf("%s: got %v, %v", name, positions, err)
		}
	}
}

// The stored hashes hold for ever: what they cover never changes.
func TestTheHashIsOfCanonicalJSON(t *testing.T) {
	t.Parallel()
	bare := execution.EventFields{EventID: "e", EventType: "a.b", OccurredAt: "2026-06-08T09:00:00Z"}
	batch := newEvents(t, eventFields("e/1"), bare)
	for i, want := range []any{
		map[string]any{
			"agent_instance_id": "agent-7", "event_id": "e/1", "event_type": "task.completed", "occurred_at": "2026-06-08T09:00:03.120Z",
			"payload": map[string]any{"attempt": 1}, "task_id": "t-1",
		},
		map[string]any{"event_id": "e", "event_type": "a.b", "occurred_at": "2026-06-08T09:00:00Z", "payload": map[string]any{}},
	} {
		if sum, err := canonical.Sum(want); err != nil || sum != batch[i].Hash {
			t.Errorf("event %d has another hash", i)
		}
	}
}

// However events are cut into batches and repeated, each is stored once, in the order of
// its first arrival, numbered from 1 without gaps.
func TestBatchBoundariesAndRepetitionsChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.SliceOfN(rapid.IntRange(1, 20), 1, 60).Draw(t, "sent")
		history := execution.EventHistory{Stored: map[string][32]byte{}}
		var stored []string
		for rest := sent; len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 9)).Draw(t, "size")
			var fields []execution.EventFields
			for _, id := range rest[:n] {
				fields = append(fields, eventFields(fmt.Sprint(id)))
			}
			rest = rest[n:]
			batch, err := execution.NewBatch(fields, nobody)
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := execution.Record(batch, history)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range fresh {
				if e.Position != len(stored)+1 {
					t.Fatalf("position %d after %d", e.Position, len(stored))
				}
				stored, history.Stored[e.EventID] = append(stored, e.EventID), e.Hash
			}
			history.LastPosition = len(stored)
		}
		var want []string
		seen := map[int]bool{}
		for _, id := range sent {
			if !seen[id] {
				want = append(want, fmt.Sprint(id))
			}
			seen[id] = true
		}
		if strings.Join(stored, " ") != strings.Join(want, " ") {
			t.Fatalf("stored %v, want %v", stored, want)
		}
	})
}
