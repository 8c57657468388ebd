package integration_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/sql"
	auditviewsql "verbatim.internal/sql/auditview"
	"verbatim.internal/test/integration/internal/kit"
)

const relayToken = "relay-token-that-no-output-may-hold"

func TestIngestsBinary(t *testing.T) {
	t.Parallel()
	program := kit.Program(t, "ingest")
	db := pgtest.New(t, database.Ingest, sql.FS, kit.NoMigration)

	code, out := kit.Output(t, program, nil, "--validate")
	assert.Equal(t, 1, code)
	for _, name := range []string{"VERBATIM_INGEST_DSN", "VERBATIM_INGEST_RELAY_URL"} {
		assert.Contains(t, out, name, "what is missing is named, all at once")
	}
	code, out = kit.Output(t, program, nil, "migrate", "up")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "VERBATIM_INGEST_OWNER_DSN")

	env := map[string]string{
		"VERBATIM_INGEST_DSN":         db.ServiceDSN,
		"VERBATIM_INGEST_OWNER_DSN":   db.OwnerDSN,
		"VERBATIM_INGEST_RELAY_URL":   "http://127.0.0.1:1",
		"VERBATIM_INGEST_RELAY_TOKEN": relayToken,
		"VERBATIM_INGEST_ADDR":        kit.FreeAddr(t),
		// Set to nothing: no metrics.
		"VERBATIM_INGEST_METRICS_ADDR": "",
	}
	steps := []struct {
		args []string
		code int
		out  string
	}{
		{[]string{"--validate"}, 1, "057_agent_conversation_audit.sql"},
		{[]string{"migrate", "status"}, 0, "at version 0\n"},
		{[]string{"migrate", "up", "--to", "57"}, 0, "applied 057_agent_conversation_audit.sql"},
		{[]string{"migrate", "status"}, 0, "pending 058_agent_conversation_member_bindings.sql"},
		{[]string{"--validate"}, 1, "058_agent_conversation_member_bindings.sql"},
		{[]string{"migrate", "up"}, 0, "applied 058_agent_conversation_member_bindings.sql"},
		{[]string{"migrate", "up"}, 0, "nothing to apply"},
		{[]string{"--validate"}, 0, "migrations: ok"},
		{[]string{"health"}, 1, "does not answer"},
		{[]string{}, 1, "name a command"},
		{[]string{"no-such-command"}, 1, "no-such-command"},
	}
	for _, s := range steps {
		code, out := kit.Output(t, program, env, s.args...)
		assert.Equal(t, s.code, code, "%v: %s", s.args, out)
		assert.Contains(t, out, s.out, "%v", s.args)
		assertNoSecrets(t, out)
	}

	serving := kit.Serve(t, program, env)
	code, out = kit.Output(t, program, env, "health")
	assert.Zero(t, code, out)
	code, out = kit.Output(t, program, env, "serve")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "already in use")
	assert.Equal(t, 1, strings.Count(strings.TrimSpace(out), "\n")+1, "one sentence: %s", out)
	assert.Zero(t, serving.Signal(t, syscall.SIGTERM), serving.Logs)
	assertNoSecrets(t, serving.Logs.String())
}

func assertNoSecrets(t *testing.T, text string) {
	t.Helper()
	assert.NotContains(t, text, relayToken)
	for _, password := range pgtest.Passwords() {
		assert.NotContains(t, text, password)
	}
}

// Both services as processes of their own, joined by HTTP: what is acknowledged is
// served, and both end well on SIGTERM.
func TestBinariesTogether(t *testing.T) {
	t.Parallel()
	ingestDB := pgtest.New(t, database.Ingest, sql.FS, 0)
	auditviewDB := pgtest.New(t, database.Auditview, auditviewsql.FS, 0)
	internal := kit.FreeAddr(t)
	reading := kit.Serve(t, kit.Program(t, "auditview"), map[string]string{
		"VERBATIM_AUDITVIEW_DSN":            auditviewDB.ServiceDSN,
		"VERBATIM_AUDITVIEW_ADDR":           "127.0.0.1:0",
		"VERBATIM_AUDITVIEW_METRICS_ADDR":   "",
		"VERBATIM_AUDITVIEW_INTERNAL_ADDR":  internal,
		"VERBATIM_AUDITVIEW_INTERNAL_TOKEN": relayToken,
	})
	writing := kit.Serve(t, kit.Program(t, "ingest"), map[string]string{
		"VERBATIM_INGEST_DSN":          ingestDB.ServiceDSN,
		"VERBATIM_INGEST_ADDR":         "127.0.0.1:0",
		"VERBATIM_INGEST_METRICS_ADDR": "",
		"VERBATIM_INGEST_RELAY_URL":    "http://" + internal,
		"VERBATIM_INGEST_RELAY_TOKEN":  relayToken,
	})
	d := kit.Join(t, writing.URL(), reading.URL(), ingestDB, auditviewDB, kit.NewRegistry(1).Encode())
	id := d.NewArchive(t, kit.SessionID(1))
	turn := kit.Turn("turn-1", 1, 50)
	d.MustAppend(t, kit.SessionID(1), id, turn...)
	assert.Equal(t, turn, kit.Submitted(d.WaitFor(t, id, 50).Events))

	for name, process := range map[string]*kit.Process{"ingest": writing, "auditview": reading} {
		assert.Zero(t, process.Signal(t, syscall.SIGTERM), "%s: %s", name, process.Logs)
		assertNoSecrets(t, process.Logs.String())
		assert.NotContains(t, process.Logs.String(), kit.Canary)
	}
	_, err := d.Ingest.Do(t.Context(), kit.Request{Method: http.MethodGet, Path: "/healthz"})
	require.Error(t, err, "ingest still answers")
}
