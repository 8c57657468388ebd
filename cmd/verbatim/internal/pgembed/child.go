package pgembed

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// passedOn are the only variables of this process that the server's programs
// see: the rest may hold secrets, or PG… settings meant for somebody else.
var passedOn = []string{"PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"}

// command prepares a PostgreSQL program, in a process group of its own so that a
// Ctrl-C at the terminal reaches only this process, which passes it on in order.
func (c Config) command(ctx context.Context, program string, onDeath syscall.Signal, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Installation.BinDir, program), args...) //nolint:gosec // a program of a fixed name in the installation's directory
	cmd.Dir = c.Dir
	cmd.Env = []string{"HOME=" + c.Dir, "LC_ALL=C", "TZ=UTC"}
	for _, name := range passedOn {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.Account.credential(), Setpgid: true}
	tie(cmd.SysProcAttr, onDeath)
	return cmd
}

// start starts cmd and returns a channel that gets the result of its Wait.
func start(cmd *exec.Cmd) (<-chan error, error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the thread that forked ends, not
		// only the process: this goroutine keeps its thread until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return ended, nil
}
