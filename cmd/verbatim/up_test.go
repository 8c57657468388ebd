package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/cmd/verbatim/internal/command"
)

// asCommand makes the test's own binary the command, so that it runs as a process.
const asCommand = "VERBATIM_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(command.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

const patience = 60 * time.Second

const (
	registry = `{"clients":[{"app_id":"shop","name":"Shop","allowed_routes":["orders"],"token":"bhk_KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK"}],
		"routes":[{"route_key":"orders","name":"Orders","agent_access":true}],
		"sessions":[{"session_id":"123e4567-e89b-42d3-a456-426614174001","client_app_id":"shop","device_label":"one","principal":{"id":"op"},
			"on_behalf_of":"op","allowed_routes":["orders"],"access_token":"` + agent + `",
			"access_expires_at":"2099-01-01T00:00:00Z","refresh_expires_at":"2099-01-01T00:00:00Z"}]}`
	admins  = `{"admins":[{"name":"auditor","token":"` + auditor + `","permissions":["runs:read"]}]}`
	agent   = "bha_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	auditor = "bva_VVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVV"
)

// process is one running command.
type process struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr *buffer
	exited chan struct{}
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(context.Background(), os.Args[0], args...), stderr: &buffer{}, exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asCommand+"=1")
	p.cmd.Stderr = p.stderr
	out, in, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stdout, p.out = in, bufio.NewReader(out)
	require.NoError(t, p.cmd.Start())
	require.NoError(t, in.Close())
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		_ = out.Close()
	})
	return p
}

// ready is the line that `up` prints first.
type ready struct {
	Ready     bool   `json:"ready"`
	Ingest    string `json:"ingest"`
	Auditview string `json:"auditview"`
}

func (p *process) awaitReady(t *testing.T) ready {
	t.Helper()
	line, err := p.out.ReadBytes('\n')
	require.NoError(t, err, "stderr: %s", p.stderr)
	var r ready
	require.NoError(t, json.Unmarshal(line, &r, json.RejectUnknownMembers(true)))
	require.True(t, r.Ready)
	return r
}

func (p *process) awaitExit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("the command does not end; stderr: %s", p.stderr)
		return -1
	}
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, p.awaitExit(t), "stderr: %s", p.stderr)
}

// dataDir returns a new directory that the database's account can reach.
func dataDir(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "verbatim-test-") //nolint:usetesting // a test's own directory is closed to the database's account
	require.NoError(t, err)
	require.NoError(t, os.Chmod(base, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	return filepath.Join(base, "data")
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func up(t *testing.T, dir string, more ...string) *process {
	t.Helper()
	return start(t, append([]string{"up", "--data-dir", dir, "--ingest", "127.0.0.1:0", "--auditview", "127.0.0.1:0"}, more...)...)
}

func call(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(answer)
}

// create makes an archive of one member and returns its id.
func create(t *testing.T, r ready) string {
	t.Helper()
	status, answer := call(t, http.MethodPost, r.Ingest+"/agent-api/v1/conversation-audits", agent,
		`{"client_archive_id":"323e4567-e89b-42d3-a456-426614174001","client_conversation_id":"c","route":"orders","member_session_ids":["123e4567-e89b-42d3-a456-426614174001"]}`)
	require.Equal(t, http.StatusOK, status, answer)
	var header struct {
		ID string `json:"conversation_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &header))
	return header.ID
}

func awaitListed(t *testing.T, r ready, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		status, answer := call(t, http.MethodGet, r.Auditview+"/admin/api/conversation-audits", auditor, "")
		return status == http.StatusOK && strings.Contains(answer, id)
	}, patience, 20*time.Millisecond)
}

func TestUpServesAppliesAndKeepsItsData(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	flags := []string{"--registry", file(t, "registry.json", registry), "--admins", file(t, "admins.yaml", admins)}
	first := up(t, dir, flags...)
	r := first.awaitReady(t)
	id := create(t, r)
	awaitListed(t, r, id)

	// A second one on the same directory is refused in one sentence.
	second := up(t, dir)
	assert.Equal(t, 1, second.awaitExit(t))
	assert.Contains(t, second.stderr.String(), "in use")
	assert.NotContains(t, strings.TrimSpace(second.stderr.String()), "\n")

	// The commands beside it find its databases.
	apply := start(t, "apply", "-f", flags[1], "--data-dir", dir)
	assert.Equal(t, 0, apply.awaitExit(t), apply.stderr)
	printed, err := io.ReadAll(apply.out)
	require.NoError(t, err)
	assert.Equal(t, "3 unchanged\n", string(printed))
	status := start(t, "relay", "status", "--json", "--data-dir", dir)
	assert.Equal(t, 0, status.awaitExit(t), status.stderr)
	rebuild := start(t, "relay", "rebuild", "--stream", id, "--data-dir", dir)
	assert.Equal(t, 0, rebuild.awaitExit(t), rebuild.stderr)
	replay := start(t, "relay", "replay", "--data-dir", dir)
	assert.Equal(t, 0, replay.awaitExit(t), replay.stderr)

	first.stop(t)
	assert.NotContains(t, first.stderr.String(), agent)
	again := up(t, dir)
	r = again.awaitReady(t)
	awaitListed(t, r, id)
	assert.Equal(t, id, create(t, r), "the same creation finds the same archive")
	again.stop(t)
}

func TestUpSurvivesBeingKilled(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	first := up(t, dir, "--registry", file(t, "r.json", registry), "--admins", file(t, "a.json", admins))
	r := first.awaitReady(t)
	id := create(t, r)
	require.NoError(t, first.cmd.Process.Kill())
	first.awaitExit(t)
	// PostgreSQL goes with it: the next start gets the directory at once, or waits for it.
	again := up(t, dir)
	r = again.awaitReady(t)
	awaitListed(t, r, id)
	again.stop(t)
}

func TestUpRefusesInOneSentence(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a taken port":       {[]string{"--ingest", taken.Addr().String()}, "already in use"},
		"a bad registry":     {[]string{"--registry", file(t, "bad.yaml", "clients: [{app_id: X}]")}, "app_id"},
		"no registry":        {[]string{"--registry", "/nonexistent/registry.yaml"}, "no such file"},
		"bad administrators": {[]string{"--admins", file(t, "bad.yaml", "admins: [{nam: x}]")}, "unknown"},
		"no such server":     {[]string{"--postgres", "postgres://postgres:x@127.0.0.1:1/postgres?connect_timeout=2"}, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t)
			refused := up(t, dir, append(c.args, "--log-level", "error")...)
			assert.Equal(t, 1, refused.awaitExit(t))
			lines := strings.Split(strings.TrimSpace(refused.stderr.String()), "\n")
			assert.Contains(t, lines[len(lines)-1], c.want)
			assert.NotContains(t, refused.stderr.String(), ":x@", "no password is shown")
			out, err := io.ReadAll(refused.out)
			require.NoError(t, err)
			assert.Empty(t, out, "nothing but readiness is said on stdout")
			if c.args[0] != "--postgres" { // what it left behind does not block the next start
				next := up(t, dir)
				next.awaitReady(t)
				next.stop(t)
			}
		})
	}
}

func TestTheDemoProvesAndStaysUp(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	for range 2 { // also on a used data directory
		p := up(t, dir, "--demo")
		p.awaitReady(t)
		var text strings.Builder
		for !strings.Contains(text.String(), "Ctrl-C stops.") {
			line, err := p.out.ReadString('\n')
			require.NoError(t, err, "stderr: %s", p.stderr)
			text.WriteString(line)
		}
		assert.Contains(t, text.String(), "the same bytes")
		assert.NotContains(t, text.String(), "\x1b[", "no colours where it is no terminal")
		p.stop(t)
	}
}

func TestCommandsWithoutADatabaseSayWhatToDo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"apply", "-f", file(t, "r.json", registry), "--data-dir", dataDir(t)},
		{"relay", "status", "--data-dir", dataDir(t)},
	} {
		p := start(t, args...)
		assert.Equal(t, 1, p.awaitExit(t))
		assert.Contains(t, p.stderr.String(), "no `verbatim up` is running")
	}
	unknown := start(t, "nonsense")
	assert.Equal(t, 1, unknown.awaitExit(t))
	assert.True(t, strings.HasPrefix(unknown.stderr.String(), "verbatim: "), unknown.stderr)
}
