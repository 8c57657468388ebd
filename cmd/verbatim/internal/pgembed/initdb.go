package pgembed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

const superuser = "postgres"

// localeArgs give byte order and Unicode's letters, wherever that can be had.
func localeArgs(major int) []string {
	switch {
	case major >= 17:
		return []string{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"}
	case runtime.GOOS == "linux":
		return []string{"--locale=C.UTF-8"}
	default:
		return []string{"--locale=C"}
	}
}

// Major returns the version of the cluster in dir, 0 when there is none yet.
func Major(dir string) (int, error) {
	content, err := os.ReadFile(filepath.Join(dir, "data", "PG_VERSION")) //nolint:gosec // the caller's own directory
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, fmt.Errorf("%s holds no readable PG_VERSION", filepath.Join(dir, "data"))
	}
	return major, nil
}

// initialise makes the cluster. A crash at any point leaves either no data
// directory or a complete one.
func (c Config) initialise(ctx context.Context) error {
	if err := c.sweep(); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(c.Dir, "new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := c.Account.own(fresh); err != nil {
		return err
	}
	password := filepath.Join(fresh, "password")
	if err := os.WriteFile(password, []byte(c.Password+"\n"), 0o600); err != nil {
		return err
	}
	if err := c.Account.own(password); err != nil {
		return err
	}
	cluster := filepath.Join(fresh, "data")
	args := []string{"-D", cluster, "-U", superuser, "--pwfile=" + password, "-A", "scram-sha-256", "-E", "UTF8", "--data-checksums"}
	args = append(args, localeArgs(c.Installation.Major)...)
	var output bytes.Buffer
	cmd := c.command(ctx, "initdb", syscall.SIGKILL, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	ended, err := start(cmd)
	if err == nil {
		err = <-ended
	}
	if ctx.Err() != nil {
		return fmt.Errorf("making the database cluster was interrupted: %w", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("initdb could not make the database cluster in %s: %s: %w", c.Dir, lastLine(output.String()), err)
	}
	if err := os.Rename(cluster, c.pgdata()); err != nil {
		return err
	}
	return syncDir(c.Dir)
}

// sweep removes what an interrupted initialise left.
func (c Config) sweep() error {
	left, err := filepath.Glob(filepath.Join(c.Dir, "new-*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) pgdata() string { return filepath.Join(c.Dir, "data") }

// lastLine prefers the line in which initdb names the error to its closing remarks.
func lastLine(output string) string {
	last := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if _, reason, ok := strings.Cut(line, "error: "); ok {
			return reason
		}
		if line != "" {
			last = line
		}
	}
	return last
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the caller's own directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
