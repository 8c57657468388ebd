package pgembed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	orphanPatience = 3 * time.Second
	orphanDeadline = 15 * time.Second
	orphanPoll     = 10 * time.Millisecond
)

// clearOrphan waits for the server that a killed process left behind, ends it
// when it does not end by itself, and removes a process file that names some
// other program. Only the holder of the directory's lock may call it: that is
// what makes any server found here an orphan. What it cannot tell it leaves to
// PostgreSQL, which then refuses to start beside another server.
func (c Config) clearOrphan(ctx context.Context) error {
	file := filepath.Join(c.pgdata(), "postmaster.pid")
	pid, err := postmaster(file)
	if err != nil || pid == 0 {
		return err
	}
	tick := time.NewTicker(orphanPoll)
	defer tick.Stop()
	patience, deadline := time.After(orphanPatience), time.After(orphanDeadline)
	for {
		args, known := arguments(pid)
		serving := false
		if known {
			serving, known = serves(args, c.pgdata())
		}
		if !known {
			return nil
		}
		if !serving {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-patience:
			_ = syscall.Kill(pid, syscall.SIGQUIT)
		case <-deadline:
			return fmt.Errorf("a PostgreSQL server that an earlier run left (process %d) still uses %s and does not end", pid, c.pgdata())
		case <-tick.C:
		}
	}
	// The number may belong to another program by now, which PostgreSQL would
	// take for a server of this directory and refuse to start.
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// serves reports whether a process with these arguments is a PostgreSQL server
// of pgdata, started as this package does, and whether that can be told.
func serves(args []string, pgdata string) (serving, known bool) {
	if len(args) < 3 || filepath.Base(args[0]) != "postgres" || args[1] != "-D" {
		return false, true
	}
	here, err := filepath.EvalSymlinks(pgdata)
	if err != nil {
		return false, false
	}
	there, err := filepath.EvalSymlinks(args[2])
	if errors.Is(err, fs.ErrNotExist) {
		return false, true
	}
	return here == there, err == nil
}

// postmaster returns the process number in the file, 0 when there is none.
func postmaster(file string) (int, error) {
	content, err := os.ReadFile(file) //nolint:gosec // the caller's own directory
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 0 {
		return 0, nil //nolint:nilerr // an unreadable file is PostgreSQL's own to judge
	}
	return pid, nil
}
