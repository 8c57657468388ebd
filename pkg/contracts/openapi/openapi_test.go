package openapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/openapi"
)

func load(t *testing.T, data []byte) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(data)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	require.Equal(t, "3.1.0", doc.OpenAPI)
	return doc
}

func documents() map[string][]byte {
	return map[string][]byte{"ingest": openapi.Ingest, "control": openapi.Control, "auditview": openapi.Auditview}
}

func TestDocumentsNameEveryPath(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"ingest": {
			"GET /agent-api/v1/conversation-audits/capabilities",
			"GET /agent-api/v1/workspaces",
			"GET /agent-api/v1/workspaces/{route_key}/bootstrap",
			"GET /agent-auth/v1/authorizations/{authorization_id}",
			"GET /agent-auth/v1/session",
			"GET /healthz",
			"GET /openapi.yaml",
			"GET /readyz",
			"POST /agent-api/v1/conversation-audits",
			"POST /agent-api/v1/conversation-audits/{conversation_id}/confirm",
			"POST /agent-api/v1/conversation-audits/{conversation_id}/events",
			"POST /agent-api/v1/runs/{run_id}/complete",
			"POST /agent-api/v1/runs/{run_id}/trace-events",
			"POST /agent-api/v1/workspaces/{route_key}/turns",
			"POST /agent-auth/v1/authorizations",
			"POST /agent-auth/v1/authorizations/{authorization_id}/approve",
			"POST /agent-auth/v1/authorizations/{authorization_id}/deny",
			"POST /agent-auth/v1/revoke",
			"POST /agent-auth/v1/sessions/{session_id}/revoke",
			"POST /agent-auth/v1/token",
			"POST /runtime-api/v1/runs/{swarm_id}/callback-attempts",
			"POST /runtime-api/v1/runs/{swarm_id}/events",
			"PUT /runtime-api/v1/runs/{swarm_id}",
			"PUT /runtime-api/v1/runs/{swarm_id}/approvals/{approval_id}",
			"PUT /runtime-api/v1/runs/{swarm_id}/grants/{grant_id}",
			"PUT /runtime-api/v1/runs/{swarm_id}/tasks/{task_id}",
		},
		"control": {
			"GET /control-api/v1/clients",
			"GET /control-api/v1/clients/{app_id}",
			"GET /control-api/v1/routes",
			"GET /control-api/v1/routes/{route_key}",
			"GET /control-api/v1/sessions",
			"GET /control-api/v1/sessions/{session_id}",
			"GET /healthz",
			"GET /openapi.yaml",
			"POST /control-api/v1/clients/{app_id}/disable",
			"POST /control-api/v1/clients/{app_id}/token",
			"POST /control-api/v1/routes/{route_key}/disable",
			"POST /control-api/v1/runs",
			"POST /control-api/v1/sessions",
			"POST /control-api/v1/sessions/{session_id}/revoke",
			"PUT /control-api/v1/clients/{app_id}",
			"PUT /control-api/v1/routes/{route_key}",
		},
		"auditview": {
			"GET /admin/api/conversation-audits",
			"GET /admin/api/conversation-audits/{conversation_id}",
			"GET /admin/api/registry-changes",
			"GET /admin/api/runs",
			"GET /admin/api/runs/{id}/approvals",
			"GET /admin/api/runs/{id}/audit",
			"GET /admin/api/runs/{id}/diagnostics",
			"GET /admin/api/runs/{id}/events",
			"GET /admin/api/runs/{id}/grants",
			"GET /admin/api/runs/{id}/lineage",
			"GET /admin/api/runs/{id}/logs",
			"GET /admin/api/runs/{id}/replay",
			"GET /admin/api/runs/{job_id}/trace",
			"GET /admin/api/threads",
			"GET /admin/api/threads/{thread_id}",
			"GET /admin/api/threads/{thread_id}/agent-runs/{run_id}/trace",
			"GET /admin/api/usage",
			"GET /healthz",
			"GET /openapi.yaml",
			"GET /readyz",
		},
	}
	for name, data := range documents() {
		var got []string
		for path, item := range load(t, data).Paths.Map() {
			for method := range item.Operations() {
				got = append(got, method+" "+path)
			}
		}
		slices.Sort(got)
		assert.Equal(t, want[name], got, name)
	}
}

// Objects are closed, so that an answer with an undeclared member is noticed; a
// closed schema is one that is not merely a part of another one.
func TestObjectsAreClosed(t *testing.T) {
	t.Parallel()
	for name, data := range documents() {
		for key, ref := range load(t, data).Components.Schemas {
			if !ref.Value.Type.Is("object") {
				continue
			}
			closed := ref.Value.AdditionalProperties
			assert.True(t, closed.Schema != nil || closed.Has != nil && !*closed.Has,
				"%s: schema %s takes undeclared members", name, key)
		}
	}
}

func TestEveryAnswerHasARequestID(t *testing.T) {
	t.Parallel()
	for name, data := range documents() {
		for path, item := range load(t, data).Paths.Map() {
			for method, op := range item.Operations() {
				for status, response := range op.Responses.Map() {
					where := strings.Join([]string{name, method, path, status}, " ")
					headers := slices.Collect(maps.Keys(response.Value.Headers))
					assert.Contains(t, headers, "X-Request-Id", where)
					if !slices.Contains([]string{"/healthz", "/readyz", "/openapi.yaml"}, path) {
						assert.Contains(t, headers, "Cache-Control", where)
					}
					if status == "401" {
						assert.Contains(t, headers, "WWW-Authenticate", where)
					}
				}
			}
		}
	}
}
