package pgembed

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// tie makes the kernel send the signal to the child when the thread that forked it ends.
func tie(attr *syscall.SysProcAttr, signal syscall.Signal) {
	attr.Pdeathsig = signal
}

// arguments returns the command line of a process, which any account may read,
// unlike its working directory: root in a container may not read that one's. It
// is empty, and known, for a process that has ended.
func arguments(pid int) (args []string, known bool) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil, true
	}
	if err != nil {
		return nil, false
	}
	return strings.Split(strings.TrimRight(string(content), "\x00"), "\x00"), true
}
