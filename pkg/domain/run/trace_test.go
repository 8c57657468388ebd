package run_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/domain/run"
)

func TestATraceEventKeepsItsKindTimeJobAndMetadata(t *testing.T) {
	t.Parallel()
	f := traceFields("e:1")
	f.JobID = ptr(strings.ToUpper(jobA))
	e := newTrace(t, f)[0]
	want := run.TraceEvent{
		EventID: "e:1", Event: "tool.called", OccurredAt: "2026-06-08T09:00:03.120Z", JobID: jobA,
		Metadata: jsontext.Value(`{"duration_ms":120,"tool":"orders.search"}`),
		Hash: sha256.Sum256([]byte(`{"event":"tool.called","event_id":"e:1","job_id":"` + jobA +
			`","metadata":{"duration_ms":120,"tool":"orders.search"},"occurred_at":"2026-06-08T09:00:03.120Z"}`)),
	}
	if fmt.Sprintf("%+v", e) != fmt.Sprintf("%+v", want) {
		t.Errorf("got %+v", e)
	}
	bare := newTrace(t, run.TraceFields{EventID: "e", Event: "run.paused", OccurredAt: "2026-06-08T09:00:03Z"})[0]
	if string(bare.Metadata) != `{}` || bare.JobID != "" || bare.DroppedFields != 0 {
		t.Errorf("got %+v", bare)
	}
}

func TestTraceEventsAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*run.TraceFields){
		"no id":                      func(f *run.TraceFields) { f.EventID = "" },
		"a blank in an id":           func(f *run.TraceFields) { f.EventID = "e 1" },
		"an id that is a secret":     func(f *run.TraceFields) { f.EventID = secret },
		"no name":                    func(f *run.TraceFields) { f.Event = "" },
		"one part":                   func(f *run.TraceFields) { f.Event = "tool" },
		"five parts":                 func(f *run.TraceFields) { f.Event = "a.b.c.d.e" },
		"an empty part":              func(f *run.TraceFields) { f.Event = "a..b" },
		"a last dot":                 func(f *run.TraceFields) { f.Event = "a.b." },
		"an upper-case part":         func(f *run.TraceFields) { f.Event = "tool.Called" },
		"a part with a digit first":  func(f *run.TraceFields) { f.Event = "tool.1" },
		"a dash":                     func(f *run.TraceFields) { f.Event = "tool.re-called" },
		"a long name":                func(f *run.TraceFields) { f.Event = "a." + strings.Repeat("b", 127) },
		"no time":                    func(f *run.TraceFields) { f.OccurredAt = "" },
		"a job that is no UUID":      func(f *run.TraceFields) { f.JobID = ptr("job-1") },
		"an empty job":               func(f *run.TraceFields) { f.JobID = ptr("") },
		"metadata that is no object": func(f *run.TraceFields) { f.Metadata = jsontext.Value(`[]`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := traceFields("e-2")
			change(&f)
			_, err := run.NewTraceBatch([]run.TraceFields{traceFields("e-1"), f})
			wantCode(t, err, refusal.InvalidRequest)
		})
	}
	_, err := run.NewTraceBatch(nil)
	wantCode(t, err, refusal.InvalidRequest)
	_, err = run.NewTraceBatch(make([]run.TraceFields, run.MaxBatchEvents+1))
	wantCode(t, err, refusal.InvalidRequest)
}

func TestAnyDottedNameIsTaken(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.b", "tool.called", "delivery.failed", "a1_.b_2.c.d", "a." + strings.Repeat("b", 126)} {
		f := traceFields("e")
		f.Event = name
		newTrace(t, f)
	}
}

func TestWhatIsStoredIsSkippedAndWhatContradictsItRefusesAll(t *testing.T) {
	t.Parallel()
	first := newTrace(t, traceFields("e-1"))[0]
	changed := traceFields("e-1")
	changed.Event = "tool.failed"
	dropping := traceFields("e-1")
	dropping.Metadata = jsontext.Value(`{"tool":"orders.search","duration_ms":120,"prompt":"another time"}`)
	other := traceFields("e-2")
	other.JobID = ptr(jobB)
	stored := map[string][32]byte{"e-1": first.Hash}
	for name, tc := range map[string]struct {
		batch   []run.TraceFields
		history run.TraceHistory
		fresh   []int // positions
		want    refusal.Code
	}{
		"all new":                   {[]run.TraceFields{traceFields("e-1"), other}, run.TraceHistory{}, []int{1, 2}, ""},
		"after others":              {[]run.TraceFields{other}, run.TraceHistory{LastPosition: 7, Stored: stored}, []int{8}, ""},
		"one is stored":             {[]run.TraceFields{traceFields("e-1"), other}, run.TraceHistory{LastPosition: 1, Stored: stored}, []int{2}, ""},
		"all are stored":            {[]run.TraceFields{traceFields("e-1")}, run.TraceHistory{LastPosition: 1, Stored: stored}, nil, ""},
		"what differs was dropped":  {[]run.TraceFields{dropping}, run.TraceHistory{LastPosition: 1, Stored: stored}, nil, ""},
		"twice in the batch":        {[]run.TraceFields{other, other}, run.TraceHistory{}, []int{1}, ""},
		"another body":              {[]run.TraceFields{other, changed}, run.TraceHistory{LastPosition: 1, Stored: stored}, nil, refusal.TraceEventConflict},
		"two bodies in the batch":   {[]run.TraceFields{traceFields("e-1"), changed}, run.TraceHistory{}, nil, refusal.TraceEventConflict},
		"this run's job":            {[]run.TraceFields{other}, run.TraceHistory{Jobs: map[identity.UUID]identity.UUID{jobB: runA}}, []int{1}, ""},
		"another run's job":         {[]run.TraceFields{other}, run.TraceHistory{Jobs: map[identity.UUID]identity.UUID{jobB: runB}}, nil, refusal.TraceEventConflict},
		"the last one":              {[]run.TraceFields{other}, run.TraceHistory{LastPosition: run.MaxTraceEvents - 1}, []int{run.MaxTraceEvents}, ""},
		"one too many":              {[]run.TraceFields{other}, run.TraceHistory{LastPosition: run.MaxTraceEvents}, nil, refusal.RunLimit},
		"none too many":             {[]run.TraceFields{traceFields("e-1")}, run.TraceHistory{LastPosition: run.MaxTraceEvents, Stored: stored}, nil, ""},
		"a conflict before a limit": {[]run.TraceFields{other, changed}, run.TraceHistory{LastPosition: run.MaxTraceEvents, Stored: stored}, nil, refusal.TraceEventConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh, err := run.Record(runA, newTrace(t, tc.batch...), tc.history)
			wantCode(t, err, tc.want)
			var positions []int
			for _, e := range fresh {
				positions = append(positions, e.Position)
			}
			if fmt.Sprint(positions) != fmt.Sprint(tc.fresh) {
				t.Errorf("got positions %v", positions)
			}
		})
	}
}

// However a host cuts its events into batches, and however often it repeats some of them,
// the run has each once, numbered in the order of arrival.
func TestARunHasEachEventOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := run.TraceHistory{Stored: map[string][32]byte{}}
		var order []string
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			ids := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 10).Draw(t, "events")
			fields := make([]run.TraceFields, len(ids))
			for i, id := range ids {
				fields[i] = traceFields(fmt.Sprintf("e-%d", id))
			}
			batch, err := run.NewTraceBatch(fields)
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := run.Record(runA, batch, h)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range fresh {
				if _, known := h.Stored[e.EventID]; known || e.Position != h.LastPosition+1 {
					t.Fatalf("%s at %d after %d", e.EventID, e.Position, h.LastPosition)
				}
				h.Stored[e.EventID], h.LastPosition = e.Hash, e.Position
				order = append(order, e.EventID)
			}
		}
		if len(order) != len(h.Stored) || len(order) != h.LastPosition {
			t.Fatalf("%d events, %d ids, last position %d", len(order), len(h.Stored), h.LastPosition)
		}
	})
}
