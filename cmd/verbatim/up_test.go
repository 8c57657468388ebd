package main

import (
	"encoding/base64"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUpServesAppliesAndKeepsItsData(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	first := up(t, dir, "--registry", file(t, "registry.json", registry), "--admins", file(t, "admins.yaml", admins))
	r := first.awaitReady(t)
	id := create(t, r)
	awaitListed(t, r, id)
	for _, name := range []string{"connections.json", "passwords.json"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), name)
	}

	assert.Contains(t, up(t, dir).refusal(t), "the data directory "+dir+" is in use by another `verbatim up`")
	assert.Equal(t, http.StatusOK, get(t, r.Ingest+"/healthz"), "the first one is not disturbed")

	first.stop(t)
	rest, err := io.ReadAll(first.out)
	require.NoError(t, err)
	assert.Empty(t, rest, "one line is all of the standard output")
	assert.NotContains(t, first.stderr.String(), agent)
	assert.NotContains(t, first.stderr.String(), auditor)
	_, err = os.Stat(filepath.Join(dir, "connections.json"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Empty(t, livingIn(t, dir))

	again := up(t, dir)
	r = again.awaitReady(t)
	awaitListed(t, r, id)
	assert.Equal(t, id, create(t, r), "the same creation finds the same archive")
	again.stop(t)
}

func TestLogsAreJSONAndTokensAreNot(t *testing.T) {
	t.Parallel()
	withoutTokens := file(t, "registry.json", strings.Replace(registry, `"access_token":"`+agent+`",`, "", 1))
	p := up(t, dataDir(t), "--registry", withoutTokens, "--admins", file(t, "admins.yaml", "admins:\n- name: auditor\n  permissions: [runs:read]\n"))
	r := p.awaitReady(t)
	tokens := map[string]string{}
	for line := range strings.Lines(p.stderr.String()) {
		line = strings.TrimSuffix(line, "\n")
		if before, token, shown := strings.Cut(line, ", shown only now: "); shown {
			tokens[before] = token
		} else if strings.HasPrefix(line, "{") {
			var entry map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &entry), "a log line is JSON")
		}
	}
	require.Len(t, tokens, 2)
	session, admin := tokens["token of session 123e4567-e89b-42d3-a456-426614174001"], tokens["token of administrator auditor"]
	for token, prefix := range map[string]string{session: "bha_", admin: "bva_"} {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, prefix))
		require.NoError(t, err)
		require.Len(t, raw, 32)
		assert.Equal(t, 1, strings.Count(p.stderr.String(), token), "each is shown once")
	}
	status, _ := call(t, http.MethodGet, r.Auditview+"/admin/api/conversation-audits", admin, "")
	assert.Equal(t, http.StatusOK, status)
	status, _ = call(t, http.MethodGet, r.Ingest+"/agent-api/v1/conversation-audits/capabilities", session, "")
	assert.Equal(t, http.StatusOK, status)
	p.stop(t)
}

func TestUpServesTheRegistryToItsControllers(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := up(t, dir, "--registry", file(t, "r.yaml", "controllers:\n- name: ops\n  permissions: [registry:write]\n"))
	r := p.awaitReady(t)
	_, token, shown := strings.Cut(p.stderr.String(), "token of controller ops, shown only now: ")
	require.True(t, shown, p.stderr)
	token, _, _ = strings.Cut(token, "\n")
	status, answer := call(t, http.MethodPut, r.Control+"/control-api/v1/clients/shop", token, `{"name":"Shop"}`)
	assert.Equal(t, http.StatusCreated, status, answer)
	status, _ = call(t, http.MethodGet, r.Ingest+"/control-api/v1/clients/shop", token, "")
	assert.Equal(t, http.StatusNotFound, status, "agents' listener has no registry")
	assert.Equal(t, 1, strings.Count(p.stderr.String(), token), "it is shown once")
	p.stop(t)

	p = up(t, dir, "--control", "")
	assert.Empty(t, p.awaitReady(t).Control, "it can be turned off")
	p.stop(t)
}

func TestKilledUpLeavesNoServerAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := up(t, dir, "--registry", file(t, "r.json", registry), "--admins", file(t, "a.json", admins))
	r := p.awaitReady(t)
	id := create(t, r)
	require.NotEmpty(t, livingIn(t, dir))
	require.NoError(t, p.cmd.Process.Kill())
	p.awaitExit(t)
	require.Eventually(t, func() bool { return len(livingIn(t, dir)) == 0 }, patience, 10*time.Millisecond, "PostgreSQL outlives its process")
	assert.Contains(t, start(t, "relay", "status", "--data-dir", dir).refusal(t), "no `verbatim up` is running", "the file it left is of no use")

	for range 2 { // killed again, and started before its server can be gone
		p = up(t, dir)
		r = p.awaitReady(t)
		awaitListed(t, r, id)
		require.NoError(t, p.cmd.Process.Kill())
		p.awaitExit(t)
	}
	p = up(t, dir)
	awaitListed(t, p.awaitReady(t), id)
	p.stop(t)
}

func TestUpEndsWhenItsServerDoes(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := up(t, dir)
	p.awaitReady(t)
	begun := time.Now()
	require.NoError(t, syscall.Kill(postmaster(t, dir), syscall.SIGKILL))
	assert.Equal(t, "PostgreSQL ended unexpectedly (signal: killed)", p.lastWords(t, 1))
	assert.Less(t, time.Since(begun), patience/2)
	require.Eventually(t, func() bool { return len(livingIn(t, dir)) == 0 }, patience, 10*time.Millisecond)
	next := up(t, dir)
	next.awaitReady(t)
	next.stop(t)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := up(t, dir)
	r := p.awaitReady(t)
	// A request whose body does not come keeps the drain waiting.
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.Ingest, "http://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST /agent-api/v1/conversation-audits HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\nAuthorization: Bearer "+agent+"\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	require.Eventually(t, func() bool { return !listening(r.Ingest) }, patience, 5*time.Millisecond, "the drain has begun")
	begun := time.Now()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 1, p.awaitExit(t))
	assert.Less(t, time.Since(begun), 5*time.Second)
	require.Eventually(t, func() bool { return len(livingIn(t, dir)) == 0 }, patience, 10*time.Millisecond)
}

func TestSignalDuringTheStartLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := up(t, dir)
	require.Eventually(t, func() bool { return len(livingIn(t, dir)) > 0 }, patience, time.Millisecond, "initdb runs")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, "it was stopped before it was ready", p.lastWords(t, 1))
	assert.Empty(t, livingIn(t, dir))
	next := up(t, dir)
	next.awaitReady(t)
	next.stop(t)
}

func TestUpRefusesInOneSentence(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	foreign := filepath.Dir(dataDir(t))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o600))
	for name, c := range map[string]struct {
		args  []string
		want  string
		begun bool // the data directory was made before the refusal
	}{
		"a taken port":           {[]string{"--ingest", taken.Addr().String()}, "ingest cannot listen on " + taken.Addr().String() + ": the address is already in use", false},
		"another taken port":     {[]string{"--auditview", taken.Addr().String()}, "auditview cannot listen on " + taken.Addr().String() + ": the address is already in use", false},
		"a taken control port":   {[]string{"--control", taken.Addr().String()}, "ingest's control API cannot listen on " + taken.Addr().String() + ": the address is already in use", false},
		"no address":             {[]string{"--ingest", "nowhere"}, "ingest cannot listen on nowhere", false},
		"a bad registry":         {[]string{"--registry", file(t, "bad.yaml", "clients: [{app_id: X}]")}, "app_id", true},
		"no registry":            {[]string{"--registry", "/nonexistent/registry.yaml"}, "no such file", false},
		"bad administrators":     {[]string{"--admins", file(t, "bad.yaml", "admins: [{nam: x}]")}, "unknown", true},
		"no such server":         {[]string{"--postgres", "postgres://postgres:hush@127.0.0.1:1/postgres?connect_timeout=2"}, "127.0.0.1", true},
		"no connection string":   {[]string{"--postgres", "hush"}, "--postgres is no connection string", false},
		"no variable for it":     {[]string{"--postgres", "-"}, "VERBATIM_ADMIN_DSN", false},
		"an unknown level":       {[]string{"--log-level", "loud"}, "--log-level takes", false},
		"an unknown flag":        {[]string{"--nonsense"}, "--nonsense", false},
		"a directory of another": {[]string{"--data-dir", foreign}, "holds other files", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t)
			refused := up(t, dir, c.args...)
			assert.Contains(t, refused.refusal(t), c.want)
			assert.NotContains(t, refused.stderr.String(), "hush", "no password is shown")
			assert.NotContains(t, refused.stderr.String(), "Usage:")
			assert.Empty(t, livingIn(t, dir))
			if c.begun { // what it left behind does not block the next start
				next := up(t, dir)
				next.awaitReady(t)
				next.stop(t)
			}
		})
	}
}

func TestUnreachableDataDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(filepath.Dir(dataDir(t)), "closed")
	require.NoError(t, os.Mkdir(closed, 0o700))
	p := up(t, filepath.Join(closed, "data"))
	if os.Geteuid() == 0 {
		assert.Contains(t, p.refusal(t), "cannot be reached by the account that PostgreSQL runs as, because "+closed+" is closed to it")
		return
	}
	p.awaitReady(t) // the server is our own account's, whom nothing of ours is closed to
	p.stop(t)
}
