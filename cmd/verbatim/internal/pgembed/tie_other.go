//go:build unix && !linux

package pgembed

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// tie does nothing: only Linux has a signal on the parent's death. Elsewhere
// the next start ends the orphan.
func tie(*syscall.SysProcAttr, syscall.Signal) {}

// serves reports whether the process pid is a PostgreSQL server of pgdata, which
// is named on its command line.
func serves(pid int, pgdata string) bool {
	out, err := exec.CommandContext(context.Background(), "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres -D "+pgdata)
}
