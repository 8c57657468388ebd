package auditview_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/services/auditview/internal/historytest"
)

func jobPath(job string) string { return "/admin/api/runs/" + job + "/trace" }

func object(r response, name string) map[string]any {
	o, _ := r.body[name].(map[string]any)
	return o
}

// A run about which nothing but its opening is known, and its link.
func TestRunTraceOfARunningRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	linked, one := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 1)
	loose, two := historytest.NewRun(t, 2, historytest.SessionID(0), "conv-1", 1)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Link(linked)
	b.publish(t, append(a.Messages, one, two)...)

	view := map[string]any{
		"run_id": loose.RunID, "session_id": loose.SessionID, "client_app_id": "client-0", "route_key": "route-0", "thread_id": 102.0,
		"client_conversation_id": "conv-1", "client_turn_id": "turn-1", "created_at": "2026-03-04T05:06:07.123Z",
		"status": "running", "model": nil, "runtime": nil, "usage": nil, "completed_at": nil,
		"governance": map[string]any{"approvals_requested": 0.0, "approvals_approved": 0.0, "approvals_rejected": 0.0, "dropped_fields": 0.0},
	}
	answer := map[string]any{
		"kind": "agent_client_run", "run": view, "invocations": []any{},
		"trace": map[string]any{
			"summary": map[string]any{"event_count": 1.0, "tool_invocations": 0.0, "approvals": 0.0, "warning_count": 0.0, "error_count": 0.0},
			"events": []any{map[string]any{
				"ts": "2026-03-04T05:06:07.123Z", "event": "run.opened", "stage": "run", "severity": "info", "title": "Run opened",
				"summary": "client-0, route-0, turn turn-1", "source": "ingest", "detail": map[string]any{
					"client_app_id": "client-0", "route_key": "route-0", "client_conversation_id": "conv-1", "client_turn_id": "turn-1",
				},
			}},
		},
	}
	r := b.get(t, metadata, tracePath(loose.ThreadID, loose.RunID))
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, answer, r.body)
	view["run_id"], view["thread_id"], view["conversation_audit_id"] = linked.RunID, 101.0, a.ConversationID()
	r = b.get(t, metadata, tracePath(linked.ThreadID, strings.ToUpper(linked.RunID)))
	require.Equal(t, answer, r.body)

	for _, path := range []string{
		tracePath(loose.ThreadID, linked.RunID), tracePath(0, linked.RunID), tracePath(101, "x"), tracePath(101, historytest.RunID(9)),
		"/admin/api/threads/x/agent-runs/" + linked.RunID + "/trace", "/admin/api/threads/9007199254740992/agent-runs/" + linked.RunID + "/trace",
	} {
		b.get(t, viewer, path).fails(t, http.StatusNotFound, "run_not_found")
	}
}

// twoJobs is what a host told of a run: a call that needed an approval, and one that failed.
func twoJobs() []event {
	return []event{
		{"tool.called", "2026-03-04T05:06:08.000000001Z", jobID(1), `{"argument_count":2,"args_bytes":64,"method":"GET","path":"/orders/{id}","provider":"crm","scope":"orders:read","tool":"orders.search"}`},
		{"approval.requested", "2026-03-04T05:06:08.5Z", jobID(1), `{"approval_id":"ap-1","risk_level":"high"}`},
		{"tool.called", "2026-03-04T05:06:09Z", jobID(2), `{"tool":"mail.send"}`},
		{"approval.approved", "2026-03-04T05:06:10Z", jobID(1), `{"approval_id":"ap-1"}`},
		{"tool.completed", "2026-03-04T05:06:11.25Z", jobID(1), `{"duration_ms":120,"ok":true,"resp_bytes":2048,"status":200}`},
		{"tool.failed", "2026-03-04T05:06:12Z", jobID(2), `{"error_code":"smtp-550"}`},
		{"note.taken", "2026-03-04T05:06:13Z", "", `{}`},
	}
}

func TestRunTraceShowsWhatHappened(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.run(0, 7)
	rows.events(0, twoJobs()...)
	rows.complete(0, "cancelled", 6500*time.Millisecond)
	rows.run(1, 7) // another run of the thread, with events of its own
	rows.events(1, event{name: "tool.called", at: "2026-03-04T05:06:08Z", job: jobID(3)})

	r := b.get(t, metadata, tracePath(7, historytest.RunID(0)))
	require.Equal(t, http.StatusOK, r.status, r.text)
	run := object(r, "run")
	require.Equal(t, "cancelled", run["status"])
	require.Equal(t, []any{"gpt-x", "codex/1.2", "2026-03-04T05:06:13.623Z"}, []any{run["model"], run["runtime"], run["completed_at"]})
	require.Contains(t, r.text, `"usage":{"input_tokens":9007199254740991,"cost_usd":0.10}`, "usage comes back byte for byte")
	require.Equal(t, map[string]any{"approvals_requested": 1.0, "approvals_approved": 1.0, "approvals_rejected": 0.0, "dropped_fields": 3.0}, run["governance"])

	trace := object(r, "trace")
	require.Equal(t, map[string]any{
		"event_count": 9.0, "tool_invocations": 2.0, "approvals": 1.0, "warning_count": 1.0, "error_count": 1.0, "duration_ms": 6500.0,
	}, trace["summary"])
	events := (response{body: trace}).list("events")
	var lines []string
	for _, e := range events {
		line := ""
		for _, name := range []string{"severity", "source", "stage", "title", "summary"} {
			s, _ := e[name].(string)
			line += s + "|"
		}
		lines = append(lines, line)
	}
	require.Equal(t, []string{
		"info|ingest|run|Run opened|client-0, route-0, turn turn-0|",
		"info|host|tool|Tool called|orders.search via crm, GET /orders/{id}, scope orders:read, arguments 2, 64 B sent|",
		"info|host|approval|Approval requested|risk high, approval ap-1|",
		"info|host|tool|Tool called|mail.send|",
		"info|host|approval|Approval approved|approval ap-1|",
		"info|host|tool|Tool completed|2048 B received, 120 ms, status 200, ok|",
		"error|host|tool|Tool failed|error smtp-550|",
		"info|host|note|Note taken||",
		"warning|ingest|run|Run cancelled|gpt-x, codex/1.2, 6500 ms|",
	}, lines)
	require.Equal(t, map[string]any{
		"ts": "2026-03-04T05:06:11.25Z", "event": "tool.completed", "stage": "tool", "severity": "info", "title": "Tool completed",
		"summary": "2048 B received, 120 ms, status 200, ok", "source": "host", "tool_job_id": jobID(1),
		"detail": map[string]any{"duration_ms": 120.0, "ok": true, "resp_bytes": 2048.0, "status": 200.0},
	}, events[5])
	require.NotContains(t, events[7], "tool_job_id")
	require.Equal(t, "2026-03-04T05:06:08.000000001Z", events[1]["ts"])

	invocations := r.list("invocations")
	require.Equal(t, []map[string]any{
		{
			"job_id": jobID(1), "tool": "orders.search", "provider": "crm", "scope": "orders:read", "method": "GET", "path": "/orders/{id}",
			"status": "completed", "ok": true, "attempts": 1.0, "started_at": "2026-03-04T05:06:08.000000001Z",
			"finished_at": "2026-03-04T05:06:11.25Z", "duration_ms": 120.0, "approval_id": "ap-1", "approval_state": "approved",
			"argument_count": 2.0, "args_bytes": 64.0, "resp_bytes": 2048.0,
		},
		{
			"job_id": jobID(2), "tool": "mail.send", "provider": nil, "scope": nil, "method": nil, "path": nil,
			"status": "failed", "ok": nil, "attempts": 1.0, "started_at": "2026-03-04T05:06:09Z",
			"finished_at": "2026-03-04T05:06:12Z", "duration_ms": 3000.0, "approval_id": nil, "approval_state": nil,
			"argument_count": nil, "args_bytes": nil, "resp_bytes": nil,
		},
	}, invocations)

	// The job's own trace has the same invocation, and no other job's events.
	r = b.get(t, metadata, jobPath(strings.ToUpper(jobID(2))))
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, "tool_job", r.body["kind"])
	require.Equal(t, invocations[1:], r.list("invocations"))
	require.Equal(t, map[string]any{
		"job_id": jobID(2), "run_id": historytest.RunID(0), "thread_id": 7.0, "session_id": historytest.SessionID(0),
		"client_app_id": "client-0", "route_key": "route-0", "tool": "mail.send", "provider": nil, "status": "failed", "attempts": 1.0,
		"started_at": "2026-03-04T05:06:09Z", "finished_at": "2026-03-04T05:06:12Z",
	}, object(r, "job"))
	require.Equal(t, map[string]any{
		"summary": map[string]any{
			"event_count": 2.0, "tool_invocations": 1.0, "approvals": 0.0, "warning_count": 0.0, "error_count": 1.0, "duration_ms": 3000.0,
		},
		"events": []any{events[3], events[6]},
	}, object(r, "trace"))
}

// Whatever way the events came, in batches or in a snapshot's parts, the answers have the
// same bytes.
func TestTracesAreTheSameHoweverTheyCame(t *testing.T) {
	t.Parallel()
	one, other := setup(t), setup(t)
	run := historytest.OpenRun(t, 1).Trace(3).Trace(9).Complete("completed").Trace(1)
	one.publish(t, run.Messages...)
	other.publish(t, run.Messages[:2]...)
	other.publish(t, run.Snapshot(4)...)
	r := one.get(t, metadata, tracePath(101, run.ID()))
	job, _ := r.list("invocations")[1]["job_id"].(string)
	for _, path := range []string{tracePath(101, run.ID()), jobPath(job), threadPath(101, "")} {
		r := one.get(t, metadata, path)
		require.Equal(t, http.StatusOK, r.status, r.text)
		require.Equal(t, r.text, other.get(t, metadata, path).text)
	}
	require.Equal(t, map[string]any{
		"event_count": 15.0, "tool_invocations": 7.0, "approvals": 0.0, "warning_count": 0.0, "error_count": 0.0, "duration_ms": 3704.0,
	}, summary(r))
	require.Equal(t, map[string]any{"total_tokens": 1200.0, "tool_calls": 12.0, "cost_usd": 0.0125}, object(r, "run")["usage"])
}

// Events of a snapshot whose last part has not come are not shown, in no trace.
func TestTracesEndWhereTheRunSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.run(1, 7)
	rows.events(1, twoJobs()...)
	rows.exec(`update runs set last_position = 2`)
	require.InDelta(t, 3, summary(b.get(t, metadata, tracePath(7, historytest.RunID(1))))["event_count"], 0)
	require.InDelta(t, 2, summary(b.get(t, metadata, jobPath(jobID(1))))["event_count"], 0)
	b.get(t, metadata, jobPath(jobID(2))).fails(t, http.StatusNotFound, "run_not_found")
}

func summary(r response) map[string]any {
	s, _ := object(r, "trace")["summary"].(map[string]any)
	return s
}

func TestJobTraceShowsItsLink(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	linked, recorded := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 1)
	forged, forgedRecorded := historytest.NewRun(t, 2, historytest.SessionID(0), "conv-2", 1)
	forged.SessionID = historytest.SessionID(1) // the archive says so, the run does not
	one := historytest.NewArchive(t, 1, true, historytest.SessionID(0)).Link(linked)
	two := historytest.NewArchive(t, 2, true, historytest.SessionID(0), historytest.SessionID(1)).Confirm().Link(forged)
	b.publish(t, append(append(one.Messages, two.Messages...), recorded, forgedRecorded)...)
	rows.run(3, 0) // no thread, no link
	for n := range 3 {
		rows.events(n+1, event{name: "tool.called", at: "2026-03-04T05:06:08Z", job: jobID(n + 1)})
	}
	job := object(b.get(t, metadata, jobPath(jobID(1))), "job")
	require.Equal(t, []any{one.ConversationID(), "turn-1", 101.0}, []any{job["conversation_audit_id"], job["client_turn_id"], job["thread_id"]})
	for n, thread := range map[int]any{2: 102.0, 3: nil} {
		job = object(b.get(t, metadata, jobPath(jobID(n))), "job")
		require.Equal(t, historytest.RunID(n), job["run_id"])
		require.Equal(t, thread, job["thread_id"])
		require.Contains(t, job, "thread_id")
		require.NotContains(t, job, "conversation_audit_id")
		require.NotContains(t, job, "client_turn_id")
	}
	b.get(t, metadata, tracePath(102, forged.RunID)).fails(t, http.StatusNotFound, "run_not_found")

	for _, id := range []string{jobID(9), linked.RunID, "x", "%00", "00000000-0000-0000-0000-000000000000"} {
		b.get(t, metadata, jobPath(id)).fails(t, http.StatusNotFound, "run_not_found")
	}
	// A job that several runs claim is no one's.
	rows.exec(`update run_trace_events set job_id = $1`, jobID(1))
	b.get(t, metadata, jobPath(jobID(1))).fails(t, http.StatusNotFound, "run_not_found")
	// Events whose run is not there yet are not shown.
	rows.exec(`delete from runs where run_id <> $1`, linked.RunID)
	require.Equal(t, http.StatusOK, b.get(t, metadata, jobPath(jobID(1))).status)
	rows.exec(`delete from runs`)
	b.get(t, metadata, jobPath(jobID(1))).fails(t, http.StatusNotFound, "run_not_found")
}

// A link counts only when archive, member and run agree; else the run is not shown at all.
func TestRunTraceChecksOwnership(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second := historytest.SessionID(1)
	for n, change := range map[int]struct {
		v2      bool
		session string
		client  string
		conv    string
		turn    int
		found   bool
	}{
		1: {true, second, "client-1", "conv-1", 1, true},
		2: {true, second, "client-0", "conv-2", 1, false}, // another binding than the member's own
		3: {false, second, "client-0", "conv-3", 1, true},
		4: {false, second, "client-1", "conv-4", 1, false},                   // another binding than the common one
		5: {false, second, "client-0", "conv-9", 1, false},                   // another conversation
		6: {false, second, "client-0", "conv-6", 2, false},                   // another turn
		7: {false, historytest.SessionID(2), "client-0", "conv-7", 1, false}, // no member
	} {
		run, _ := historytest.NewRun(t, n, change.session, change.conv, change.turn)
		run.ClientAppID = change.client
		if change.client == "client-1" {
			run.RouteKey = "route-1"
		}
		a := historytest.NewArchive(t, n, change.v2, historytest.SessionID(0), second).Confirm().Link(run)
		b.publish(t, append(a.Messages, historytest.RunMessage(t, run, 1, 0))...)
		r := b.get(t, viewer, tracePath(run.ThreadID, run.RunID))
		if change.found {
			require.Equal(t, http.StatusOK, r.status, "%d: %s", n, r.text)
			shown, _ := r.body["run"].(map[string]any)
			require.Equal(t, a.ConversationID(), shown["conversation_audit_id"])
		} else {
			r.fails(t, http.StatusNotFound, "run_not_found")
		}
	}
}
