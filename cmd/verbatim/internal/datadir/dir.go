package datadir

import (
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
	lockName = "lock"

	// A command beside a running process probes the lock for a moment, so that
	// one failed attempt says little.
	lockAttempts = 10
	lockPause    = 30 * time.Millisecond
)

// InUseError says that another process holds the directory.
type InUseError struct {
	Path string
	// PID is the other process's number, 0 when it is unknown.
	PID int
}

// Error is one sentence for an operator.
func (e *InUseError) Error() string {
	by := "another `verbatim up`"
	if e.PID > 0 {
		by += " (process " + strconv.Itoa(e.PID) + ")"
	}
	return "the data directory " + e.Path + " is in use by " + by
}

// Dir is a data directory that this process holds. It is safe for concurrent use.
type Dir struct {
	path string
	lock *os.File
}

// Open makes the directory when it is absent and takes its lock, which the
// kernel releases when the process ends, however it ends. It refuses with one
// sentence a directory that is in use, one that holds something else, and one
// that the server's account cannot reach; a nil account is not asked.
func Open(path string, account Account) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("the data directory %s: %w", path, err)
	}
	if err := reachable(path, account); err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("the data directory cannot be made: %w", err)
	}
	if err := reachable(path, account); err != nil {
		return nil, err
	}
	if err := refuseForeign(path); err != nil {
		return nil, err
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path, lock: lock}
	if err := d.forget(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// Path is the directory's absolute path.
func (d *Dir) Path() string { return d.path }

// ServerDir is where the embedded server keeps its cluster.
func (d *Dir) ServerDir() string { return filepath.Join(d.path, "postgres") }

// Close removes the connections file and lets the directory go.
func (d *Dir) Close() error { return errors.Join(d.forget(), d.lock.Close()) }

func reachable(path string, account Account) error {
	if account == nil {
		return nil
	}
	blocked, err := account.Reaches(path)
	if err != nil {
		return fmt.Errorf("the data directory cannot be examined: %w", err)
	}
	if blocked != "" {
		return fmt.Errorf("the data directory %s cannot be reached by the account that PostgreSQL runs as, because %s is closed to it: choose another --data-dir", path, blocked)
	}
	return nil
}

// create makes the directory for its owner alone. Root's server runs as another
// account, which must pass through it.
func create(path string) error {
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // only directories above ours, as mkdir -p makes them
		return err
	}
	if err := os.Mkdir(path, mode); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return os.Chmod(path, mode) // whatever the umask took away
}

// refuseForeign keeps a mistyped path from filling a directory of something else.
func refuseForeign(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("the data directory cannot be read: %w", err)
	}
	other := ""
	for _, e := range entries {
		switch e.Name() {
		case lockName:
			return nil
		case "lost+found":
		default:
			other = e.Name()
		}
	}
	if other != "" {
		return fmt.Errorf("the directory %s holds other files and is no data directory of Verbatim: choose another --data-dir", path)
	}
	return nil
}

func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator's own directory
	if err != nil {
		return nil, fmt.Errorf("the data directory cannot be used: %w", err)
	}
	for attempt := 1; ; attempt++ {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("the data directory %s cannot be locked: %w", path, err), lock.Close())
		}
		if attempt == lockAttempts {
			return nil, errors.Join(&InUseError{Path: path, PID: holder(lock)}, lock.Close())
		}
		<-time.After(lockPause)
	}
	pid := []byte(strconv.Itoa(os.Getpid()) + "\n")
	if err := lock.Truncate(0); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if _, err := lock.WriteAt(pid, 0); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func holder(lock *os.File) int {
	content := make([]byte, 32)
	n, _ := lock.ReadAt(content, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// held tells whether a process holds the directory's lock.
func held(path string) (bool, error) {
	lock, err := os.Open(filepath.Join(path, lockName)) //nolint:gosec // the operator's own directory
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.Close() }()
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
