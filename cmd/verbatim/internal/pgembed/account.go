package pgembed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// serverAccount is the account that distributions create for the server. It is
// never "nobody", whose files belong to everyone.
const serverAccount = "postgres"

// Account is whom the server runs as. A nil Account is this process's own.
type Account struct {
	Name string
	UID  uint32
	GID  uint32
}

// ServerAccount returns the account to run the server as, which is nil unless
// this process is root.
func ServerAccount() (*Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // a nil account is the process's own
	}
	found, err := user.Lookup(serverAccount)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses to run as root and there is no account %q to run it as: install the postgresql package, run this as another user, or name a server with --postgres", serverAccount)
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("account %q: %w", serverAccount, err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("account %q: %w", serverAccount, err)
	}
	if uid == 0 {
		return nil, fmt.Errorf("the account %q is root, and PostgreSQL refuses to run as root", serverAccount)
	}
	return &Account{Name: serverAccount, UID: uint32(uid), GID: uint32(gid)}, nil
}

// Reaches reports the first directory on the way to dir, dir included, that the
// account may not pass; it is empty when there is none. Directories that do not
// exist yet are passed over: whoever makes them sees to them.
func (a *Account) Reaches(dir string) (blocked string, err error) {
	if a == nil {
		return "", nil
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	var chain []string
	for at := dir; ; at = filepath.Dir(at) {
		chain = append(chain, at)
		if at == filepath.Dir(at) {
			break
		}
	}
	for i := len(chain) - 1; i >= 0; i-- {
		at := chain[i]
		if target, err := filepath.EvalSymlinks(at); err == nil && target != at {
			if blocked, err := a.Reaches(target); err != nil || blocked != "" {
				return blocked, err
			}
		}
		info, err := os.Stat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if !a.passes(info) {
			return at, nil
		}
	}
	return "", nil
}

func (a *Account) passes(info fs.FileInfo) bool {
	bit := fs.FileMode(0o001)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case stat.Uid == a.UID:
			bit = 0o100
		case stat.Gid == a.GID:
			bit = 0o010
		}
	}
	return info.Mode().Perm()&bit != 0
}

// own gives path to the account.
func (a *Account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.UID), int(a.GID))
}

// credential is nil for the process's own account.
func (a *Account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.UID, Gid: a.GID}
}
