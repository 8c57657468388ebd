package kit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

const record = `{"audit_id":"aud_000001","occurred_at":"2026-06-08T09:00:01Z","action":"task.created",` +
	`"actor":{"agent_role":null,"agent_instance_id":null},"task_id":null,"model":null,"tool":null,"approval":null,"result":"info",` +
	`"lineage":{"manager_deployment_id":null,"deployment_id":null,"swarm_id":"a/b","correlation_id":null},"redacted":true}`

// Streams and texts are held against the documents as JSON is.
func TestContractCheckOfStreams(t *testing.T) {
	t.Parallel()
	contract, err := kit.AuditviewContract()
	require.NoError(t, err)
	const stream, text = "application/x-ndjson", "text/plain; charset=utf-8"
	for name, c := range map[string]struct {
		what, contentType, body string
		wrong                   string
	}{
		"no line":         {"audit", stream, "", ""},
		"lines":           {"audit", stream, record + "\n" + record + "\n", ""},
		"a line cut off":  {"audit", stream, record + "\n" + record[:40], "no end"},
		"no JSON":         {"audit", stream, record + "\n\n", "JSON"},
		"another member":  {"audit", stream, `{"x":1,` + record[1:] + "\n", "x"},
		"a member less":   {"audit", stream, strings.Replace(record, `"model":null,`, "", 1) + "\n", "model"},
		"text":            {"replay", text, "aud_000001 …\n", ""},
		"text, none":      {"logs", text, "", ""},
		"text undeclared": {"events", text, "", "text/plain"},
		"undeclared":      {"replay", stream, record + "\n", "not declared"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/admin/api/runs/a%2Fb/"+c.what+"?client_app_id=app", http.NoBody)
			answer := kit.Response{Status: http.StatusOK, Header: http.Header{
				"Content-Type": {c.contentType}, "Cache-Control": {"no-store"}, "X-Request-Id": {"r-1"}, "Vary": {"Accept"}, "Etag": {`"records.a.1.0.0"`},
			}, Body: []byte(c.body)}
			err := contract.Check(t.Context(), request, nil, answer)
			if c.wrong == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.wrong)
			}
		})
	}
}
