package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// The endpoints hold every exchange against the OpenAPI documents.
func TestExecutionsKeepTheirDocuments(t *testing.T) {
	t.Parallel()
	d := agents(t)
	agent := d.SignIn(t, "shop", "orders")
	turn := agent.OpenTurn(t, "orders", kit.NewTurn("conversation-1", "turn-1"))
	o := d.Orchestrator("shop", "swarm/1")
	opening := kit.Opening{ManagerDeploymentID: "mgr-1", DeploymentID: "dep-1", CorrelationID: "corr-1", RunID: turn.RunID}
	require.Equal(t, http.StatusCreated, o.Must(opening).Status)
	require.Equal(t, http.StatusOK, o.Must(opening).Status)
	require.Equal(t, http.StatusCreated, d.Orchestrator("narrow", "swarm/1").Must(map[string]any{"deployment_id": nil}).Status)
	o.Header = http.Header{"X-Agent-User-Id": {"ada"}, "X-Agent-Channel-Id": {"42"}, "X-Agent-Role": {"impl"}, "X-Agent-Instance-Id": {"agent-9"}, "X-Agent-Task-Id": {"t-1"}}
	tellEverything(t, o)
	refusedTelling(t, d)

	view := d.View("shop", "swarm/1")
	kit.Eventually(t, patience, func() error {
		if answer := view.Get("diagnostics", ""); !strings.Contains(string(answer.Body), `"attempts":3`) {
			return fmt.Errorf("status %d, not all is there: %s", answer.Status, answer.Body)
		}
		return nil
	})
	readEverything(t, d, view)
	for _, a := range []attempt{
		{http.MethodGet, "/admin/api/runs", "", "", 401, "unauthorized"},
		{http.MethodGet, "/admin/api/runs", "client shop", "", 401, "unauthorized"},
		{http.MethodGet, "/admin/api/usage?by=user", "noperm", "", 403, "forbidden"},
		{http.MethodGet, "/admin/api/runs/swarm%2F1/audit", "noperm", "", 403, "forbidden"},
		{http.MethodGet, "/admin/api/runs/swarm%2F2/audit", "viewer", "", 404, "run_not_found"},
		{http.MethodGet, "/admin/api/runs/swarm/1/audit", "viewer", "", 404, "not_found"},
		{http.MethodGet, "/admin/api/runs/%00/lineage", "viewer", "", 404, "run_not_found"},
		{http.MethodGet, "/admin/api/runs/swarm%2F1/audit?cursor=x", "viewer", "", 400, "invalid_request"},
		{http.MethodGet, "/admin/api/runs/swarm%2F1/approvals?limit=1&limit=2", "viewer", "", 400, "invalid_request"},
		{http.MethodGet, "/admin/api/runs?result=good", "viewer", "", 400, "invalid_request"},
		{http.MethodGet, "/admin/api/runs?since=yesterday", "viewer", "", 400, "invalid_request"},
		{http.MethodGet, "/admin/api/runs?cursor=x", "viewer", "", 400, "invalid_request"},
		{http.MethodGet, "/admin/api/usage", "viewer", "", 400, "invalid_request"},
		{http.MethodGet, "/admin/api/usage?by=tenant", "viewer", "", 400, "invalid_request"},
	} {
		a.at(t, d, d.Auditview)
	}
}

// tellEverything says all that can be said of an execution.
func tellEverything(t *testing.T, o *kit.Orchestrator) {
	t.Helper()
	events := []kit.ExecutionEvent{
		{EventID: "ev/1", EventType: "handoff.requested", OccurredAt: "2026-06-08T11:00:01.50+02:00", Payload: map[string]any{"to_agent": "agent-7", "handoff_id": "h-1"}},
		{EventID: "ev/2", EventType: "task.retried", OccurredAt: moment, TaskID: "t/2", CorrelationID: "corr-1", Payload: map[string]any{
			"attempt": 2, "prompt": kit.Canary, "status": map[string]any{"text": kit.Canary}, "decision": "maybe", "secret_ref": "azkv://vault/git", "Ünknown": true, "progress": 0.5,
		}},
		{EventID: "ev/3", EventType: "approval.requested", OccurredAt: moment, Payload: map[string]any{"approval_id": "ap/1"}},
	}
	require.Equal(t, kit.ExecutionAck{Accepted: 3, DroppedFields: 4, LastPosition: 3}, o.Record(t, events...))
	require.Equal(t, kit.ExecutionAck{Skipped: 3, DroppedFields: 4, LastPosition: 3}, o.Record(t, events...))
	usage := map[string]any{"model_id": "gpt-x", "input_tokens": 1.2e2, "output_tokens": nil}
	for id, task := range map[string]map[string]any{
		"t/1": {"root_task_id": "t/1", "depends_on": []string{"t/2"}, "source": "planner", "usage": usage, "tool_calls": []any{kit.Canary, nil}, "created_at": moment},
		"t/2": {"parent_task_id": "t/1", "depends_on": []string{"t/1", "t/9"}, "retry_count": 1, "tool_calls": 3, "tool_count": 9},
		"t/3": {"parent_task_id": "t/8", "child_task_ids": []string{}, "usage": nil},
	} {
		require.Equal(t, kit.FactAck{Changed: true}, o.Put(t, kit.Tasks, id, task))
		require.Equal(t, kit.FactAck{}, o.Put(t, kit.Tasks, id, task))
	}
	o.Put(t, kit.Approvals, "ap/1", map[string]any{"operation": "git.push", "reason": "The team agreed."})
	o.Put(t, kit.Approvals, "ap/1", map[string]any{"decision": "approved", "credential_ref": "azkv://vault/git", "decided_at": moment})
	o.Put(t, kit.Approvals, "ap/2", map[string]any{})
	grant := map[string]any{"secret_ref": "azkv://vault/git", "allowed_actions": []string{"read"}, "constraints": map[string]any{"uses": 3, "nested": map[string]any{"x": kit.Canary}}}
	require.Equal(t, kit.FactAck{Changed: true, DroppedFields: 1}, o.Put(t, kit.Grants, "grant/1", grant))
	grant["status"] = "revoked"
	o.Put(t, kit.Grants, "grant/1", grant)
	o.Put(t, kit.Grants, "grant/2", map[string]any{"constraints": nil})
	attempts := []kit.CallbackAttempt{
		{AttemptID: "at/1", EventID: "ev/1", EventType: "handoff.requested", URL: hook, Status: 503, AttemptedAt: moment},
		{AttemptID: "at/2", EventID: "ev/1", EventType: "handoff.requested", URL: "HTTPS://hooks.example.com", Status: 204, AttemptedAt: moment},
		{AttemptID: "at/3", EventID: "ev/2", EventType: "task.retried", URL: "http://[::1]/", Status: "timeout", AttemptedAt: moment},
	}
	require.Equal(t, kit.ExecutionAck{Accepted: 3, LastPosition: 3}, o.Attempt(t, attempts...))
	require.Equal(t, kit.ExecutionAck{Skipped: 3, LastPosition: 3}, o.Attempt(t, attempts...))
}

// refusedTelling tries what is refused.
func refusedTelling(t *testing.T, d *kit.Deployment) {
	t.Helper()
	const base = kit.ExecutionsPath + "/swarm%2F1"
	event := func(id, eventType string) string {
		return `{"events":[{"event_id":"` + id + `","event_type":"` + eventType + `","occurred_at":"` + moment + `"}]}`
	}
	large := `{"x":"` + strings.Repeat("x", 2<<20) + `"}`
	for _, a := range []attempt{
		{http.MethodPut, base, "", `{}`, 401, "unauthorized"},
		{http.MethodPut, base, "viewer", `{}`, 401, "unauthorized"},
		{http.MethodPut, base, "client shop", `{"deployment_id":"dep-2"}`, 409, "run_conflict"},
		{http.MethodPut, base, "client shop", `{"x":1}`, 400, "invalid_request"},
		{http.MethodPut, base, "client shop", large, 413, "run_limit"},
		{http.MethodPut, kit.ExecutionsPath + "/two%20words", "client shop", `{}`, 400, "invalid_request"},
		{http.MethodPut, kit.ExecutionsPath + "/swarm-9", "client shop", `{"run_id":"` + kit.UUID() + `"}`, 409, "run_conflict"},
		{http.MethodPost, base + "/events", "client shop", `{"events":[]}`, 400, "invalid_request"},
		{http.MethodPost, base + "/events", "client shop", event("ev/1", "task.failed"), 409, "run_conflict"},
		{http.MethodPost, base + "/events", "client shop", strings.Replace(event("ev/4", "a.b"), "}]", `,"correlation_id":"corr-2"}]`, 1), 409, "run_conflict"},
		{http.MethodPost, base + "/events", "client shop", large, 413, "run_limit"},
		{http.MethodPost, kit.ExecutionsPath + "/swarm-2/events", "client shop", event("ev-1", "a.b"), 404, "run_not_found"},
		{http.MethodPost, kit.ExecutionsPath + "/%00/events", "client shop", event("ev-1", "a.b"), 404, "run_not_found"},
		{http.MethodPut, base + "/tasks/t-1", "client shop", `{"source":"nobody"}`, 400, "invalid_request"},
		{http.MethodPut, base + "/tasks/two%20words", "client shop", `{}`, 400, "invalid_request"},
		{http.MethodPut, base + "/approvals/ap%2F1", "client shop", `{"decision":"rejected"}`, 409, "run_conflict"},
		{http.MethodPut, base + "/approvals/ap%2F3", "client shop", `{"credential_ref":"vault"}`, 400, "invalid_request"},
		{http.MethodPut, base + "/grants/grant%2F1", "client shop", `{}`, 409, "run_conflict"},
		{http.MethodPut, base + "/grants/g", "client shop", `{"secret_ref":"swordfish"}`, 400, "invalid_request"},
		{http.MethodPost, base + "/callback-attempts", "client shop", `{"attempts":[{}]}`, 400, "invalid_request"},
		{http.MethodPost, base + "/callback-attempts", "client narrow", `{"attempts":[]}`, 400, "invalid_request"},
		{http.MethodPost, base + "/tasks", "client shop", `{}`, 404, "not_found"},
		{http.MethodGet, base, "client shop", "", 404, "not_found"},
		{http.MethodPost, "/runtime-api/v1/nothing", "client shop", `{}`, 404, "not_found"},
	} {
		a.at(t, d, d.Ingest)
	}
	o := d.Orchestrator("shop", "swarm/1")
	o.Header = http.Header{"X-Agent-Role": {"two words"}}
	assert.Equal(t, http.StatusBadRequest, o.Must(map[string]any{}, kit.Tasks, "t-1").Status)
	o.Header = http.Header{"Content-Encoding": {"gzip"}}
	assert.Equal(t, http.StatusUnsupportedMediaType, o.Must(map[string]any{}, kit.Tasks, "t-1").Status)
}

// readEverything reads all that is served about the execution, in pages and by every filter.
func readEverything(t *testing.T, d *kit.Deployment, view kit.View) {
	t.Helper()
	for _, what := range []string{"audit", "replay", "events", "logs", "lineage", "approvals", "grants", "diagnostics"} {
		for _, query := range [][]string{{}, {"limit", "1"}, {"limit", "1", "cursor", "1"}, {"limit", "5000"}} {
			answer := view.Get(what, "", query...)
			require.Equal(t, http.StatusOK, answer.Status, "%s %v: %s", what, query, answer.Body)
			require.NotContains(t, string(answer.Body), kit.Canary)
		}
	}
	lines, err := view.Stream()
	require.NoError(t, err)
	require.Len(t, lines, 3)
	for _, accept := range []string{"", "application/json", "application/x-ndjson"} {
		first := view.Get("audit", accept)
		request := kit.Request{Method: http.MethodGet, Path: "/admin/api/runs/swarm%2F1/audit?client_app_id=shop", Bearer: kit.Viewer, Header: http.Header{"If-None-Match": first.Header["Etag"]}}
		if accept != "" {
			request.Header.Set("Accept", accept)
		}
		require.Equal(t, http.StatusNotModified, d.Auditview.Must(request).Status, accept)
	}
	lineage := string(view.Get("lineage", "").Body)
	for _, part := range []string{`"missing_parent":"t/8"`, `"missing_dependencies":["t/9"]`, `"kind":"depends_on","task_ids":["t/1","t/2"]`, `"handoff_id":"h-1"`, `"tool_count":3`} {
		assert.Contains(t, lineage, part)
	}
	requireCandidates(t, kit.View{Auditview: d.Auditview, ID: "swarm/1"}, 2)
	for _, path := range []string{
		"/runs", "/runs?client_app_id=shop&result=info&agent_role=impl&model_id=gpt-x&user_id=ada&channel_id=42&since=2020-01-01T00:00:00Z&until=2999-01-01T00:00:00%2B02:00",
		"/usage?by=user", "/usage?by=channel&limit=1", "/usage?by=client&since=2020-01-01T00:00:00Z", "/usage?by=role&cursor=a", "/usage?by=model",
	} {
		answer := d.Admin(path)
		require.Equal(t, http.StatusOK, answer.Status, "%s: %s", path, answer.Body)
		assert.Contains(t, string(answer.Body), `"schema"`)
	}
	var page struct {
		NextCursor string `json:"next_cursor"`
	}
	d.Admin("/runs?limit=1").Decode(t, http.StatusOK, &page)
	next := d.Admin("/runs?limit=1&cursor=" + page.NextCursor)
	require.Contains(t, string(next.Body), `"has_more":false`)
	require.Contains(t, string(next.Body), `"swarm_id":"swarm/1"`)
}
