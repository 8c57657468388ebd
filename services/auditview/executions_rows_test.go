package auditview_test

import (
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/services/auditview/internal/historytest"
)

const (
	runsPath  = "/admin/api/runs"
	usagePath = "/admin/api/usage"
)

// runPath is a path of an execution, by any id of it.
func runPath(id, part string) string { return runsPath + "/" + url.PathEscape(id) + "/" + part }

// executionID returns the n-th id of an execution.
func executionID(n int) string { return historytest.ID(0x6000, n) }

// execution is an execution as its rows say.
type execution struct {
	n       int
	client  string
	swarm   string
	lineage trace.Lineage
	run     *string
	result  string
	at      time.Time // of its latest event
}

// execution writes an execution without events.
func (r rows) execution(x execution) {
	r.tb.Helper()
	if x.client == "" {
		x.client = "client-0"
	}
	if x.result == "" {
		x.result = "info"
	}
	if x.at.IsZero() {
		x.at = second(x.n)
	}
	r.exec(`insert into executions (execution_id, client_app_id, swarm_id, manager_deployment_id, deployment_id, correlation_id, run_id,
	last_position, result, version, created_at, latest_at) values ($1, $2, $3, $4, $5, $6, $7, 0, $8, 1, $9, $10)`,
		executionID(x.n), x.client, x.swarm, x.lineage.ManagerDeploymentID, x.lineage.DeploymentID, x.lineage.CorrelationID, x.run,
		x.result, historytest.Start, x.at)
}

// executionEvent is a stored event of an execution.
type executionEvent struct {
	ID       string         `json:"event_id"`
	Type     string         `json:"event_type"`
	At       string         `json:"occurred_at"`
	Task     *string        `json:"task_id"`
	Instance *string        `json:"agent_instance_id"`
	Payload  jsontext.Value `json:"payload"`
}

// happen appends events to an execution and moves its version.
func (r rows) happen(n int, events ...executionEvent) {
	r.tb.Helper()
	var last int
	require.NoError(r.tb, r.admin.QueryRow(r.tb.Context(), `select last_position from executions where execution_id = $1`, executionID(n)).Scan(&last))
	for _, e := range events {
		last++
		if e.ID == "" {
			e.ID = fmt.Sprintf("ev-%d", last)
		}
		if e.At == "" {
			e.At = "2026-03-04T05:06:07Z"
		}
		if e.Payload == nil {
			e.Payload = jsontext.Value("{}")
		}
		r.exec(`insert into execution_events (execution_id, position, event_id, event_type, occurred_at, task_id, agent_instance_id, payload,
	dropped_fields, dropped_count, recorded_at) values ($1, $2, $3, $4, $5, $6, $7, $8, '{}', 0, $9)`,
			executionID(n), last, e.ID, e.Type, e.At, e.Task, e.Instance, string(e.Payload), historytest.Start)
	}
	r.exec(`update executions set last_position = $2, version = version + 1 where execution_id = $1`, executionID(n), last)
}

// task tells facts of a task, which moves the execution's version.
func (r rows) task(n int, id, facts string) {
	r.tb.Helper()
	r.exec(`update executions set version = version + 1 where execution_id = $1`, executionID(n))
	r.exec(`insert into execution_tasks (execution_id, task_id, version, agent_role, model_id, input_tokens, output_tokens, total_tokens,
	tool_count, user_id, channel_id, used_at, facts)
select $1, $2, version, f ->> 'agent_role', f -> 'usage' ->> 'model_id', (f -> 'usage' ->> 'input_tokens')::bigint,
       (f -> 'usage' ->> 'output_tokens')::bigint, (f -> 'usage' ->> 'total_tokens')::bigint, (f ->> 'tool_count')::bigint,
       f ->> 'user_id', f ->> 'channel_id', coalesce((f ->> 'updated_at')::timestamptz, $4), f
from executions, cast($3 as json) f
where execution_id = $1
on conflict (execution_id, task_id) do update set version = excluded.version, agent_role = excluded.agent_role, model_id = excluded.model_id,
	tool_count = excluded.tool_count, facts = excluded.facts`, executionID(n), id, facts, historytest.Start)
}

// approval tells facts of an approval, which moves the execution's version.
func (r rows) approval(n int, id, facts string) {
	r.tb.Helper()
	r.exec(`update executions set version = version + 1 where execution_id = $1`, executionID(n))
	r.exec(`insert into execution_approvals (execution_id, approval_id, version, decision, facts)
select $1, $2, version, f ->> 'decision', f from executions, cast($3 as json) f where execution_id = $1`, executionID(n), id, facts)
}

// vector is a run of the contract's vectors.
type vector struct {
	Name      string                    `json:"name"`
	Lineage   trace.Lineage             `json:"lineage"`
	Tasks     map[string]jsontext.Value `json:"tasks"`
	Approvals map[string]jsontext.Value `json:"approvals"`
	Events    []executionEvent          `json:"events"`
	Records   []jsontext.Value          `json:"records"`
	Replay    []string                  `json:"replay"`
}

func vectors(t *testing.T) []vector {
	t.Helper()
	raw, err := os.ReadFile("../../pkg/domain/trace/testdata/audit-trace.json")
	require.NoError(t, err)
	var file struct {
		Vectors []vector `json:"vectors"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	require.NotEmpty(t, file.Vectors)
	return file.Vectors
}

// vector writes a vector as the n-th execution, called by the swarm id that is returned.
func (r rows) vector(n int, v vector) string {
	r.tb.Helper()
	swarm := fmt.Sprintf("vector-%d", n)
	if v.Lineage.SwarmID != nil {
		swarm = *v.Lineage.SwarmID
	}
	r.execution(execution{n: n, client: fmt.Sprintf("client-%d", n), swarm: swarm, lineage: v.Lineage})
	for id, facts := range v.Tasks {
		r.task(n, id, string(stored(r.tb, facts)))
	}
	for id, facts := range v.Approvals {
		r.approval(n, id, string(facts))
	}
	for i, e := range v.Events { // in the spelling that ingest stores
		v.Events[i].At = normalized(r.tb, e.At)
	}
	r.happen(n, v.Events...)
	return swarm
}

// stored returns a task's facts as ingest stores them: of tool_calls only the count.
func stored(tb testing.TB, sent jsontext.Value) jsontext.Value {
	tb.Helper()
	var facts map[string]jsontext.Value
	require.NoError(tb, json.Unmarshal(sent, &facts))
	if calls, ok := facts["tool_calls"]; ok {
		n, ok := trace.CountCalls(calls)
		require.True(tb, ok)
		delete(facts, "tool_calls")
		facts["tool_count"] = jsontext.Value(fmt.Sprint(n))
	}
	out, err := json.Marshal(facts, json.Deterministic(true))
	require.NoError(tb, err)
	return out
}

// many appends events of one task, so many that they are not written one by one.
func (r rows) many(n, events int) {
	r.tb.Helper()
	r.exec(`insert into execution_events (execution_id, position, event_id, event_type, occurred_at, task_id, agent_instance_id, payload,
	dropped_fields, dropped_count, recorded_at)
select $1, p, 'ev-' || p, 'task.heartbeat', '2026-03-04T05:06:07Z', 't-1', 'agent-' || p % 7, '{}', '{}', 0, $3
from generate_series(1, $2::integer) p`, executionID(n), events, historytest.Start)
	r.exec(`update executions set last_position = $2, version = version + 1 where execution_id = $1`, executionID(n), events)
}
