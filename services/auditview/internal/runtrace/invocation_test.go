package runtrace_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/services/auditview/internal/runtrace"
)

func TestInvocations(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events []told
		want   httpapi.Invocation
	}{
		"called": {
			[]told{{"tool.called", jobA, `{"tool":"t","attempt":1}`}},
			httpapi.Invocation{Tool: p("t"), Status: "running", Attempts: 1},
		},
		"what was asked is from the first that says it, what came of it from the last": {
			[]told{
				{"tool.called", jobA, `{"tool":"t","provider":"a","args_bytes":1}`},
				{"tool.progress", jobA, `{"tool":"u","scope":"s","argument_count":2,"args_bytes":3,"resp_bytes":4,"duration_ms":5}`},
				{"tool.completed", jobA, `{"provider":"b","method":"GET","path":"/x","resp_bytes":6,"ok":true}`},
			},
			httpapi.Invocation{
				Tool: p("t"), Provider: p("a"), Scope: p("s"), Method: p("GET"), Path: p("/x"), Status: "completed", OK: p(true), Attempts: 1,
				FinishedAt: p(at(3)), DurationMS: p(5.0), ArgumentCount: p(int64(2)), ArgsBytes: p(int64(1)), RespBytes: p(int64(6)),
			},
		},
		"without a duration it is between first and last": {
			[]told{{"tool.called", jobA, ``}, {"tool.failed", jobA, ``}},
			httpapi.Invocation{Status: "failed", Attempts: 1, FinishedAt: p(at(2)), DurationMS: p(1000.0)},
		},
		"tried again": {
			[]told{{"tool.called", jobA, ``}, {"tool.failed", jobA, `{"ok":false,"duration_ms":7,"resp_bytes":8}`}, {"tool.called", jobA, ``}},
			httpapi.Invocation{Status: "running", Attempts: 2},
		},
		"the host counts better": {
			[]told{{"tool.retried", jobA, `{"retry_count":4}`}, {"tool.completed", jobA, `{"attempt":3}`}},
			httpapi.Invocation{Status: "completed", Attempts: 5, FinishedAt: p(at(2)), DurationMS: p(1000.0)},
		},
		"the host counts too far": {
			[]told{{"tool.retried", jobA, `{"retry_count":9007199254740991}`}},
			httpapi.Invocation{Status: "running", Attempts: 9007199254740991},
		},
		"only its end is known": {
			[]told{{"tool.completed", jobA, ``}},
			httpapi.Invocation{Status: "completed", Attempts: 1, FinishedAt: p(at(1)), DurationMS: p(0.0)},
		},
		"no counts": {
			[]told{{"tool.called", jobA, `{"argument_count":1.5,"args_bytes":-1,"attempt":"2","retry_count":0.5}`}, {"tool.progress", jobA, `{"resp_bytes":"9","duration_ms":-3,"ok":"yes"}`}},
			httpapi.Invocation{Status: "running", Attempts: 1},
		},
		"waits": {
			[]told{{"tool.called", jobA, ``}, {"approval.requested", jobA, `{"approval_id":17}`}},
			httpapi.Invocation{Status: "awaiting_approval", Attempts: 1, ApprovalID: p("17"), ApprovalState: p("requested")},
		},
		"approved before it is called": {
			[]told{{"approval.requested", jobA, `{"approval_id":"a","tool":"t"}`}, {"approval.approved", jobA, ``}},
			httpapi.Invocation{Tool: p("t"), Status: "running", ApprovalID: p("a"), ApprovalState: p("approved")},
		},
		"rejected": {
			[]told{{"approval.requested", jobA, ``}, {"approval.rejected", jobA, ``}},
			httpapi.Invocation{Status: "rejected", FinishedAt: p(at(2)), DurationMS: p(1000.0), ApprovalState: p("rejected")},
		},
		"asked again": {
			[]told{{"approval.rejected", jobA, `{"approval_id":"a"}`}, {"approval.requested", jobA, `{"approval_id":"b"}`}},
			httpapi.Invocation{Status: "awaiting_approval", ApprovalID: p("b"), ApprovalState: p("requested")},
		},
		"decided in other words": {
			[]told{{"approval.decided", jobA, `{"decision":"rejected"}`}},
			httpapi.Invocation{Status: "rejected", FinishedAt: p(at(1)), DurationMS: p(0.0), ApprovalState: p("rejected")},
		},
		"a decision that contradicts the name": {
			[]told{{"approval.approved", jobA, `{"decision":"rejected"}`}},
			httpapi.Invocation{Status: "running", ApprovalState: p("approved")},
		},
		"an approval after the end changes nothing": {
			[]told{{"tool.called", jobA, `{"approval_id":"a"}`}, {"tool.completed", jobA, ``}, {"approval.rejected", jobA, ``}},
			httpapi.Invocation{Status: "completed", Attempts: 1, FinishedAt: p(at(2)), DurationMS: p(1000.0), ApprovalID: p("a"), ApprovalState: p("rejected")},
		},
		"a delivery says nothing about its tool": {
			[]told{
				{"delivery.attempted", jobA, `{"provider":"smtp","attempt":3}`},
				{"tool.called", jobA, `{"provider":"crm"}`},
				{"tool.completed", jobA, `{"ok":true}`},
				{"delivery.failed", jobA, `{"ok":false,"duration_ms":9,"method":"PUT"}`},
			},
			httpapi.Invocation{
				Provider: p("crm"), Method: p("PUT"), Status: "completed", OK: p(true), Attempts: 1, FinishedAt: p(at(3)), DurationMS: p(2000.0),
			},
		},
		"a job that only delivers": {
			[]told{{"approval.approved", jobA, ``}, {"delivery.attempted", jobA, ``}, {"delivery.completed", jobA, ``}, {"note.failed", jobA, ``}},
			httpapi.Invocation{Status: "completed", Attempts: 1, FinishedAt: p(at(3)), DurationMS: p(2000.0), ApprovalState: p("approved")},
		},
		"cancelled": {
			[]told{{"tool.started", jobA, ``}, {"tool.cancelled", jobA, ``}},
			httpapi.Invocation{Status: "cancelled", Attempts: 1, FinishedAt: p(at(2)), DurationMS: p(1000.0)},
		},
		"blocked": {
			[]told{{"tool.blocked", jobA, ``}, {"tool.error", jobA, ``}, {"tool.denied", jobA, ``}},
			httpapi.Invocation{Status: "rejected", Attempts: 1, FinishedAt: p(at(3)), DurationMS: p(2000.0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.JobID, test.want.StartedAt = jobA, at(1)
			trace := runtrace.BuildJob(jobA, stored(test.events...))
			require.Equal(t, []httpapi.Invocation{test.want}, trace.Invocations)
			ended := test.want.FinishedAt != nil
			require.Equal(t, ended, trace.Trace.Summary.DurationMS != nil)
			require.Equal(t, 1, trace.Trace.Summary.ToolInvocations)
			require.Len(t, trace.Trace.Events, len(test.events))
		})
	}
}

func TestMomentsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, moments := range [][2]string{
		{"yesterday", at(1)}, {at(1), "tomorrow"}, {at(2), at(1)},
	} {
		events := stored(told{"tool.called", jobA, ``}, told{"tool.completed", jobA, ``})
		events[0].OccurredAt, events[1].OccurredAt = moments[0], moments[1]
		trace := runtrace.BuildJob(jobA, events)
		require.Nil(t, trace.Invocations[0].DurationMS)
		require.Nil(t, trace.Trace.Summary.DurationMS)
		require.Equal(t, "completed", trace.Invocations[0].Status)
	}
}
