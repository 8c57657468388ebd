package pgembed

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// tie makes the kernel send the signal to the child when the thread that forked it ends.
func tie(attr *syscall.SysProcAttr, signal syscall.Signal) {
	attr.Pdeathsig = signal
}

// serves reports whether the process pid is a PostgreSQL server of pgdata: a
// postmaster's working directory is its data directory.
func serves(pid int, pgdata string) bool {
	cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		return false
	}
	target, err := filepath.EvalSymlinks(pgdata)
	return err == nil && target == cwd
}
