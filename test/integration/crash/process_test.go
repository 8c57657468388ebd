package crash_test

import (
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// exitLimit bounds how long a program may take to end.
const exitLimit = 30 * time.Second

// process is a service's program: started, killed and started again. It is safe for
// concurrent use.
type process struct {
	t    *testing.T
	path string
	env  []string
	logs *kit.Logs

	mu  sync.Mutex
	run *run // nil while it does not run
}

// run is one life of a process.
type run struct {
	cmd      *exec.Cmd
	ended    chan struct{}
	err      error // of Wait, once ended is closed
	expected bool  // guarded by process.mu
}

// newProcess returns a service's process, which is not started and whose end is the
// test's at the latest.
func newProcess(t *testing.T, service string, env map[string]string) *process {
	t.Helper()
	p := &process{t: t, path: kit.Program(t, service), logs: &kit.Logs{}}
	for name, value := range env {
		p.env = append(p.env, name+"="+value)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the log of %s ends with:\n%s", service, tail(p.logs.String()))
		}
	})
	return p
}

// start starts the process and returns at once.
func (p *process) start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		p.t.Errorf("%s runs already", p.path)
		return
	}
	r := &run{cmd: exec.Command(p.path, "serve"), ended: make(chan struct{})} //nolint:noctx // it ends in Cleanup
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = p.env, p.logs, p.logs
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := spawn(r.cmd); err != nil {
		p.t.Errorf("start %s: %v", p.path, err)
		return
	}
	p.run = r
	go func() {
		r.err = r.cmd.Wait()
		p.mu.Lock()
		if !r.expected {
			p.t.Errorf("%s ended by itself: %v", p.path, r.err)
		}
		p.mu.Unlock()
		close(r.ended)
	}()
}

// signal sends a signal that is to end the process, and returns the life that it ends,
// or nil when it does not run.
func (p *process) signal(s syscall.Signal) *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.run
	if r == nil {
		return nil
	}
	p.run, r.expected = nil, true
	_ = r.cmd.Process.Signal(s) // it may have ended by itself, which fails the test
	return r
}

// kill kills the process as kill -9 does, and waits until it is gone.
func (p *process) kill() {
	if r := p.signal(syscall.SIGKILL); r != nil {
		<-r.ended
	}
}

// terminate asks the process to end; the returned function waits for that and fails
// the test unless the exit code is 0.
func (p *process) terminate() (wait func()) {
	r := p.signal(syscall.SIGTERM)
	return func() {
		p.t.Helper()
		require.NotNil(p.t, r, "%s does not run", p.path)
		select {
		case <-r.ended:
			require.NoError(p.t, r.err)
		case <-time.After(exitLimit):
			_ = r.cmd.Process.Kill()
			p.t.Fatalf("%s did not end within %v", p.path, exitLimit)
		}
	}
}

// checkLog fails the test when the process has logged a secret, a text or a panic.
func (p *process) checkLog(secrets ...string) {
	p.t.Helper()
	logged := p.logs.String()
	for _, what := range append(secrets, kit.Canary, "panic") {
		for line := range strings.Lines(logged) {
			if strings.Contains(line, what) {
				p.t.Errorf("the log of %s holds %q: %s", p.path, what, line)
				break
			}
		}
	}
}

// tail returns the end of a log, without the requests.
func tail(text string) string {
	const size = 8 << 10
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, `"msg":"request"`) {
			kept.WriteString(line)
		}
	}
	return kept.String()[max(0, kept.Len()-size):]
}

// spawner is the one thread that starts processes: Linux sends the death signal of a
// child when the thread that made it ends, and this one lasts as long as the program.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func spawn(cmd *exec.Cmd) error {
	result := make(chan error)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}
