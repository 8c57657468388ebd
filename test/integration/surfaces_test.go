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

// The endpoints of these tests hold every exchange against the OpenAPI documents. What
// the rules are in detail is tested beside them.

// agents starts a deployment with two clients, a controller and a route that says what to do.
func agents(t *testing.T) *kit.Deployment {
	t.Helper()
	orders := kit.NewRoute("orders")
	orders.Instructions = "Answer in short sentences."
	narrow := kit.NewClient("narrow")
	narrow.AllowedRoutes = []string{"orders"}
	registry := kit.Registry{
		Clients: []kit.Client{kit.NewClient("shop"), narrow}, Routes: []kit.Route{orders, kit.NewRoute("returns")},
		Controllers: []kit.Controller{kit.NewController("ops"), {Name: "guest", Token: guest, Permissions: []string{"registry:read"}}},
	}
	return kit.Start(t, kit.Options{Control: true, Registry: registry.Encode()})
}

const guest = "bvc_guest______________________________________"

// attempt is a request that is refused.
type attempt struct {
	method, path, bearer, body string
	status                     int
	code                       string
}

func (a attempt) at(t *testing.T, d *kit.Deployment, e *kit.Endpoint) {
	t.Helper()
	r := kit.Request{Method: a.method, Path: a.path, Bearer: d.Bearer(a.bearer)}
	if a.body != "" {
		r.Body = []byte(a.body)
	}
	answer := e.Must(r)
	assert.Equal(t, a.status, answer.Status, "%s %s: %s", a.method, a.path, answer.Body)
	assert.Equal(t, a.code, answer.Code(), "%s %s", a.method, a.path)
}

func TestAgentAuthKeepsItsDocument(t *testing.T) {
	t.Parallel()
	d := agents(t)
	pending := d.Authorize(t, "shop", "orders", "returns")
	shown := d.Ingest.Must(kit.Request{Method: http.MethodGet, Path: pending.Path(), Bearer: d.Bearer("client shop")})
	require.Contains(t, string(shown.Body), `"status":"pending"`)
	denied := d.Authorize(t, "shop", "orders")
	require.Equal(t, "access_denied", denied.Deny(t))

	code := pending.Approve(t, kit.Principal{ID: "operator", Tenant: "store", Roles: []string{}}, "store:operator")
	agent := pending.Exchange(t, code)
	agent.Refresh(t)
	session := agent.Do(http.MethodGet, kit.AuthPath+"/session", nil)
	require.Equal(t, http.StatusOK, session.Status, "%s", session.Body)

	const unknown = kit.AuthPath + "/authorizations/523e4567-e89b-42d3-a456-426614174001"
	const approval = `{"principal":{"id":"p","roles":[]},"on_behalf_of":"p","allowed_routes":["orders"]}`
	request := func(client, routes string) string {
		return `{"client_app_id":"` + client + `","redirect_uri":"http://[::1]:1/","state":"state-of-agent","requested_routes":[` + routes +
			`],"device_label":"d","code_challenge":"` + strings.Repeat("A", 43) + `","code_challenge_method":"S256"}`
	}
	open := d.Authorize(t, "shop", "orders")
	for _, a := range []attempt{
		{http.MethodPost, kit.AuthPath + "/authorizations", "", request("shop", `"*"`), 400, "invalid_request"},
		{http.MethodPost, kit.AuthPath + "/authorizations", "", request("narrow", `"returns"`), 400, "invalid_client"},
		{http.MethodPost, kit.AuthPath + "/authorizations", "", `{"x":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "request_limit"},
		{http.MethodGet, pending.Path(), "", "", 401, "unauthorized"},
		{http.MethodGet, pending.Path(), "client narrow", "", 404, "authorization_not_found"},
		{http.MethodGet, unknown, "client shop", "", 404, "authorization_not_found"},
		{http.MethodPost, unknown + "/approve", "client shop", approval, 404, "authorization_not_found"},
		{http.MethodPost, pending.Path() + "/approve", "client shop", approval, 409, "authorization_decided"},
		{http.MethodPost, pending.Path() + "/approve", "client shop", `{}`, 400, "invalid_request"},
		{http.MethodPost, open.Path() + "/approve", "client shop", strings.Replace(approval, "orders", "returns", 1), 403, "route_not_allowed"},
		{http.MethodPost, denied.Path() + "/deny", "client shop", `{}`, 409, "authorization_decided"},
		{http.MethodPost, denied.Path() + "/deny", "client shop", `{"x":1}`, 400, "invalid_request"},
		{http.MethodPost, kit.AuthPath + "/token", "", string(kit.JSON(pending.CodeGrant(code))), 400, "invalid_grant"},
		{http.MethodPost, kit.AuthPath + "/token", "", `{"grant_type":"password"}`, 400, "unsupported_grant_type"},
		{http.MethodPost, kit.AuthPath + "/token", "", `{"grant_type":"refresh_token"}`, 400, "invalid_request"},
		{http.MethodGet, kit.AuthPath + "/session", "client shop", "", 401, "unauthorized"},
		{http.MethodPost, kit.AuthPath + "/revoke", "", `{"client_app_id":"shop","refresh_token":"x"}`, 400, "invalid_grant"},
		{http.MethodPost, kit.AuthPath + "/revoke", "", `{}`, 400, "invalid_request"},
		{http.MethodPost, kit.AuthPath + "/sessions/" + agent.SessionID + "/revoke", "client narrow", `{}`, 404, "session_not_found"},
		{http.MethodGet, kit.AuthPath + "/nothing", "", "", 404, "not_found"},
	} {
		a.at(t, d, d.Ingest)
	}
	for range 8 {
		d.Authorize(t, "narrow", "orders")
	}
	d.Authorize(t, "narrow", "orders")
	d.Authorize(t, "narrow", "orders")
	attempt{http.MethodPost, kit.AuthPath + "/authorizations", "", request("narrow", `"orders"`), 429, "rate_limited"}.at(t, d, d.Ingest)

	revoked := kit.Request{Method: http.MethodPost, Path: kit.AuthPath + "/sessions/" + agent.SessionID + "/revoke", Bearer: d.Bearer("client shop"), Body: []byte("{}")}
	for range 2 {
		require.Equal(t, http.StatusOK, d.Ingest.Must(revoked).Status)
	}
	attempt{http.MethodGet, kit.AuthPath + "/session", agent.AccessToken, "", 401, "unauthorized"}.at(t, d, d.Ingest)
	attempt{http.MethodPost, kit.AuthPath + "/token", "", string(kit.JSON(agent.RefreshGrant())), 400, "invalid_grant"}.at(t, d, d.Ingest)
}

func TestRunsAndTheirTracesKeepTheirDocuments(t *testing.T) {
	t.Parallel()
	d := agents(t)
	agent := d.SignIn(t, "shop", "orders")
	for _, path := range []string{"/workspaces", "/workspaces/orders/bootstrap"} {
		first := agent.Do(http.MethodGet, kit.AgentPath+path, nil)
		require.Equal(t, http.StatusOK, first.Status, "%s", first.Body)
		again := d.Ingest.Must(kit.Request{
			Method: http.MethodGet, Path: kit.AgentPath + path, Bearer: agent.AccessToken, Header: http.Header{"If-None-Match": first.Header["Etag"]},
		})
		require.Equal(t, http.StatusNotModified, again.Status)
		require.Empty(t, again.Body)
	}
	turn := kit.NewTurn("conversation-1", "turn-1")
	opened := agent.OpenTurn(t, "orders", turn)
	require.Equal(t, "Answer in short sentences.", opened.Instructions)
	first, again := agent.Turn("orders", turn), agent.Turn("orders", turn)
	require.Equal(t, http.StatusOK, again.Status)
	require.Equal(t, first.Body, again.Body)

	job, rejected := kit.UUID(), kit.UUID()
	events := append(kit.ToolCall(job, "2026-06-08T11:00:01.25+02:00"),
		kit.TraceEvent{EventID: "asked", Event: "approval.requested", OccurredAt: "2026-06-08T09:00:02Z", JobID: rejected, Metadata: map[string]any{
			"approval_id": "ap-1", "risk_level": "high", "prompt": kit.Canary, "decision": "maybe", "state": nil,
		}},
		kit.TraceEvent{EventID: "rejected", Event: "approval.rejected", OccurredAt: "2026-06-08T09:00:03Z", JobID: rejected, Metadata: map[string]any{"approval_id": "ap-1", "decision": "rejected"}},
		kit.TraceEvent{EventID: "sent", Event: "delivery.failed", OccurredAt: "2026-06-08T09:00:04Z", Metadata: map[string]any{"path": "/hooks/x?token=" + kit.Canary, "attempt": 2}},
	)
	ack := agent.MustRecordTrace(t, opened.RunID, events...)
	require.Equal(t, kit.TraceAck{Accepted: 5, DroppedFields: 3, LastPosition: 5}, ack)
	require.Equal(t, kit.TraceAck{Skipped: 5, DroppedFields: 3, LastPosition: 5}, agent.MustRecordTrace(t, opened.RunID, events...))
	completion := kit.NewCompletion("turn-1")
	require.False(t, agent.MustComplete(t, opened.RunID, completion).IdempotentReplay)
	require.True(t, agent.MustComplete(t, opened.RunID, completion).IdempotentReplay)
	second := agent.OpenTurn(t, "orders", kit.NewTurn("conversation-1", "turn-2"))
	require.Equal(t, opened.ThreadID, second.ThreadID)

	run := kit.AgentPath + "/runs/" + opened.RunID
	other := d.SignIn(t, "narrow", "orders")
	turnBody := func(change func(*kit.TurnRequest)) string {
		changed := turn
		change(&changed)
		return string(kit.JSON(changed))
	}
	for _, a := range []attempt{
		{http.MethodGet, kit.AgentPath + "/workspaces/returns/bootstrap", agent.AccessToken, "", 403, "route_not_allowed"},
		{http.MethodPost, kit.AgentPath + "/workspaces/returns/turns", agent.AccessToken, turnBody(func(*kit.TurnRequest) {}), 403, "route_not_allowed"},
		{http.MethodPost, kit.AgentPath + "/workspaces/orders/turns", agent.AccessToken, turnBody(func(r *kit.TurnRequest) { r.UserInput = "else" }), 409, "turn_conflict"},
		{http.MethodPost, kit.AgentPath + "/workspaces/orders/turns", agent.AccessToken, turnBody(func(r *kit.TurnRequest) { r.UserInput = " " }), 400, "invalid_request"},
		{http.MethodPost, kit.AgentPath + "/workspaces/orders/turns", agent.AccessToken, turnBody(func(r *kit.TurnRequest) { r.PageContext = map[string]any{"x": strings.Repeat("x", 16<<10)} }), 413, "run_limit"},
		{http.MethodPost, run + "/complete", agent.AccessToken, string(kit.JSON(kit.Completion{AssistantMessageID: "a", Status: "failed"})), 409, "run_completion_conflict"},
		{http.MethodPost, kit.AgentPath + "/runs/" + second.RunID + "/complete", agent.AccessToken, string(kit.JSON(completion)), 409, "assistant_message_conflict"},
		{http.MethodPost, run + "/complete", other.AccessToken, string(kit.JSON(completion)), 404, "run_not_found"},
		{http.MethodPost, run + "/trace-events", other.AccessToken, string(kit.JSON(map[string]any{"events": events})), 404, "run_not_found"},
		{http.MethodPost, run + "/trace-events", agent.AccessToken, `{"events":[]}`, 400, "invalid_request"},
		{http.MethodPost, kit.AgentPath + "/runs/" + second.RunID + "/trace-events", agent.AccessToken, string(kit.JSON(map[string]any{"events": events})), 409, "trace_event_conflict"},
		{http.MethodGet, kit.AgentPath + "/workspaces", "bha_nobody", "", 401, "unauthorized"},
		{http.MethodGet, kit.AgentPath + "/runs/" + opened.RunID, agent.AccessToken, "", 404, "not_found"},
	} {
		a.at(t, d, d.Ingest)
	}

	var trace struct {
		Run         struct{ Status string }
		Trace       struct{ Summary map[string]any }
		Events      []any
		Invocations []struct {
			JobID  string `json:"job_id"`
			Status string
		}
	}
	thread := fmt.Sprintf("/threads/%d", opened.ThreadID)
	kit.Eventually(t, patience, func() error {
		answer := d.Admin(thread + "/agent-runs/" + opened.RunID + "/trace")
		if answer.Status != http.StatusOK {
			return fmt.Errorf("status %d", answer.Status)
		}
		answer.Decode(t, http.StatusOK, &trace)
		if trace.Run.Status != "completed" {
			return fmt.Errorf("the run is %s", trace.Run.Status)
		}
		return nil
	})
	require.EqualValues(t, 7, trace.Trace.Summary["event_count"])
	require.Len(t, trace.Invocations, 2)
	require.Equal(t, []string{"completed", "rejected"}, []string{trace.Invocations[0].Status, trace.Invocations[1].Status})
	kit.Eventually(t, patience, func() error {
		if answer := d.Admin(thread + "?limit=1&offset=1"); !strings.Contains(string(answer.Body), second.RunID) {
			return fmt.Errorf("the second run is not there: %d", answer.Status)
		}
		return nil
	})
	for _, path := range []string{"/threads", "/threads?limit=1", thread, "/runs/" + job + "/trace", "/runs/" + rejected + "/trace", "/registry-changes", "/registry-changes?limit=1&kind=session"} {
		answer := d.Admin(path)
		require.Equal(t, http.StatusOK, answer.Status, "%s: %s", path, answer.Body)
		require.NotContains(t, string(answer.Body), kit.Canary)
	}
	for _, a := range []attempt{
		{http.MethodGet, "/admin/api/threads/999", "viewer", "", 404, "thread_not_found"},
		{http.MethodGet, "/admin/api/threads?limit=x", "viewer", "", 400, "invalid_request"},
		{http.MethodGet, "/admin/api/threads", "noperm", "", 403, "forbidden"},
		{http.MethodGet, "/admin/api/threads/999/agent-runs/" + opened.RunID + "/trace", "viewer", "", 404, "run_not_found"},
		{http.MethodGet, "/admin/api/runs/" + opened.RunID + "/trace", "metadata", "", 404, "run_not_found"},
		{http.MethodGet, "/admin/api/registry-changes?kind=x", "metadata", "", 400, "invalid_request"},
		{http.MethodGet, "/admin/api/registry-changes", "", "", 401, "unauthorized"},
	} {
		a.at(t, d, d.Auditview)
	}
}

func TestTheControlAPIKeepsItsDocument(t *testing.T) {
	t.Parallel()
	d := agents(t)
	const base = "/control-api/v1"
	ops := d.Bearer("controller ops")
	do := func(method, path, body string, status int) kit.Response {
		t.Helper()
		r := kit.Request{Method: method, Path: base + path, Bearer: ops}
		if body != "" {
			r.Body = []byte(body)
		}
		answer := d.Control.Must(r)
		require.Equal(t, status, answer.Status, "%s %s: %s", method, path, answer.Body)
		return answer
	}
	for _, path := range []string{"/healthz", "/openapi.yaml"} {
		require.Equal(t, http.StatusOK, d.Control.Must(kit.Request{Method: http.MethodGet, Path: path}).Status, path)
	}
	do(http.MethodPut, "/clients/crm", `{"name":"CRM","agent_authorize_url":"https://crm.example.com/","allowed_routes":["orders"]}`, 201)
	do(http.MethodPut, "/clients/crm", `{"name":"CRM","allowed_routes":["*"]}`, 200)
	do(http.MethodPost, "/clients/crm/token", `{}`, 200)
	do(http.MethodPost, "/clients/crm/disable", `{}`, 200)
	do(http.MethodPut, "/routes/crm", `{"name":"CRM","agent_access":true,"audience":{"enabled":true,"tenants":["a"]},"instructions":"Be kind."}`, 201)
	do(http.MethodPut, "/routes/crm", `{"name":"CRM"}`, 200)
	do(http.MethodPost, "/routes/crm/disable", `{}`, 200)
	var issued struct {
		Session struct {
			SessionID string `json:"session_id"`
		} `json:"session"`
		AccessToken string `json:"access_token"`
	}
	const session = `{"client_app_id":"shop","device_label":"counter","principal":{"id":"p"},"on_behalf_of":"p","allowed_routes":["orders"],` +
		`"access_expires_at":"2099-01-01T00:00:00Z","refresh_expires_at":"2099-02-01T00:00:00+01:00"}`
	do(http.MethodPost, "/sessions", session, 201).Decode(t, 201, &issued)
	id := issued.Session.SessionID
	run := `{"runs":[{"run_id":"` + kit.UUID() + `","session_id":"` + id + `","client_app_id":"shop","route_key":"orders","thread_id":7000,` +
		`"client_conversation_id":"c","client_turn_id":"t"}]}`
	do(http.MethodPost, "/runs", run, 200)
	require.JSONEq(t, `{"created":0,"unchanged":1}`, string(do(http.MethodPost, "/runs", run, 200).Body))
	do(http.MethodPost, "/sessions/"+id+"/revoke", `{}`, 200)
	do(http.MethodPost, "/sessions/"+id+"/revoke", `{}`, 200)
	for _, path := range []string{
		"/clients", "/clients?limit=1", "/clients?limit=1&after=crm", "/clients/crm", "/routes", "/routes/crm",
		"/sessions", "/sessions?client_app_id=shop&limit=1", "/sessions/" + id,
	} {
		do(http.MethodGet, path, "", 200)
	}
	for _, a := range []attempt{
		{http.MethodGet, base + "/clients", "", "", 401, "unauthorized"},
		{http.MethodGet, base + "/clients", "client shop", "", 401, "unauthorized"},
		{http.MethodGet, base + "/clients", guest, "", 403, "forbidden"},
		{http.MethodGet, base + "/clients?limit=0", ops, "", 400, "invalid_request"},
		{http.MethodGet, base + "/clients/nobody", ops, "", 404, "registry_not_found"},
		{http.MethodPut, base + "/clients/crm", ops, `{"name":""}`, 400, "invalid_request"},
		{http.MethodPut, base + "/clients/crm", ops, `{"name":"CRM","token":"` + kit.ClientToken("shop") + `"}`, 409, "registry_conflict"},
		{http.MethodPut, base + "/routes/auto", ops, `{"name":"x"}`, 400, "invalid_request"},
		{http.MethodPost, base + "/routes/nothing/disable", ops, `{}`, 404, "registry_not_found"},
		{http.MethodPost, base + "/sessions", ops, strings.Replace(session, "{", `{"session_id":"`+id+`",`, 1), 409, "registry_conflict"},
		{http.MethodPost, base + "/sessions", ops, strings.Replace(session, "{", `{"access_token":"x",`, 1), 400, "invalid_request"},
		{http.MethodGet, base + "/sessions/x", ops, "", 404, "registry_not_found"},
		{http.MethodPost, base + "/runs", ops, `{"runs":[]}`, 400, "invalid_request"},
		{http.MethodPost, base + "/runs", ops, strings.Replace(run, `"thread_id":7000`, `"thread_id":7001`, 1), 409, "registry_conflict"},
		{http.MethodPost, base + "/runs", ops, `{"x":"` + strings.Repeat("x", 2<<20) + `"}`, 413, "request_limit"},
		{http.MethodDelete, base + "/clients/crm", ops, "", 404, "not_found"},
	} {
		a.at(t, d, d.Control)
	}
	attempt{http.MethodGet, base + "/clients", ops, "", 404, "not_found"}.at(t, d, d.Ingest)
	kit.Eventually(t, patience, func() error {
		if answer := d.Admin("/registry-changes?kind=session&name=" + id); strings.Count(string(answer.Body), `"change_id"`) != 2 {
			return fmt.Errorf("status %d, not both changes of the session are there", answer.Status)
		}
		return nil
	})
}
