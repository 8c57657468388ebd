package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestApplyTellsWhatItChanged(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := up(t, dir)
	r := p.awaitReady(t)
	apply := func(content string) string {
		return start(t, "apply", "-f", file(t, "registry.json", content), "--data-dir", dir).output(t)
	}
	const session = "123e4567-e89b-42d3-a456-426614174001"
	assert.Equal(t, "client shop created\nroute orders created\nsession "+session+" created\n", apply(registry))
	assert.Equal(t, "3 unchanged\n", apply(registry))
	assert.Equal(t, "route orders updated (enabled)\n2 unchanged\n", apply(strings.Replace(registry, `"name":"Orders"`, `"name":"Orders","enabled":false`, 1)))
	assert.Equal(t, "route orders updated (enabled)\n2 unchanged\n", apply(registry))
	assert.Equal(t, "0 unchanged\n", apply(`{}`))

	token := apply(strings.Replace(registry, `"token":"bhk_KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK"`, `"enabled":true`, 1))
	assert.Equal(t, "3 unchanged\n", token, "a client that has a token keeps it")
	created := apply(`{"clients":[{"app_id":"depot","name":"Depot","allowed_routes":["*"]}]}`)
	assert.Regexp(t, `^client depot created\ntoken of client depot, shown only now: bhk_[A-Za-z0-9_-]{43}\n$`, created)

	admin := func(content string) string {
		return start(t, "admin", "apply", "-f", file(t, "admins.yaml", content), "--data-dir", dir).output(t)
	}
	assert.Equal(t, "administrator auditor created\n", admin(admins))
	assert.Equal(t, "1 unchanged\n", admin(admins))
	assert.Contains(t, admin(`{"admins":[{"name":"auditor","permissions":["runs:read","runs:dance"]}]}`), "warning: ")
	awaitListed(t, r, create(t, r))

	refused := start(t, "apply", "-f", file(t, "bad.json", `{"clients":[],"colour":1}`), "--data-dir", dir)
	assert.NotContains(t, refused.refusal(t), "\n")
	p.stop(t)
}

func TestRelayCommands(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := up(t, dir, "--registry", file(t, "r.json", registry), "--admins", file(t, "a.json", admins))
	r := p.awaitReady(t)
	id := create(t, r)
	awaitListed(t, r, id)
	relay := func(args ...string) *process {
		return start(t, append(append([]string{"relay"}, args...), "--data-dir", dir)...)
	}
	var state struct {
		Waiting []any `json:"waiting"`
		Streams int   `json:"streams"`
		Parked  []any `json:"parked"`
	}
	// The archive, and what the registry file changed: a client, a route and a session.
	require.Eventually(t, func() bool {
		require.NoError(t, json.Unmarshal([]byte(relay("status", "--json").output(t)), &state))
		return state.Streams == 4
	}, patience, 20*time.Millisecond)
	assert.Empty(t, state.Parked)
	assert.Contains(t, relay("status").output(t), "streams known to auditview: 4; ")
	assert.Contains(t, relay("rebuild", "--stream", id).output(t), "streams to be sent whole: 1 ")
	assert.Contains(t, relay("rebuild").output(t), "streams to be sent whole: 4 ")
	assert.NotEmpty(t, relay("rebuild", "--stream", "123e4567-e89b-42d3-a456-000000000000").refusal(t))
	assert.Equal(t, "0 replayed, 0 still parked\n", relay("replay").output(t))
	awaitListed(t, r, id)
	p.stop(t)
}

func TestCommandsWithoutADatabaseSayWhatToDo(t *testing.T) {
	t.Parallel()
	registryFile := file(t, "r.json", registry)
	for _, args := range [][]string{
		{"apply", "-f", registryFile, "--data-dir", dataDir(t)},
		{"relay", "status", "--data-dir", dataDir(t)},
		{"migrate", "status", "--data-dir", dataDir(t)},
	} {
		assert.Contains(t, start(t, args...).refusal(t), "no `verbatim up` is running on the data directory")
	}
	assert.Contains(t, start(t, "apply", "-f", registryFile).refusal(t), "set VERBATIM_INGEST_DSN, or start `verbatim up` here")
	assert.Contains(t, start(t, "migrate", "up").refusal(t), "set VERBATIM_INGEST_OWNER_DSN")
	assert.Contains(t, start(t, "bootstrap").refusal(t), "VERBATIM_ADMIN_DSN")
	assert.Contains(t, start(t, "apply").refusal(t), "file")
	assert.Contains(t, start(t, "apply", "-f", "/nonexistent").refusal(t), "no such file")
	for _, args := range [][]string{{"nonsense"}, {"relay", "nonsense"}, {"migrate", "nonsense"}, {"admin", "nonsense"}} {
		assert.Contains(t, start(t, args...).refusal(t), `unknown command "nonsense"`)
	}
	assert.Contains(t, start(t, "migrate", "up", "--to", "57").refusal(t), "--only")
	assert.Contains(t, startWith(t, []string{"VERBATIM_INGEST_DSN=hush"}, "apply", "-f", registryFile).refusal(t), "malformed")
	assert.Contains(t, start(t, "version").output(t), "verbatim ")
	assert.Contains(t, start(t, "--help").output(t), "Usage:")
}

// TestServerOfSomebodyElse goes the way of a deployment: bootstrap, migrate and
// apply with the environment's connection strings, then up beside no server of its own.
func TestServerOfSomebodyElse(t *testing.T) {
	t.Parallel()
	server := otherServer(t)
	environ := []string{"VERBATIM_ADMIN_DSN=" + server.DSN("postgres")}
	for service, prefix := range map[string]string{"ingest": "VERBATIM_INGEST_", "auditview": "VERBATIM_AUDITVIEW_"} {
		for suffix, variable := range map[string]string{"": "DSN", "_owner": "OWNER_DSN", "_reader": "READER_DSN"} {
			role := "verbatim_" + service + suffix
			dsn := strings.Replace(server.DSN("verbatim_"+service), "postgres:"+serverPassword, role+":secret-of-"+role, 1)
			environ = append(environ, prefix+variable+"="+dsn)
		}
	}
	run := func(args ...string) *process { return startWith(t, environ, args...) }
	assert.Contains(t, run("migrate", "status").refusal(t), "verbatim_ingest")
	for range 2 { // everything may be repeated
		assert.Equal(t, "ingest: roles and database verbatim_ingest are ready\nauditview: roles and database verbatim_auditview are ready\n", run("bootstrap").output(t))
	}
	assert.Contains(t, run("migrate", "status").output(t), "057_agent_conversation_audit.sql")
	assert.Contains(t, run("migrate", "up", "--only", "ingest", "--to", "57").output(t), "ingest 057_agent_conversation_audit.sql applied")
	assert.Contains(t, run("migrate", "up").output(t), "ingest 058_agent_conversation_member_bindings.sql applied")
	assert.Equal(t, "ingest is up to date\nauditview is up to date\n", run("migrate", "up").output(t))
	assert.NotContains(t, run("migrate", "status").output(t), ".sql")
	assert.Contains(t, run("apply", "-f", file(t, "r.json", registry)).output(t), "client shop created")
	assert.Contains(t, run("admin", "apply", "-f", file(t, "a.json", admins)).output(t), "administrator auditor created")
	wrong := append([]string{"VERBATIM_INGEST_DSN=" + server.DSN("postgres")}, environ[:1]...)
	assert.Contains(t, startWith(t, wrong, "bootstrap").refusal(t), "must connect as the role verbatim_ingest to the database verbatim_ingest")

	dir := dataDir(t)
	p := startWith(t, environ[:1], "up", "--data-dir", dir, "--ingest", "127.0.0.1:0", "--auditview", "127.0.0.1:0", "--control", "127.0.0.1:0", "--postgres", "-")
	r := p.awaitReady(t)
	awaitListed(t, r, create(t, r))
	assert.Empty(t, livingIn(t, dir))
	second := startWith(t, environ[:1], "up", "--data-dir", dataDir(t), "--ingest", "127.0.0.1:0", "--auditview", "127.0.0.1:0", "--control", "127.0.0.1:0", "--postgres", "-")
	assert.Equal(t, "another `verbatim up` uses the server that --postgres names", second.refusal(t))
	status, _ := call(t, http.MethodGet, r.Auditview+"/admin/api/conversation-audits", agent, "")
	assert.Equal(t, http.StatusUnauthorized, status)
	p.stop(t)
}
