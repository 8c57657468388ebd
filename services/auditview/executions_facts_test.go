package auditview_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/services/auditview/internal/historytest"
)

func TestEventsAndLogs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.execution(execution{n: 1, swarm: "swarm-1"})
	task, instance := "t-1", "agent-1"
	rows.happen(1,
		executionEvent{
			ID: "ev-a", Type: "task.failed", At: "2026-03-04T05:06:07.120Z", Task: &task, Instance: &instance,
			Payload: jsontext.Value(`{"attempt":2,"error_code":"E_TIMEOUT","ok":true,"secret_ref":"azkv://vault/git"}`),
		},
		executionEvent{Type: "note.taken", At: "2026-03-04T05:06:08Z"})
	rows.exec(`update execution_events set agent_role = 'impl', user_id = 'u-1', channel_id = 'c-1', dropped_fields = '{content,prompt}', dropped_count = 3
where position = 1`)
	r := b.get(t, metadata, runPath("swarm-1", "events"))
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, map[string]any{
		"schema": "verbatim.run-events.v1", "next_cursor": nil,
		"lineage": map[string]any{"manager_deployment_id": nil, "deployment_id": nil, "swarm_id": "swarm-1", "correlation_id": nil},
		"events": []any{
			map[string]any{
				"position": 1.0, "event_id": "ev-a", "event_type": "task.failed", "occurred_at": "2026-03-04T05:06:07.120Z", "task_id": "t-1",
				"agent_instance_id": "agent-1", "agent_role": "impl", "user_id": "u-1", "channel_id": "c-1",
				"payload":        map[string]any{"attempt": 2.0, "error_code": "E_TIMEOUT", "ok": true, "secret_ref": "azkv://vault/git"},
				"dropped_fields": []any{"content", "prompt"}, "dropped_count": 3.0, "recorded_at": "2026-03-04T05:06:07.123Z",
			},
			map[string]any{
				"position": 2.0, "event_id": "ev-2", "event_type": "note.taken", "occurred_at": "2026-03-04T05:06:08Z", "task_id": nil,
				"agent_instance_id": nil, "agent_role": nil, "user_id": nil, "channel_id": nil, "payload": map[string]any{},
				"dropped_fields": []any{}, "dropped_count": 0.0, "recorded_at": "2026-03-04T05:06:07.123Z",
			},
		},
	}, r.body)
	r = b.get(t, metadata, runPath("swarm-1", "logs"))
	require.Equal(t, "text/plain; charset=utf-8", r.header.Get("Content-Type"))
	require.Equal(t, "1 2026-03-04T05:06:07.120Z task.failed task=t-1 agent=agent-1 role=impl user=u-1 channel=c-1"+
		" attempt=2 error_code=E_TIMEOUT ok=true secret_ref=azkv://vault/git dropped=3\n"+
		"2 2026-03-04T05:06:08Z note.taken\n", r.text)
	require.Equal(t, "2 2026-03-04T05:06:08Z note.taken\n", b.get(t, metadata, runPath("swarm-1", "logs?cursor=1&limit=1")).text)
	// Nothing that somebody wrote to the store by hand makes two lines of one.
	rows.exec(`update execution_events set task_id = e't\n1', payload = '{"a":"x y","b":"\n","c":{"d":1},"e":null,"f":""}' where position = 2`)
	require.Equal(t, `2 2026-03-04T05:06:08Z note.taken task="t\n1" a="x y" b="\n" f=""`+"\n", b.get(t, metadata, runPath("swarm-1", "logs?cursor=1")).text)
}

func TestApprovalsAndGrants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.execution(execution{n: 1, swarm: "swarm-1"})
	for part, list := range map[string]string{"approvals": "approvals", "grants": "grants"} {
		r := b.get(t, metadata, runPath("swarm-1", part))
		require.Equal(t, []any{}, r.body[list])
		require.Nil(t, r.body["next_cursor"])
		require.Equal(t, "verbatim.run-"+part+".v1", r.body["schema"])
	}
	rows.approval(1, "ap-2", `{}`)
	rows.approval(1, "ap-1", `{"credential_ref":"azkv://vault/git","decided_at":"2026-03-04T05:06:07Z","decided_by":{"user_id":"u-1"},"decision":"approved",
"expires_at":"2026-03-05T05:06:07Z","lease_id":"lease-9","operation":"git.push","reason":"ok with [REDACTED]","risk_level":"high","scope":"repo:main"}`)
	rows.exec(`insert into execution_grants values ($1, 'g-1', 1, '{"allowed_actions":["read","list"],"constraints":{"max":3,"path":"/a"},"created_at":"2026-03-04T05:06:07Z",
"created_by":"mgr","expires_at":"2026-03-05T05:06:07Z","revoked_at":"2026-03-04T06:06:07Z","revoked_by":"ops","secret_ref":"azkv://vault/git","status":"revoked"}'), ($1, 'g-2', 1, '{}')`,
		executionID(1))
	r := b.get(t, metadata, runPath("swarm-1", "approvals"))
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, []map[string]any{
		{
			"approval_id": "ap-1", "operation": "git.push", "risk_level": "high", "decision": "approved", "credential_ref": "azkv://vault/git",
			"lease_id": "lease-9", "scope": "repo:main", "expires_at": "2026-03-05T05:06:07Z", "reason": "ok with [REDACTED]",
			"decided_at": "2026-03-04T05:06:07Z", "decided_by": map[string]any{"user_id": "u-1", "channel_id": nil},
		},
		{
			"approval_id": "ap-2", "operation": nil, "risk_level": nil, "decision": nil, "credential_ref": nil, "lease_id": nil, "scope": nil,
			"expires_at": nil, "reason": nil, "decided_at": nil, "decided_by": nil,
		},
	}, r.list("approvals"))
	r = b.get(t, metadata, runPath("swarm-1", "grants"))
	require.Equal(t, []map[string]any{
		{
			"grant_id": "g-1", "secret_ref": "azkv://vault/git", "allowed_actions": []any{"read", "list"},
			"constraints": map[string]any{"max": 3.0, "path": "/a"}, "expires_at": "2026-03-05T05:06:07Z", "status": "revoked",
			"created_by": "mgr", "revoked_by": "ops", "created_at": "2026-03-04T05:06:07Z", "revoked_at": "2026-03-04T06:06:07Z",
		},
		{
			"grant_id": "g-2", "secret_ref": nil, "allowed_actions": []any{}, "constraints": map[string]any{}, "expires_at": nil, "status": nil,
			"created_by": nil, "revoked_by": nil, "created_at": nil, "revoked_at": nil,
		},
	}, r.list("grants"))

	rows.exec(`insert into execution_approvals select $1, 'b-' || lpad(n::text, 4, '0'), 1, null, '{}' from generate_series(1, 1005) n`, executionID(1))
	rows.exec(`insert into execution_grants select $1, 'b/' || lpad(n::text, 4, '0'), 1, '{}' from generate_series(1, 1005) n`, executionID(1))
	for part, id := range map[string]string{"approvals": "approval_id", "grants": "grant_id"} {
		require.Len(t, b.get(t, metadata, runPath("swarm-1", part)).list(part), 200)
		seen, cursor := map[any]bool{}, ""
		for pages := 1; ; pages++ {
			r := b.get(t, metadata, runPath("swarm-1", part)+"?limit=5000"+cursor)
			for _, item := range r.list(part) {
				require.False(t, seen[item[id]])
				seen[item[id]] = true
			}
			next, more := r.body["next_cursor"].(string)
			if !more {
				require.Equal(t, 2, pages)
				break
			}
			cursor = "&cursor=" + next
		}
		require.Len(t, seen, 1007)
		b.get(t, metadata, runPath("swarm-1", part)+"?cursor=%00").fails(t, http.StatusBadRequest, "invalid_request")
	}
	rows.exec(`update execution_grants set facts = '{"status":7}' where grant_id = 'g-1'`)
	b.get(t, metadata, runPath("swarm-1", "grants?cursor=c")).fails(t, http.StatusInternalServerError, "conversation_audit_internal_error")
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.execution(execution{n: 1, swarm: "swarm-1"})
	r := b.get(t, metadata, runPath("swarm-1", "diagnostics"))
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, map[string]any{
		"schema": "verbatim.run-diagnostics.v1", "attempts": []any{}, "events": []any{}, "next_cursor": nil,
		"lineage": map[string]any{"manager_deployment_id": nil, "deployment_id": nil, "swarm_id": "swarm-1", "correlation_id": nil},
		"totals": map[string]any{
			"attempts": 0.0, "failed_attempts": 0.0, "failure_rate": nil, "events": 0.0, "delivered": 0.0, "undelivered": 0.0,
		},
	}, r.body)
	for i, a := range []struct{ event, status string }{
		{"ev-1", `500`}, {"ev-2", `"timeout"`}, {"ev-1", `204`}, {"ev-3", `"Delivered"`}, {"ev-3", `"failed"`}, {"ev-2", `2000`}, {"ev-4", `"success"`}, {"ev-5", `199`},
	} {
		rows.exec(`insert into execution_callback_attempts values ($1, $2, $3, $4, $5)`, executionID(1), i+1, fmt.Sprintf("at-%d", i+1), a.event,
			fmt.Sprintf(`{"attempted_at":"2026-03-04T05:06:0%dZ","event_id":%q,"event_type":"task.failed","host":"hooks.example","port":443,"scheme":"https","status":%s,"url_sha256":"ab"}`,
				i, a.event, a.status))
	}
	totals := map[string]any{
		"attempts": 8.0, "failed_attempts": 5.0, "failure_rate": 0.625, "events": 5.0, "delivered": 3.0, "undelivered": 2.0,
	}
	r = b.get(t, metadata, runPath("swarm-1", "diagnostics"))
	require.Equal(t, totals, r.body["totals"])
	require.Equal(t, []map[string]any{
		{"event_id": "ev-1", "attempts": 2.0, "last_status": 204.0, "delivered": true},
		{"event_id": "ev-2", "attempts": 2.0, "last_status": 2000.0, "delivered": false},
		{"event_id": "ev-3", "attempts": 2.0, "last_status": "failed", "delivered": true},
		{"event_id": "ev-4", "attempts": 1.0, "last_status": "success", "delivered": true},
		{"event_id": "ev-5", "attempts": 1.0, "last_status": 199.0, "delivered": false},
	}, r.list("events"))
	attempts := r.list("attempts")
	require.Len(t, attempts, 8)
	require.Equal(t, map[string]any{
		"position": 3.0, "attempt_id": "at-3", "event_id": "ev-1", "event_type": "task.failed", "scheme": "https", "host": "hooks.example",
		"port": 443.0, "url_sha256": "ab", "status": 204.0, "delivered": true, "attempted_at": "2026-03-04T05:06:02Z",
	}, attempts[2])
	r = b.get(t, metadata, runPath("swarm-1", "diagnostics?limit=2&cursor=1"))
	require.Len(t, r.list("attempts"), 2)
	require.Len(t, r.list("events"), 2)
	require.InDelta(t, 3, r.body["next_cursor"], 0)
	require.Equal(t, totals, r.body["totals"])
	r = b.get(t, metadata, runPath("swarm-1", "diagnostics?cursor=8"))
	require.Empty(t, r.list("attempts"))
	require.Empty(t, r.list("events"))
	require.Equal(t, totals, r.body["totals"])
	require.Equal(t, http.StatusOK, b.get(t, metadata, runPath("swarm-1", "diagnostics?cursor=9007199254740991")).status)
}

func TestUsageIsSummed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	for by, schema := range map[string]string{"user": "user", "channel": "channel", "client": "client", "role": "role", "model": "model"} {
		r := b.get(t, metadata, usagePath+"?by="+by)
		require.Equal(t, map[string]any{
			"schema": "verbatim.usage.v1", "by": schema, "since": nil, "until": nil, "items": []any{}, "has_more": false, "next_cursor": nil,
		}, r.body)
	}
	rows.execution(execution{n: 1, swarm: "one"})
	rows.execution(execution{n: 2, swarm: "two", client: "client-1"})
	rows.task(1, "t-1", `{"agent_role":"impl","user_id":"u-1","channel_id":"c-1","tool_count":2,"updated_at":"2026-03-04T01:00:00Z",
"usage":{"model_id":"gpt-x","input_tokens":9007199254740991,"output_tokens":30,"total_tokens":150}}`)
	rows.task(1, "t-2", `{"agent_role":"impl","user_id":"u-2","updated_at":"2026-03-04T02:00:00Z","usage":{"model_id":"gpt-y","input_tokens":9007199254740991}}`)
	rows.task(2, "t-1", `{"user_id":"u-1","tool_count":5,"updated_at":"2026-03-04T03:00:00Z","usage":{"total_tokens":7}}`)
	rows.task(2, "t-2", `{"updated_at":"2026-03-04T04:00:00Z"}`)

	sum := func(key any, tasks, in, out, total, calls float64) map[string]any {
		return map[string]any{"key": key, "tasks": tasks, "input_tokens": in, "output_tokens": out, "total_tokens": total, "tool_calls": calls}
	}
	const most = 9007199254740991
	for query, want := range map[string][]map[string]any{
		"by=user":    {sum("u-1", 2, most, 30, 157, 7), sum("u-2", 1, most, 0, 0, 0), sum(nil, 1, 0, 0, 0, 0)},
		"by=channel": {sum("c-1", 1, most, 30, 150, 2), sum(nil, 3, most, 0, 7, 5)},
		"by=client":  {sum("client-0", 2, 2*most, 30, 150, 2), sum("client-1", 2, 0, 0, 7, 5)},
		"by=role":    {sum("impl", 2, 2*most, 30, 150, 2), sum(nil, 2, 0, 0, 7, 5)},
		"by=model":   {sum("gpt-x", 1, most, 30, 150, 2), sum("gpt-y", 1, most, 0, 0, 0), sum(nil, 2, 0, 0, 7, 5)},
		"by=user&since=2026-03-04T02:00:00Z&until=2026-03-04T04:00:00Z": {sum("u-1", 1, 0, 0, 7, 5), sum("u-2", 1, most, 0, 0, 0)},
		"by=client&since=2026-03-04T02:00:00.001Z":                      {sum("client-1", 2, 0, 0, 7, 5)},
		"by=model&until=2026-03-04T01:00:00Z":                           nil,
		"by=user&cursor=u-1":                                            {sum("u-2", 1, most, 0, 0, 0), sum(nil, 1, 0, 0, 0, 0)},
		"by=user&cursor=u-2&limit=1":                                    {sum(nil, 1, 0, 0, 0, 0)},
		"by=client&cursor=client-0":                                     {sum("client-1", 2, 0, 0, 7, 5)},
	} {
		r := b.get(t, metadata, usagePath+"?"+query)
		require.Equal(t, http.StatusOK, r.status, r.text)
		require.Equal(t, want, r.list("items"), query)
		require.Equal(t, false, r.body["has_more"], query)
	}
	r := b.get(t, metadata, usagePath+"?by=user&limit=1&since=2026-03-04T01:00:00.5Z")
	require.Equal(t, true, r.body["has_more"])
	require.Equal(t, "u-1", r.body["next_cursor"])
	require.Equal(t, "2026-03-04T01:00:00.500Z", r.body["since"])
	require.Contains(t, b.get(t, metadata, usagePath+"?by=role").text, `"input_tokens":18014398509481982,`, "sums are exact")
	for _, query := range []string{"", "by=", "by=tenant", "by=user&by=user", "by=user&since=x", "by=user&until=2026", "by=user&cursor=", "by=user&limit=x"} {
		b.get(t, metadata, usagePath+"?"+query).fails(t, http.StatusBadRequest, "invalid_request")
	}
}

func TestLineageIsServed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.execution(execution{n: 1, swarm: "swarm-1"})
	r := b.get(t, metadata, runPath("swarm-1", "lineage"))
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, "verbatim.run-lineage.v1", r.body["schema"])
	for _, list := range []string{"nodes", "edges", "roots", "orphans", "cycles", "handoffs", "retries"} {
		require.Equal(t, []any{}, r.body[list], list)
	}
	rows.task(1, "t-1", `{"agent_role":"planner","assigned_agent_id":"agent-1","child_task_ids":["t-2"],"created_at":"2026-03-04T05:06:07Z","source":"planner"}`)
	rows.task(1, "t-2", `{"depends_on":["t-9"],"parent_task_id":"t-1","retry_count":1,"root_task_id":"t-1","source":"dynamic_handoff","tool_count":0,
"usage":{"input_tokens":3,"model_id":"gpt-x"},"user_id":"u-1"}`)
	one, two, agent := "t-1", "t-2", "agent-1"
	rows.happen(1,
		executionEvent{Type: "handoff.requested", Task: &one, Instance: &agent, Payload: jsontext.Value(`{"to_agent":"agent-7"}`)},
		executionEvent{Type: "task.running", Task: &one},
		executionEvent{Type: "handoff.completed", Task: &one},
		executionEvent{Type: "task.retried", Task: &two, Payload: jsontext.Value(`{"attempt":2}`)})
	r = b.get(t, metadata, runPath("swarm-1", "lineage"))
	require.Equal(t, map[string]any{
		"task_id": "t-2", "parent_task_id": "t-1", "root_task_id": "t-1", "child_task_ids": []any{}, "depends_on": []any{"t-9"},
		"source": "dynamic_handoff", "agent_role": nil, "assigned_agent_id": nil, "retry_count": 1.0, "created_at": nil, "updated_at": nil,
		"usage":      map[string]any{"model_id": "gpt-x", "input_tokens": 3.0, "output_tokens": nil, "total_tokens": nil},
		"tool_count": 0.0, "user_id": "u-1", "channel_id": nil,
	}, r.list("nodes")[1])
	require.Equal(t, []map[string]any{{"kind": "parent", "from": "t-1", "to": "t-2"}, {"kind": "depends_on", "from": "t-2", "to": "t-9"}}, r.list("edges"))
	require.Equal(t, []any{"t-1"}, r.body["roots"])
	require.Equal(t, []map[string]any{{"task_id": "t-2", "missing_parent": nil, "missing_dependencies": []any{"t-9"}}}, r.list("orphans"))
	require.Equal(t, []map[string]any{{
		"handoff_id": nil, "task_id": "t-1", "from_agent": nil, "to_agent": "agent-7", "target_role": nil, "status": "completed", "result": "success",
		"requested": map[string]any{"position": 1.0, "occurred_at": "2026-03-04T05:06:07Z", "agent_instance_id": "agent-1"},
		"latest":    map[string]any{"position": 3.0, "occurred_at": "2026-03-04T05:06:07Z", "agent_instance_id": nil},
	}}, r.list("handoffs"))
	require.Equal(t, []map[string]any{{"task_id": "t-2", "retry_count": 1.0, "events": []any{
		map[string]any{"position": 4.0, "occurred_at": "2026-03-04T05:06:07Z", "agent_instance_id": nil, "attempt": 2.0},
	}}}, r.list("retries"))

	// More than can be shown at once is not begun.
	rows.exec(`insert into execution_events select $1, 10 + n, 'h-' || n, 'task.retried', '2026-03-04T05:06:07Z', 't-1', null, null, null, null, '{}', '{}', 0, $2
from generate_series(1, 100001) n`, executionID(1), historytest.Start)
	require.Equal(t, http.StatusOK, b.get(t, metadata, runPath("swarm-1", "lineage")).status)
	rows.exec(`update executions set last_position = 200000`)
	b.get(t, metadata, runPath("swarm-1", "lineage")).fails(t, http.StatusRequestEntityTooLarge, "run_limit")
	require.NotContains(t, b.logs.String(), "swarm-1")
}
