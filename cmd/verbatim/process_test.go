package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"verbatim.internal/cmd/verbatim/internal/command"
	"verbatim.internal/cmd/verbatim/internal/pgembed"
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
	return startWith(t, nil, args...)
}

// startWith adds variables to the command's environment, and none of this machine's own are in it.
func startWith(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(context.Background(), os.Args[0], args...), stderr: &buffer{}, exited: make(chan struct{})}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "VERBATIM_") {
			p.cmd.Env = append(p.cmd.Env, variable)
		}
	}
	p.cmd.Env = append(append(p.cmd.Env, asCommand+"=1"), environ...)
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
	Control   string `json:"control"`
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

// output waits for a command that succeeds and returns what it printed.
func (p *process) output(t *testing.T) string {
	t.Helper()
	printed, err := io.ReadAll(p.out)
	require.NoError(t, err)
	require.Equal(t, 0, p.awaitExit(t), "stderr: %s", p.stderr)
	return string(printed)
}

// rest returns what a command printed that has ended.
func (p *process) rest(t *testing.T) string {
	t.Helper()
	printed, err := io.ReadAll(p.out)
	require.NoError(t, err)
	return string(printed)
}

// refusal waits for a command that fails and returns the one sentence that it says.
func (p *process) refusal(t *testing.T) string {
	t.Helper()
	printed, err := io.ReadAll(p.out)
	require.NoError(t, err)
	require.Equal(t, 1, p.awaitExit(t), "stderr: %s", p.stderr)
	require.Empty(t, printed, "a failure says nothing on standard output")
	said := strings.TrimSuffix(p.stderr.String(), "\n")
	last := said[strings.LastIndex(said, "\n")+1:]
	require.True(t, strings.HasPrefix(last, "verbatim: "), said)
	return strings.TrimPrefix(last, "verbatim: ")
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
	return start(t, append([]string{"up", "--data-dir", dir, "--ingest", "127.0.0.1:0", "--auditview", "127.0.0.1:0", "--control", "127.0.0.1:0"}, more...)...)
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

// lastWords waits for a command to end with a code and returns the sentence it ends with.
func (p *process) lastWords(t *testing.T, code int) string {
	t.Helper()
	require.Equal(t, code, p.awaitExit(t), "stderr: %s", p.stderr)
	said := strings.TrimSuffix(p.stderr.String(), "\n")
	return strings.TrimPrefix(said[strings.LastIndex(said, "\n")+1:], "verbatim: ")
}

// livingIn returns the command lines of the processes that name dir, as a
// database server and initdb do, or work in it, as the server's children do.
// (Root in a container may not see where another account's process works.)
func livingIn(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	var living []string
	for _, process := range all {
		line, err := os.ReadFile(filepath.Join(process, "cmdline"))
		if err != nil || bytes.Contains(line, []byte("--data-dir")) {
			continue // ended, or the command itself
		}
		cwd, _ := os.Readlink(filepath.Join(process, "cwd"))
		if bytes.Contains(line, []byte(dir)) || strings.HasPrefix(cwd, dir) {
			living = append(living, string(line))
		}
	}
	return living
}

// postmaster returns the process number of the server in a data directory.
func postmaster(t *testing.T, dir string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	return pid
}

func get(t *testing.T, url string) int {
	t.Helper()
	status, _ := call(t, http.MethodGet, url, "", "")
	return status
}

func listening(url string) bool {
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), time.Second) //nolint:noctx // it has a deadline
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

const serverPassword = "password-of-somebody-else"

// otherServer runs a database server that is not the command's own.
func otherServer(t *testing.T) *pgembed.Server {
	t.Helper()
	dir := dataDir(t)
	installation, err := pgembed.Choose(t.Context(), dir)
	require.NoError(t, err)
	account, err := pgembed.ServerAccount()
	require.NoError(t, err)
	server, err := pgembed.Start(t.Context(), pgembed.Config{
		Dir: dir, Password: serverPassword, Account: account, Installation: installation, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	return server
}
