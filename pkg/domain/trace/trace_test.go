package trace_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/trace"
)

func TestResultsByType(t *testing.T) {
	t.Parallel()
	for eventType, want := range map[string]trace.Result{
		"task.created": trace.Info, "task.claimed": trace.Info, "task.running": trace.Info, "task.heartbeat": trace.Info,
		"task.blocked": trace.Blocked, "task.retried": trace.Info, "task.failed": trace.Failed, "task.completed": trace.Success,
		"task.stopped": trace.Stopped, "handoff.requested": trace.Info, "handoff.completed": trace.Success,
		"artifact.created": trace.Info, "timeline.updated": trace.Info, "deployment.status_changed": trace.Info,
		"approval.requested": trace.Info, "approval.approved": trace.Info, "approval.rejected": trace.Blocked,
		// Any type is classified, and only by its last part.
		"deployment.failed": trace.Failed, "a.b.c.completed": trace.Success, "a.b.stopped": trace.Stopped,
		"plan.rejected": trace.Info, "task.approval.rejected": trace.Info, "approval.rejected.again": trace.Info,
		"completed.task": trace.Info, "task.not_completed": trace.Info, "task.completed2": trace.Info,
		"approval.completed": trace.Success, "task.succeeded": trace.Info,
	} {
		if got := trace.ResultOf(eventType); got != want {
			t.Errorf("%s: got %s, want %s", eventType, got, want)
		}
	}
}

func TestAuditIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[trace.AuditID]string{
		1: "aud_000001", 9: "aud_000009", 10: "aud_000010", 99_999: "aud_099999", 100_000: "aud_100000", 999_999: "aud_999999",
		1_000_000: "aud_1000000", 1<<63 - 1: "aud_9223372036854775807",
	} {
		var back trace.AuditID
		if err := back.UnmarshalText([]byte(want)); id.String() != want || back != id || err != nil {
			t.Errorf("%d: got %s, and %d, %v", id, id, back, err)
		}
	}
	for _, text := range []string{
		"", "aud_", "aud_000000", "aud_00001", "aud_0000001", "aud_01000000", "aud_-00001", "aud_+00001", "aud_00000x", "000001",
		"AUD_000001", "aud_aud_000001", "aud_9223372036854775808", " aud_000001", "aud_000_001",
	} {
		id := trace.AuditID(7)
		if err := id.UnmarshalText([]byte(text)); err == nil || id != 7 {
			t.Errorf("%q: read as %d, %v", text, id, err)
		}
	}
}

// The decision is the stored one, else the payload's, else the type's.
func TestDecisions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, eventType string
		stored, payload trace.Decision
		want            *trace.Decision
		noLookup        bool
	}{
		{name: "stored over all", eventType: "approval.approved", stored: "rejected", payload: "approved", want: new(trace.Rejected)},
		{name: "payload over type", eventType: "approval.approved", payload: "rejected", want: new(trace.Rejected)},
		{name: "approved by type", eventType: "approval.approved", want: new(trace.Approved)},
		{name: "rejected by type", eventType: "approval.rejected", want: new(trace.Rejected)},
		{name: "undecided", eventType: "approval.requested"},
		{name: "any event may name one", eventType: "task.running", stored: "approved", want: new(trace.Approved)},
		{name: "a longer type decides nothing", eventType: "approval.approved.late"},
		{name: "other words decide nothing", eventType: "approval.requested", stored: "pending", payload: "maybe"},
		{name: "other words stand in no way", eventType: "approval.approved", stored: "pending", payload: "maybe", want: new(trace.Approved)},
		{name: "no facts at all", eventType: "approval.approved", want: new(trace.Approved), noLookup: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := trace.Assembler{Decision: func(id string) trace.Decision { return map[string]trace.Decision{"ap-1": tc.stored}[id] }}
			if tc.noLookup {
				a.Decision = nil
			}
			got := a.Assemble(1, trace.Event{Type: tc.eventType, ApprovalID: new("ap-1"), Decision: tc.payload}).Approval
			if want := (&trace.Approval{ApprovalID: "ap-1", Decision: tc.want}); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	unnamed := trace.Event{Type: "approval.approved", Decision: trace.Approved}
	if got := trace.Build([]trace.Event{unnamed}, nil, nil, trace.Lineage{})[0].Approval; got != nil {
		t.Errorf("an approval that nobody named: %+v", got)
	}
}

func TestActorsTasksAndTimes(t *testing.T) {
	t.Parallel()
	tasks := map[string]trace.Task{
		"t-1": {AgentRole: new("impl"), Model: &trace.Model{ModelID: "gpt-x"}, Tool: &trace.Tool{}},
		"t-2": {Tool: &trace.Tool{Count: 1<<53 - 1}},
	}
	for name, tc := range map[string]struct {
		event trace.Event
		want  string
	}{
		"the event's instance, the task's role": {
			trace.Event{Type: "task.running", OccurredAt: "2026-06-08T09:00:00Z", TaskID: new("t-1"), AgentInstanceID: new("agent-1")},
			"aud_000001 2026-06-08T09:00:00Z impl/agent-1 task.running task=t-1 model=gpt-x tools=0 -> info",
		},
		"no model, most tools": {
			trace.Event{Type: "task.running", OccurredAt: "2026-06-08T09:00:00.50Z", TaskID: new("t-2")},
			"aud_000001 2026-06-08T09:00:00.50Z -/- task.running task=t-2 tools=9007199254740991 -> info",
		},
		"a task nobody told of": {
			trace.Event{Type: "task.running", OccurredAt: "2026-06-08T09:00:00-01:00", TaskID: new("t-9"), AgentInstanceID: new("agent-1")},
			"aud_000001 2026-06-08T10:00:00Z -/agent-1 task.running task=t-9 -> info",
		},
		"no task": {
			trace.Event{Type: "task.running", OccurredAt: "2026-06-08T09:00:00Z"},
			"aud_000001 2026-06-08T09:00:00Z -/- task.running -> info",
		},
		"what is no time stays": {
			trace.Event{Type: "task.running", OccurredAt: "2026-06-08T09:00:60Z"},
			"aud_000001 2026-06-08T09:00:60Z -/- task.running -> info",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := trace.Replay(trace.Build([]trace.Event{tc.event}, tasks, nil, trace.Lineage{}))
			if len(got) != 1 || got[0] != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNoFactsAtAll(t *testing.T) {
	t.Parallel()
	const want = `{"audit_id":"aud_000007","occurred_at":"2026-06-08T09:00:00Z","action":"task.stopped",` +
		`"actor":{"agent_role":null,"agent_instance_id":null},"task_id":"t-1","model":null,"tool":null,"approval":null,"result":"stopped",` +
		`"lineage":{"manager_deployment_id":null,"deployment_id":null,"swarm_id":null,"correlation_id":null},"redacted":true}`
	r := new(trace.Assembler).Assemble(7, trace.Event{Type: "task.stopped", OccurredAt: "2026-06-08T09:00:00Z", TaskID: new("t-1")})
	if got := string(trace.AppendJSON(nil, r)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := trace.Build(nil, nil, nil, trace.Lineage{}); got == nil || len(got) != 0 {
		t.Errorf("an empty run has the records %v", got)
	}
}

func TestTextsAreNotEscapedMoreThanJSONNeeds(t *testing.T) {
	t.Parallel()
	r := trace.Record{Action: "é😀<&>\u2028\x7f\"\\\n\x01\xff"}
	const want = `"action":"é😀<&>` + "\u2028\x7f" + `\"\\\n\u0001` + "\ufffd" + `",`
	if got := string(trace.AppendJSON(nil, r)); !strings.Contains(got, want) {
		t.Errorf("%s lacks %s", got, want)
	}
	if got := string(trace.AppendJSON([]byte("before "), r)); !strings.HasPrefix(got, `before {"audit_id"`) {
		t.Errorf("what stood before is lost: %s", got)
	}
}

func TestToolCallsAreOnlyCounted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		`0`: 0, `3`: 3, `9007199254740991`: 1<<53 - 1, `[]`: 0, ` [ "read" , "write" ] `: 2, `[null]`: 1,
		`[{"name":"read","arguments":{"path":["a","b"]}},[1,2,3],4,true]`: 4,
	} {
		if got, ok := trace.CountCalls(jsontext.Value(in)); !ok || got != want {
			t.Errorf("%s: got %d, %t; want %d", in, got, ok, want)
		}
	}
	for _, in := range []string{
		``, `null`, `true`, `"2"`, `{}`, `-1`, `1.5`, `9007199254740992`, `1e400`, `[1`, `[1,]`, `[1] 2`, `[{"a":1,"a":2}]`, `[x]`,
	} {
		if n, ok := trace.CountCalls(jsontext.Value(in)); ok {
			t.Errorf("%s: counted as %d", in, n)
		}
	}
}

// A reader with another JSON library gets the frozen id too, not a number.
func TestAuditIDsAreTextInAnyLibrary(t *testing.T) {
	t.Parallel()
	text, err := trace.AuditID(42).MarshalText()
	if err != nil || string(text) != "aud_000042" {
		t.Errorf("got %s, %v", text, err)
	}
	b, err := json.Marshal(map[trace.AuditID]int{42: 1})
	if err != nil || string(b) != `{"aud_000042":1}` {
		t.Errorf("got %s, %v", b, err)
	}
}

func TestOnlyApprovalsAllocate(t *testing.T) { //nolint:paralleltest // testing.AllocsPerRun measures the whole process
	a, events := delivery()
	line := make([]byte, 0, 1024)
	for name, tc := range map[string]struct {
		event trace.Event
		most  float64
	}{"with an approval": {events[0], 2}, "without": {events[1], 0}} {
		got := testing.AllocsPerRun(100, func() {
			r := a.Assemble(1_000_000, tc.event)
			line = trace.AppendLine(trace.AppendJSON(line[:0], r), r)
		})
		if (tc.event.ApprovalID != nil) != (tc.most > 0) || got > tc.most {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
