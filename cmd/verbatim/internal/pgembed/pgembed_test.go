package pgembed_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/cmd/verbatim/internal/pgembed"
)

const (
	patience = 30 * time.Second
	tick     = 10 * time.Millisecond

	childVariable = "PGEMBED_TEST_DIR"
	testPassword  = "a-password-of-the-tests"
)

// TestMain makes the test program also the process that a test kills: it starts
// a server and says so.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		serveUntilKilled(dir)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(dir string) {
	ctx := context.Background()
	c, err := configFor(ctx, dir, io.Discard)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	server, err := pgembed.Start(ctx, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_, _ = fmt.Fprintln(os.Stdout, server.PID(), server.DSN("postgres"))
	<-server.Done()
}

func configFor(ctx context.Context, dir string, log io.Writer) (pgembed.Config, error) {
	account, err := pgembed.ServerAccount()
	if err != nil {
		return pgembed.Config{}, err
	}
	installation, err := pgembed.Choose(ctx, dir)
	if err != nil {
		return pgembed.Config{}, err
	}
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return pgembed.Config{Dir: dir, Password: testPassword, Account: account, Installation: installation, Log: logger}, nil
}

// logBuffer is a log that may be read while the server writes to it.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// serverDir returns a directory for a server that its account can reach.
func serverDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		require.NoError(t, os.Chmod(d, 0o711))
	}
	return filepath.Join(dir, "postgres")
}

func startServer(t *testing.T, dir string, log io.Writer) *pgembed.Server {
	t.Helper()
	c, err := configFor(t.Context(), dir, log)
	require.NoError(t, err, "these tests run a real server")
	server, err := pgembed.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

func query(t *testing.T, dsn, statement string) (string, error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	rows, err := conn.Query(t.Context(), statement)
	if err != nil {
		return "", err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(all, ","), err
}

func exec1(t *testing.T, dsn, statement string) {
	t.Helper()
	_, err := query(t, dsn, statement)
	require.NoError(t, err)
}

func TestRestartKeepsEveryRow(t *testing.T) {
	t.Parallel()
	dir := serverDir(t)
	first := startServer(t, dir, io.Discard)
	exec1(t, first.DSN("postgres"), `create table t (v text)`)
	exec1(t, first.DSN("postgres"), `insert into t values ('kept')`)
	require.NoError(t, first.Stop())
	require.NoError(t, first.Stop(), "a second Stop is harmless")
	require.NoError(t, first.Err())

	second := startServer(t, dir, io.Discard)
	got, err := query(t, second.DSN("postgres"), `select v from t`)
	require.NoError(t, err)
	assert.Equal(t, "kept", got)
	for setting, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "server_encoding": "UTF8",
		"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "TimeZone": "UTC",
	} {
		got, err := query(t, second.DSN("postgres"), `select current_setting('`+setting+`')`)
		require.NoError(t, err)
		assert.Equal(t, want, got, setting)
	}
	got, err = query(t, second.DSN("postgres"), `select current_setting('max_connections')`)
	require.NoError(t, err)
	n, err := strconv.Atoi(got)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, n, 100)
}

func TestServerEndsWithItsProcessAndRecovers(t *testing.T) {
	t.Parallel()
	dir := serverDir(t)
	for round := range 3 {
		child := exec.Command(os.Args[0]) //nolint:noctx // this test program; it is killed below
		child.Env = append(os.Environ(), childVariable+"="+dir)
		child.Stderr = os.Stderr
		stdout, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		line, err := bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		pidText, dsn, found := strings.Cut(strings.TrimSpace(line), " ")
		require.True(t, found)
		pid, err := strconv.Atoi(pidText)
		require.NoError(t, err)
		exec1(t, dsn, `create table if not exists t (v int)`)
		exec1(t, dsn, `insert into t values (`+strconv.Itoa(round)+`)`)

		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
		if round < 2 {
			require.Eventually(t, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }, patience, tick, "the server outlives its process")
			require.Eventually(t, func() bool { _, err := query(t, dsn, `select ''`); return err != nil }, patience, tick)
		}
	}
	// The last round's server may be ending still: the start waits for it.
	server := startServer(t, dir, io.Discard)
	got, err := query(t, server.DSN("postgres"), `select v::text from t order by v`)
	require.NoError(t, err)
	assert.Equal(t, "0,1,2", got)
}

func TestOrphanThatStaysIsEnded(t *testing.T) {
	t.Parallel()
	dir := serverDir(t)
	orphan := startServer(t, dir, io.Discard) // as where no kernel ends it with its process
	exec1(t, orphan.DSN("postgres"), `create table t (v text)`)
	server := startServer(t, dir, io.Discard)
	select {
	case <-orphan.Done():
	default:
		require.Fail(t, "two servers run on one directory")
	}
	_, err := query(t, server.DSN("postgres"), `select v from t`)
	require.NoError(t, err)
}

func TestUnexpectedEndIsNoticed(t *testing.T) {
	t.Parallel()
	server := startServer(t, serverDir(t), io.Discard)
	require.NoError(t, server.Err())
	require.NoError(t, syscall.Kill(server.PID(), syscall.SIGKILL))
	select {
	case <-server.Done():
	case <-time.After(patience):
		require.Fail(t, "the end was not noticed")
	}
	require.EqualError(t, server.Err(), "PostgreSQL ended unexpectedly (signal: killed)")
	require.Error(t, server.Stop())
}

func TestInterruptedInitialisationIsNoCluster(t *testing.T) {
	t.Parallel()
	dir := serverDir(t)
	c, err := configFor(t.Context(), dir, io.Discard)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := pgembed.Start(ctx, c)
		ended <- err
	}()
	begun := func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "new-*", "data", "*"))
		return len(found) > 0
	}
	require.Eventually(t, begun, patience, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	_, err = os.Stat(filepath.Join(dir, "data"))
	require.ErrorIs(t, err, os.ErrNotExist)

	left := filepath.Join(dir, "new-left-by-a-kill")
	require.NoError(t, os.MkdirAll(filepath.Join(left, "data"), 0o700))
	server := startServer(t, dir, io.Discard)
	got, err := query(t, server.DSN("postgres"), `select 'works'`)
	require.NoError(t, err)
	assert.Equal(t, "works", got)
	found, err := filepath.Glob(filepath.Join(dir, "new-*"))
	require.NoError(t, err)
	assert.Empty(t, found)
}

func TestProcessNumberOfAnotherProgramDoesNotBlock(t *testing.T) {
	t.Parallel()
	dir := serverDir(t)
	require.NoError(t, startServer(t, dir, io.Discard).Stop())
	c, err := configFor(t.Context(), dir, io.Discard)
	require.NoError(t, err)
	other := exec.Command("sleep", "600") //nolint:noctx // it is killed below
	if c.Account != nil {
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.Account.UID, Gid: c.Account.GID}}
	}
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	stale := fmt.Sprintf("%d\n%s\n1\n1\n\n127.0.0.1\n1 1\nready   \n", other.Process.Pid, filepath.Join(dir, "data"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), []byte(stale), 0o600))

	server := startServer(t, dir, io.Discard)
	_, err = query(t, server.DSN("postgres"), `select ''`)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(other.Process.Pid, 0), "the other program is left alone")
}

func TestLogHoldsNoStatementAndNoValue(t *testing.T) {
	t.Parallel()
	const text = "words-of-a-conversation"
	log := &logBuffer{}
	server := startServer(t, serverDir(t), log)
	dsn := server.DSN("postgres")
	exec1(t, dsn, `create table t (v text primary key)`)
	exec1(t, dsn, `insert into t values ('`+text+`')`)
	for _, statement := range []string{
		`insert into t values ('` + text + `')`,
		`insert into t values ('` + text + `'::int::text)`,
		`select '` + text + `' from nowhere`,
	} {
		_, err := query(t, dsn, statement)
		require.Error(t, err)
	}
	require.NoError(t, server.Stop())
	assert.Contains(t, log.String(), "database system is shut down")
	assert.NotContains(t, log.String(), text)
	assert.NotContains(t, log.String(), testPassword)
}

func TestServerSeesNothingOfTheEnvironment(t *testing.T) {
	t.Setenv("VERBATIM_INGEST_DSN", "postgres://somebody:secret@example.com/x")
	t.Setenv("PGPORT", "1")
	server := startServer(t, serverDir(t), io.Discard)
	// The server's own account may read it; root in a container may not.
	account, err := pgembed.ServerAccount()
	require.NoError(t, err)
	read := exec.CommandContext(t.Context(), "cat", "/proc/"+strconv.Itoa(server.PID())+"/environ")
	read.Dir = "/"
	if account != nil {
		read.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: account.UID, Gid: account.GID}}
	}
	environ, err := read.Output()
	require.NoError(t, err)
	assert.Contains(t, string(environ), "LC_ALL=C")
	assert.NotContains(t, string(environ), "VERBATIM")
	assert.NotContains(t, string(environ), "PGPORT")
}

func TestWrongPasswordIsRefused(t *testing.T) {
	t.Parallel()
	server := startServer(t, serverDir(t), io.Discard)
	_, err := query(t, strings.Replace(server.DSN("postgres"), testPassword, "guess", 1), `select ''`)
	require.Error(t, err)
	host, _, err := net.SplitHostPort(strings.Split(strings.Split(server.DSN("x"), "@")[1], "/")[0])
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", host)
}
