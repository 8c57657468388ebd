package runv1_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/runv1"
)

var update = flag.Bool("update", false, "write the golden files")

const runID = "223e4567-e89b-42d3-a456-426614174001"

var at = time.Date(2026, 3, 4, 5, 6, 7, 890123000, time.UTC)

func ptr[T any](v T) *T { return &v }

func run() runv1.Run {
	return runv1.Run{
		RunID: runID, SessionID: "123e4567-e89b-42d3-a456-426614174001",
		ClientAppID: "crm-demo", RouteKey: "customers", ThreadID: runv1.MaxThreadID,
		ClientConversationID: "conv-1", ClientTurnID: "turn-1", CreatedAt: at,
	}
}

func completed() runv1.Completed {
	return runv1.Completed{
		RunID: runID, Status: runv1.StatusCompleted, Model: "vendor/model-4.1:preview", Runtime: "agent@2.0+local",
		Usage: &runv1.Usage{
			InputTokens: ptr(int64(0)), OutputTokens: ptr(int64(1)<<53 - 1), ToolCalls: ptr(int64(3)), CostUSD: ptr(0.0000125),
		},
		CompletedAt: at,
	}
}

func events() []runv1.TraceEvent {
	return []runv1.TraceEvent{
		{
			Position: 7, EventID: "e-7", Event: "tool.called", OccurredAt: "2026-03-04T05:06:07.123456789Z",
			JobID: "323e4567-e89b-42d3-a456-426614174001", DroppedFields: 2, CreatedAt: at,
			Metadata: jsontext.Value(`{"args_bytes":120,"ok":true,"path":"/v1/orders/{id}","tool":"orders.search"}`),
		},
		{
			Position: 8, EventID: "e-8", Event: "run.step_2.ended", OccurredAt: "2026-03-04T05:06:08Z",
			Metadata: jsontext.Value(`{}`), CreatedAt: at,
		},
	}
}

func traced() runv1.TraceRecorded { return runv1.TraceRecorded{RunID: runID, Events: events()} }

func snapshot() runv1.Snapshot {
	return runv1.Snapshot{Run: run(), Completion: ptr(completed()), Events: events(), Last: true}
}

func TestMessagesHaveStableBytes(t *testing.T) {
	t.Parallel()
	golden(t, "run", run())
	golden(t, "completed", completed())
	golden(t, "completed_bare", runv1.Completed{RunID: runID, Status: runv1.StatusCancelled, CompletedAt: at})
	golden(t, "trace_recorded", traced())
	golden(t, "snapshot", snapshot())
	golden(t, "snapshot_bare", runv1.Snapshot{Run: run(), Events: []runv1.TraceEvent{}, Last: true, Replace: true})
}

func golden[M runv1.Message](t *testing.T, name string, m M) {
	t.Helper()
	data, err := runv1.Marshal(m)
	require.NoError(t, err)
	path := filepath.Join("testdata", name+".json")
	if *update {
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(data))

	back, err := runv1.Unmarshal[M](want)
	require.NoError(t, err)
	require.Equal(t, m, back)
}

func TestTypesAreTheContracts(t *testing.T) {
	t.Parallel()
	require.Equal(t, "run", runv1.StreamKind)
	require.Equal(t, []string{
		"verbatim.run.recorded.v1", "verbatim.run.completed.v1", "verbatim.run.trace_recorded.v1", "verbatim.run.snapshot.v1",
	}, []string{run().Type(), completed().Type(), traced().Type(), snapshot().Type()})
}

func TestUnmarshalIsStrict(t *testing.T) {
	t.Parallel()
	data, err := runv1.Marshal(traced())
	require.NoError(t, err)
	for name, change := range map[string]func(string) string{
		"unknown member":   func(s string) string { return strings.Replace(s, `{"run_id"`, `{"secret":"text","run_id"`, 1) },
		"duplicate member": func(s string) string { return strings.Replace(s, `"event_id":`, `"event_id":"x","event_id":`, 1) },
		"duplicate name":   func(s string) string { return strings.Replace(s, `{"args_bytes"`, `{"ok":true,"args_bytes"`, 1) },
		"other case":       func(s string) string { return strings.Replace(s, `"event_id"`, `"Event_id"`, 1) },
		"trailing data":    func(s string) string { return s + "{}" },
		"a list":           func(s string) string { return "[" + s + "]" },
		"invalid UTF-8":    func(s string) string { return strings.Replace(s, "orders.search", "\xff", 1) },
		"lone surrogate":   func(s string) string { return strings.Replace(s, "orders.search", `\ud800`, 1) },
		"cut off":          func(s string) string { return s[:len(s)-1] },
		"another message":  func(string) string { return `{"run_id":"` + runID + `","text":""}` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := runv1.Unmarshal[runv1.TraceRecorded](jsontext.Value(change(string(data))))
			require.ErrorIs(t, err, runv1.ErrData)
			require.NotContains(t, err.Error(), "text")
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	refuses(t, "run", run, map[string]func(*runv1.Run){
		"no id":                      func(m *runv1.Run) { m.RunID = "" },
		"a session that is no UUID":  func(m *runv1.Run) { m.SessionID = "x" },
		"a client that is no key":    func(m *runv1.Run) { m.ClientAppID = "X" },
		"no route":                   func(m *runv1.Run) { m.RouteKey = "" },
		"a negative thread":          func(m *runv1.Run) { m.ThreadID = -1 },
		"a thread beyond 2^53":       func(m *runv1.Run) { m.ThreadID++ },
		"a blank conversation":       func(m *runv1.Run) { m.ClientConversationID = " " },
		"no turn":                    func(m *runv1.Run) { m.ClientTurnID = "" },
		"a time with nanoseconds":    func(m *runv1.Run) { m.CreatedAt = m.CreatedAt.Add(1) },
		"a time in another zone":     func(m *runv1.Run) { m.CreatedAt = m.CreatedAt.In(time.FixedZone("", 3600)) },
		"no time":                    func(m *runv1.Run) { m.CreatedAt = time.Time{} },
		"an identifier of 129 bytes": func(m *runv1.Run) { m.ClientTurnID = strings.Repeat("x", 129) },
	})
	refuses(t, "completed", completed, map[string]func(*runv1.Completed){
		"no id":                   func(m *runv1.Completed) { m.RunID = "" },
		"another status":          func(m *runv1.Completed) { m.Status = "running" },
		"a model with a space":    func(m *runv1.Completed) { m.Model = "the model" },
		"a runtime of 129 bytes":  func(m *runv1.Completed) { m.Runtime = strings.Repeat("x", 129) },
		"negative tokens":         func(m *runv1.Completed) { m.Usage.TotalTokens = ptr(int64(-1)) },
		"tokens beyond 2^53":      func(m *runv1.Completed) { m.Usage.CachedInputTokens = ptr(int64(1) << 53) },
		"a negative cost":         func(m *runv1.Completed) { m.Usage.CostUSD = ptr(-0.5) },
		"a cost beyond 1e12":      func(m *runv1.Completed) { m.Usage.CostUSD = ptr(1.1e12) },
		"a time with nanoseconds": func(m *runv1.Completed) { m.CompletedAt = at.Add(1) },
	})
	refuses(t, "traced", traced, map[string]func(*runv1.TraceRecorded){
		"no id":                      func(m *runv1.TraceRecorded) { m.RunID = "" },
		"no event":                   func(m *runv1.TraceRecorded) { m.Events = nil },
		"a gap":                      func(m *runv1.TraceRecorded) { m.Events[1].Position = 9 },
		"another order":              func(m *runv1.TraceRecorded) { slices.Reverse(m.Events) },
		"position 0":                 func(m *runv1.TraceRecorded) { m.Events[0].Position, m.Events[1].Position = 0, 1 },
		"position 2001":              func(m *runv1.TraceRecorded) { m.Events[0].Position, m.Events[1].Position = 2000, 2001 },
		"an event without an id":     func(m *runv1.TraceRecorded) { m.Events[0].EventID = "" },
		"an event that is one word":  func(m *runv1.TraceRecorded) { m.Events[0].Event = "called" },
		"an event of five words":     func(m *runv1.TraceRecorded) { m.Events[0].Event = "a.b.c.d.e" },
		"an event of 129 bytes":      func(m *runv1.TraceRecorded) { m.Events[0].Event = "tool." + strings.Repeat("x", 124) },
		"a time with an offset":      func(m *runv1.TraceRecorded) { m.Events[0].OccurredAt = "2026-03-04T05:06:07+01:00" },
		"a time with 10 digits":      func(m *runv1.TraceRecorded) { m.Events[0].OccurredAt = "2026-03-04T05:06:07.1234567891Z" },
		"a 30th of February":         func(m *runv1.TraceRecorded) { m.Events[0].OccurredAt = "2026-02-30T05:06:07Z" },
		"a second 60":                func(m *runv1.TraceRecorded) { m.Events[0].OccurredAt = "2026-06-30T23:59:60Z" },
		"a job that is no UUID":      func(m *runv1.TraceRecorded) { m.Events[0].JobID = "job-1" },
		"no metadata":                func(m *runv1.TraceRecorded) { m.Events[0].Metadata = nil },
		"metadata that is a list":    func(m *runv1.TraceRecorded) { m.Events[0].Metadata = jsontext.Value(`[]`) },
		"metadata with white space":  func(m *runv1.TraceRecorded) { m.Events[0].Metadata = jsontext.Value(`{"ok": true}`) },
		"metadata in another order":  func(m *runv1.TraceRecorded) { m.Events[0].Metadata = jsontext.Value(`{"b":1,"a":2}`) },
		"metadata with an object":    func(m *runv1.TraceRecorded) { m.Events[0].Metadata = jsontext.Value(`{"a":{}}`) },
		"metadata with a list":       func(m *runv1.TraceRecorded) { m.Events[0].Metadata = jsontext.Value(`{"a":["prompt"]}`) },
		"metadata that is no JSON":   func(m *runv1.TraceRecorded) { m.Events[0].Metadata = jsontext.Value(`{"a"}`) },
		"metadata beyond its bound":  func(m *runv1.TraceRecorded) { m.Events[0].Metadata = wide(64 << 10) },
		"fewer than 0 fields":        func(m *runv1.TraceRecorded) { m.Events[0].DroppedFields = -1 },
		"an event without a time":    func(m *runv1.TraceRecorded) { m.Events[1].CreatedAt = time.Time{} },
		"an event of another second": func(m *runv1.TraceRecorded) { m.Events[1].CreatedAt = at.Add(1) },
	})
	refuses(t, "snapshot", snapshot, map[string]func(*runv1.Snapshot){
		"another run's completion":     func(m *runv1.Snapshot) { m.Completion.RunID = strings.Replace(runID, "2", "3", 1) },
		"a wrong completion":           func(m *runv1.Snapshot) { m.Completion.Status = "" },
		"a wrong run":                  func(m *runv1.Snapshot) { m.Run.RouteKey = "" },
		"a gap":                        func(m *runv1.Snapshot) { m.Events[1].Position = 9 },
		"an empty part before the end": func(m *runv1.Snapshot) { m.Events, m.Last = nil, false },
	})
}

// wide returns metadata of at least n bytes.
func wide(n int) jsontext.Value { return jsontext.Value(`{"a":"` + strings.Repeat("x", n) + `"}`) }

func refuses[M runv1.Message](t *testing.T, name string, valid func() M, changes map[string]func(*M)) {
	t.Helper()
	for what, change := range changes {
		t.Run(name+"/"+what, func(t *testing.T) {
			t.Parallel()
			m := valid()
			require.NoError(t, m.Validate())
			change(&m)
			var field *runv1.FieldError
			_, err := runv1.Marshal(m)
			require.ErrorAs(t, err, &field)
		})
	}
}

func TestWhatIsAtItsLimitIsAccepted(t *testing.T) {
	t.Parallel()
	r := run()
	r.ThreadID = 0
	require.NoError(t, r.Validate())
	m := traced()
	m.Events[0].Position, m.Events[1].Position = runv1.MaxTraceEvents-1, runv1.MaxTraceEvents
	m.Events[0].Metadata = wide(64<<10 - len(wide(0)))
	m.Events[1].Event = "tool." + strings.Repeat("x", 123)
	require.NoError(t, m.Validate())
	c := completed()
	c.Usage = &runv1.Usage{CostUSD: ptr(1e12), TotalTokens: ptr(int64(1)<<53 - 1)}
	require.NoError(t, c.Validate())
}

func FuzzUnmarshal(f *testing.F) {
	for _, name := range []string{"run", "completed", "completed_bare", "trace_recorded", "snapshot", "snapshot_bare"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		comesBack[runv1.Run](t, data)
		comesBack[runv1.Completed](t, data)
		comesBack[runv1.TraceRecorded](t, data)
		comesBack[runv1.Snapshot](t, data)
	})
}

// comesBack holds that what Unmarshal accepts, Marshal writes so that it reads the same.
// A list that is null is written as an empty one, so bytes are compared.
func comesBack[M runv1.Message](t *testing.T, data []byte) {
	t.Helper()
	m, err := runv1.Unmarshal[M](data)
	if err != nil {
		return
	}
	once, err := runv1.Marshal(m)
	require.NoError(t, err)
	back, err := runv1.Unmarshal[M](once)
	require.NoError(t, err)
	twice, err := runv1.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(once), string(twice))
}
