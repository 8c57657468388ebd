package main

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	backend         = "bhk_KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK"
	runtimePath     = "/runtime-api/v1/runs/"
	asAdministrator = "VERBATIM_ADMIN_TOKEN=" + auditor
)

// tell sends what an orchestrator tells of an execution.
func tell(t *testing.T, r ready, method, path, body string) {
	t.Helper()
	status, answer := call(t, method, r.Ingest+runtimePath+path, backend, body)
	require.Less(t, status, 300, answer)
}

// happen records an event of an execution, in the n-th second.
func happen(t *testing.T, r ready, swarm string, n int, eventType, more string) {
	t.Helper()
	tell(t, r, http.MethodPost, swarm+"/events",
		fmt.Sprintf(`{"events":[{"event_id":"e-%d","event_type":%q,"occurred_at":"2026-06-08T11:00:%02d+02:00"%s}]}`, n, eventType, n, more))
}

// awaitReplay runs a replay until it has n lines.
func awaitReplay(t *testing.T, n int, environ []string, args ...string) string {
	t.Helper()
	for begin := time.Now(); ; {
		p := startWith(t, environ, args...)
		if code := p.awaitExit(t); code == 0 {
			if text := p.rest(t); strings.Count(text, "\n") == n {
				return text
			}
		}
		require.Less(t, time.Since(begin), patience, "stderr: %s", p.stderr)
	}
}

func TestExecutionIsReplayedAndExported(t *testing.T) {
	t.Parallel()
	p := up(t, dataDir(t), "--registry", file(t, "r.json", registry), "--admins", file(t, "a.json", admins))
	r := p.awaitReady(t)
	const swarm = "swarm/7" // a slash is a part of the name
	const escaped = "swarm%2F7"
	tell(t, r, http.MethodPut, escaped, `{"deployment_id":"release-1"}`)
	tell(t, r, http.MethodPut, escaped+"/tasks/t-1", `{"agent_role":"impl","usage":{"model_id":"model-1"},"tool_count":2}`)
	happen(t, r, escaped, 1, "task.created", `,"task_id":"t-1"`)
	happen(t, r, escaped, 2, "task.completed", `,"task_id":"t-1","agent_instance_id":"agent-7"`)
	command := func(name string, more ...string) []string {
		return append([]string{name, swarm, "--auditview", r.Auditview}, more...)
	}
	environ := []string{asAdministrator}
	const lines = "aud_000001 2026-06-08T09:00:01Z impl/- task.created task=t-1 model=model-1 tools=2 -> info\n" +
		"aud_000002 2026-06-08T09:00:02Z impl/agent-7 task.completed task=t-1 model=model-1 tools=2 -> success\n"
	assert.Equal(t, lines, awaitReplay(t, 2, environ, command("replay")...))
	assert.Equal(t, lines, startWith(t, environ, command("replay", "--client", "shop")...).output(t))

	t.Run("export", func(t *testing.T) {
		t.Parallel()
		records := strings.Split(strings.TrimSpace(startWith(t, environ, command("audit", "--format", "ndjson")...).output(t)), "\n")
		require.Len(t, records, 2)
		assert.Regexp(t, `^\{"audit_id":"aud_000001",.*"redacted":true\}$`, records[0])
		var whole struct {
			Schema  string            `json:"schema"`
			Lineage map[string]string `json:"lineage"`
			Records []any             `json:"records"`
		}
		require.NoError(t, json.Unmarshal([]byte(startWith(t, environ, command("audit")...).output(t)), &whole))
		assert.Equal(t, "verbatim.audit-trace.v1", whole.Schema)
		assert.Equal(t, swarm, whole.Lineage["swarm_id"])
		assert.Len(t, whole.Records, 2)
		table, err := csv.NewReader(strings.NewReader(startWith(t, environ, command("audit", "--format", "csv")...).output(t))).ReadAll()
		require.NoError(t, err)
		assert.Equal(t, []string{"aud_000002", "2026-06-08T09:00:02Z", "task.completed", "impl", "agent-7", "t-1", "model-1", "2", "", "", "success", "", "release-1", swarm, ""}, table[2])
		assert.Contains(t, startWith(t, environ, command("audit", "--format", "xml")...).refusal(t), "--format takes")
	})
	t.Run("what goes wrong is one sentence", func(t *testing.T) {
		t.Parallel()
		assert.Contains(t, start(t, command("replay")...).refusal(t), "VERBATIM_ADMIN_TOKEN")
		assert.Contains(t, startWith(t, []string{"VERBATIM_ADMIN_TOKEN=bva_" + strings.Repeat("x", 43)}, command("replay")...).refusal(t), "401")
		assert.Contains(t, startWith(t, environ, "replay", "nobody", "--auditview", r.Auditview).refusal(t), "404 run_not_found")
		assert.Contains(t, startWith(t, environ, "replay", "x", "--auditview", "http://audit.example.com").refusal(t), "https")
		assert.Contains(t, startWith(t, environ, "replay", "x", "--auditview", "audit").refusal(t), "URL")
		tell(t, r, http.MethodPut, "swarm-8", `{"deployment_id":"release-1"}`)
		happen(t, r, "swarm-8", 1, "task.created", "")
		awaitReplay(t, 1, environ, "replay", "swarm-8", "--auditview", r.Auditview)
		assert.Contains(t, startWith(t, environ, "replay", "release-1", "--auditview", r.Auditview).refusal(t), "swarm-8 of shop")
	})
	t.Run("follow", func(t *testing.T) {
		t.Parallel()
		tell(t, r, http.MethodPut, "swarm-9", `{}`)
		happen(t, r, "swarm-9", 1, "task.running", "")
		awaitReplay(t, 1, environ, "replay", "swarm-9", "--auditview", r.Auditview)
		f := startWith(t, environ, "replay", "swarm-9", "--follow", "--auditview", r.Auditview)
		for n, eventType := range []string{"task.running", "task.blocked", "task.failed"} {
			if n > 0 {
				happen(t, r, "swarm-9", n+1, eventType, "")
			}
			line, err := f.out.ReadString('\n')
			require.NoError(t, err, "stderr: %s", f.stderr)
			assert.Contains(t, line, eventType)
		}
		require.NoError(t, f.cmd.Process.Signal(os.Interrupt))
		assert.Equal(t, 0, f.awaitExit(t))
		assert.Empty(t, f.rest(t))
	})
}
