package kit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	buildTimeout = 5 * time.Minute
	// commandTimeout bounds a command that is to end by itself.
	commandTimeout = time.Minute
	// serveLimit is how long a started process may take to listen, and to end.
	serveLimit = 30 * time.Second
)

// programs are where the sources of the standalone programs are, from the module's root.
var programs = map[string]string{
	"ingest":    "services/ingest/cmd/ingest",
	"auditview": "services/auditview/cmd/auditview",
	"verbatim":  "cmd/verbatim",
}

var built struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

// Main runs a package's tests and removes what Program has built. A package that
// uses Program calls it from TestMain.
func Main(m *testing.M) int {
	code := m.Run()
	built.Lock()
	defer built.Unlock()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	return code
}

// Program compiles a standalone program once per test program and returns its path. It
// is built as it is deployed: races are looked for where the services run within a test.
func Program(t *testing.T, name string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if path, ok := built.paths[name]; ok {
		return path
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "verbatim-test-") //nolint:usetesting // all tests of the program share it
		require.NoError(t, err)
		built.dir, built.paths = dir, map[string]string{}
	}
	_, here, _, ok := runtime.Caller(0)
	require.True(t, ok)
	source := filepath.Join(filepath.Dir(here), "../../../..", programs[name])
	path := filepath.Join(built.dir, name)
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", path, ".")
	cmd.Dir = source
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	built.paths[name] = path
	return path
}

// Output runs a program that ends by itself, with exactly the given environment, and
// returns its exit code and all that it printed.
func Output(t *testing.T, program string, env map[string]string, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = environ(env)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// Process is a running service.
type Process struct {
	// Logs is what it has written to standard error.
	Logs *Logs
	// Addr is where it listens.
	Addr string

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// Serve starts `program serve` and waits until it listens. It is killed at the
// test's end if it still runs.
func Serve(t *testing.T, program string, env map[string]string) *Process {
	t.Helper()
	p := &Process{Logs: &Logs{}, done: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve")
	p.cmd.Env = environ(env)
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	listening := make(chan string, 1)
	go func() {
		defer close(p.done)
		for in := bufio.NewScanner(stderr); in.Scan(); {
			_, _ = p.Logs.Write(append(in.Bytes(), '\n'))
			var line struct {
				Message string `json:"msg"`
				Address string `json:"address"`
			}
			if json.Unmarshal(in.Bytes(), &line) == nil && line.Message == filepath.Base(program)+" serves" {
				listening <- line.Address
			}
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	select {
	case p.Addr = <-listening:
	case <-p.done:
		t.Fatalf("%s ended: %s", program, p.Logs)
	case <-time.After(serveLimit):
		t.Fatalf("%s does not listen: %s", program, p.Logs)
	}
	return p
}

// URL is where the process serves HTTP.
func (p *Process) URL() string { return "http://" + p.Addr }

// Signal sends a signal, and returns the exit code once the process has ended; -1
// means that the signal killed it.
func (p *Process) Signal(t *testing.T, signal os.Signal) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(signal))
	select {
	case <-p.done:
	case <-time.After(serveLimit):
		t.Fatalf("the process did not end: %s", p.Logs)
	}
	return p.cmd.ProcessState.ExitCode()
}

func environ(env map[string]string) []string {
	list := []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// FreeAddr returns an address of this machine that nobody listens on just now, for
// a process that has to be found at the same place after a restart.
func FreeAddr(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return fmt.Sprint(l.Addr())
}
