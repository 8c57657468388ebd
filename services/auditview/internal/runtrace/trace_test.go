package runtrace_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/services/auditview/internal/runtrace"
)

const (
	jobA = "50000001-e89b-42d3-a456-426614174000"
	jobB = "50000002-e89b-42d3-a456-426614174000"
)

var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// told is what a host said: events one second apart.
type told struct{ event, job, metadata string }

func stored(events ...told) []runtrace.Event {
	list := make([]runtrace.Event, len(events))
	for i, e := range events {
		list[i] = runtrace.Event{Position: i + 1, Event: e.event, OccurredAt: at(i + 1), Metadata: e.metadata}
		if e.metadata == "" {
			list[i].Metadata = "{}"
		}
		if e.job != "" {
			list[i].JobID = &e.job
		}
	}
	return list
}

func at(seconds int) string {
	return start.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339Nano)
}

func p[T any](v T) *T { return &v }

func TestSeverity(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ event, metadata, want string }{
		{"tool.called", ``, httpapi.SeverityInfo},
		{"tool.completed", `{"ok":true,"status":200,"attempt":1,"retry_count":0}`, httpapi.SeverityInfo},
		{"tool.completed", `{"status":"completed","decision":"approved"}`, httpapi.SeverityInfo},
		{"tool.failed", ``, httpapi.SeverityError},
		{"tool.http.timeout", ``, httpapi.SeverityError},
		{"host.error", ``, httpapi.SeverityError},
		{"failed.once", ``, httpapi.SeverityInfo},
		{"tool.completed", `{"ok":false}`, httpapi.SeverityError},
		{"tool.completed", `{"ok":"false"}`, httpapi.SeverityInfo},
		{"delivery.completed", `{"status":"FAILED"}`, httpapi.SeverityError},
		{"approval.rejected", ``, httpapi.SeverityWarning},
		{"approval.decided", `{"decision":"denied"}`, httpapi.SeverityWarning},
		{"tool.blocked", ``, httpapi.SeverityWarning},
		{"tool.cancelled", ``, httpapi.SeverityWarning},
		{"tool.retried", ``, httpapi.SeverityWarning},
		{"tool.called", `{"attempt":2}`, httpapi.SeverityWarning},
		{"tool.called", `{"retry_count":1}`, httpapi.SeverityWarning},
		{"approval.rejected", `{"ok":false}`, httpapi.SeverityError},
		{"delivery.failed", `{"attempt":2}`, httpapi.SeverityError},
	} {
		trace := runtrace.Build(runtrace.Run{CreatedAt: start, Status: "running"}, stored(told{test.event, "", test.metadata}))
		require.Equal(t, test.want, trace.Trace.Events[1].Severity, "%s %s", test.event, test.metadata)
	}
}

func TestTitlesAndLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ event, metadata, title, line string }{
		{"tool.called", `{}`, "Tool called", ""},
		{"tool.http_call.answer_read", `{"tool":"orders.search","provider":"crm","duration_ms":120,"ok":true}`, "Tool http call answer read", "orders.search via crm, 120 ms, ok"},
		{"delivery.failed", `{"provider":"smtp","ok":false,"delivery_id":"d-1","attempt":2}`, "Delivery failed", "smtp, delivery d-1, attempt 2, not ok"},
		{"tool.called", `{"path":"/x"}`, "Tool called", "/x"},
		{"tool.called", `{"method":"GET"}`, "Tool called", "GET"},
		{"tool.called", `{"tool":"","provider":null,"status":{"a":1},"state":["x"],"business_status":true,"operation":"read"}`, "Tool called", "read"},
		{
			"tool.completed",
			`{"approval_id":"ap-1","args_bytes":10,"argument_count":3,"attempt":1,"business_status":"paid","decision":"approved","delivery_id":"d-1","duration_ms":0.5,` +
				`"error_code":"E1","exit_code":0,"method":"POST","ok":true,"operation":"write","path":"/o","provider":"crm","reason_code":"R1","resp_bytes":2048,` +
				`"retry_count":0,"risk_level":"low","scope":"o:w","state":"done","status":"200","tool":"t"}`,
			"Tool completed",
			"t via crm, POST /o, write, scope o:w, risk low, approval ap-1, approved, state done, delivery d-1, attempt 1, retries 0, arguments 3, " +
				"10 B sent, 2048 B received, 0.5 ms, status 200, business status paid, exit code 0, error E1, reason R1, ok",
		},
	} {
		e := runtrace.Build(runtrace.Run{CreatedAt: start, Status: "running"}, stored(told{test.event, "", test.metadata})).Trace.Events[1]
		require.Equal(t, test.title, e.Title)
		require.Equal(t, test.line, e.Summary)
		require.Equal(t, test.metadata, string(e.Detail), "byte for byte")
	}
	for _, broken := range []string{``, `null`, `[]`, `"x"`, `{`, `{"a":1,"a":2}`} {
		e := runtrace.Build(runtrace.Run{CreatedAt: start, Status: "running"}, []runtrace.Event{{Position: 1, Event: "tool.called", Metadata: broken}}).Trace.Events[1]
		require.JSONEq(t, `{}`, string(e.Detail))
		require.Empty(t, e.Summary)
	}
}

func TestEndsOfARun(t *testing.T) {
	t.Parallel()
	for status, severity := range map[string]string{
		"completed": httpapi.SeverityInfo, "failed": httpapi.SeverityError, "cancelled": httpapi.SeverityWarning,
	} {
		run := runtrace.Run{CreatedAt: start.Add(999 * time.Microsecond), Status: status, Runtime: p("codex"), CompletedAt: p(start.Add(time.Second))}
		trace := runtrace.Build(run, stored(told{event: "delivery.attempted"})).Trace
		last := trace.Events[2]
		require.Equal(t, []string{"run." + status, severity, httpapi.SourceIngest, "codex, 1000 ms"}, []string{last.Event, last.Severity, last.Source, last.Summary})
		require.JSONEq(t, fmt.Sprintf(`{"status":%q,"runtime":"codex","duration_ms":1000}`, status), string(last.Detail))
		require.InDelta(t, 1000, *trace.Summary.DurationMS, 0, "between the moments that are shown")

		run.CompletedAt = p(start.Add(-time.Second)) // clocks went back
		trace = runtrace.Build(run, nil).Trace
		require.Nil(t, trace.Summary.DurationMS)
		require.Equal(t, "codex", trace.Events[1].Summary)
	}
}

func TestApprovalsAreToldApart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events []told
		want   int
		counts httpapi.Governance
	}{
		"none": {[]told{{event: "tool.called", job: jobA}}, 0, httpapi.Governance{}},
		"by their id": {
			[]told{{"approval.requested", jobA, `{"approval_id":"1"}`}, {"approval.approved", "", `{"approval_id":"1"}`}, {"approval.requested", jobA, `{"approval_id":"2"}`}},
			2,
			httpapi.Governance{ApprovalsRequested: 2, ApprovalsApproved: 1},
		},
		"by their job": {
			[]told{{"approval.requested", jobA, ``}, {"approval.rejected", jobA, ``}, {"approval.requested", jobB, ``}},
			2,
			httpapi.Governance{ApprovalsRequested: 2, ApprovalsRejected: 1},
		},
		"by nothing": {
			[]told{{"approval.requested", "", ``}, {"approval.requested", "", ``}, {"approval.approved", "", ``}, {"approval.seen.again", "", ``}, {"approval.rejected", "", ``}},
			3,
			httpapi.Governance{ApprovalsRequested: 2, ApprovalsApproved: 1, ApprovalsRejected: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := runtrace.Build(runtrace.Run{CreatedAt: start, Status: "running"}, stored(test.events...))
			require.Equal(t, test.want, trace.Trace.Summary.Approvals)
			require.Equal(t, test.counts, trace.Governance)
		})
	}
}

func TestDroppedFieldsAndLooseCallsAreCounted(t *testing.T) {
	t.Parallel()
	events := stored(told{event: "tool.called"}, told{"tool.called", jobA, ``}, told{event: "tool.completed"}, told{"delivery.attempted", jobB, ``})
	for i := range events {
		events[i].DroppedFields = i
	}
	trace := runtrace.Build(runtrace.Run{CreatedAt: start, Status: "running"}, events)
	require.Equal(t, 6, trace.Governance.DroppedFields)
	require.Len(t, trace.Invocations, 2)
	require.Equal(t, 3, trace.Trace.Summary.ToolInvocations, "two jobs, and a call without one")
	require.Equal(t, runtrace.Trace{
		Trace: httpapi.TraceView{Events: []httpapi.TraceEventView{}}, Invocations: []httpapi.Invocation{},
	}, runtrace.BuildJob("50000009-e89b-42d3-a456-426614174000", events), "no job, no invocation")
}
