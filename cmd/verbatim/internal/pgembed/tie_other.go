//go:build unix && !linux

package pgembed

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// tie does nothing: only Linux has a signal on the parent's death. Elsewhere
// the next start ends the orphan.
func tie(*syscall.SysProcAttr, syscall.Signal) {}

// arguments returns the command line of a process, empty and known for one that
// has ended. A directory with spaces in its name is split, and so not recognized.
func arguments(pid int) (args []string, known bool) {
	out, err := exec.CommandContext(context.Background(), "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, true // ps found no such process
	}
	return strings.Fields(string(out)), err == nil
}
