package datadir

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	passwordsName   = "passwords.json"
	connectionsName = "connections.json"
)

// ErrNotRunning says that no process uses the directory.
var ErrNotRunning = errors.New("no `verbatim up` is running on the data directory")

// Connections is what commands beside a running process need. It holds passwords.
type Connections struct {
	Ingest         string `json:"ingest_dsn"`
	IngestOwner    string `json:"ingest_owner_dsn"`
	Auditview      string `json:"auditview_dsn"`
	AuditviewOwner string `json:"auditview_owner_dsn"`
}

// Passwords returns a password for each role, the stored one or a new one that
// is stored, on disk, before it is returned.
func (d *Dir) Passwords(roles ...string) (map[string]string, error) {
	file := filepath.Join(d.path, passwordsName)
	known := map[string]string{}
	content, err := os.ReadFile(file) //nolint:gosec // the operator's own directory
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Join(d.ServerDir(), "data")); err == nil {
			return nil, fmt.Errorf("the database in %s is there but its passwords in %s are gone: put that file back or use another --data-dir", d.ServerDir(), file)
		}
	case err != nil:
		return nil, fmt.Errorf("the database passwords cannot be read: %w", err)
	default:
		if err := json.Unmarshal(content, &known); err != nil {
			return nil, fmt.Errorf("the database passwords in %s are no JSON object of strings", file)
		}
	}
	missing := false
	for _, role := range roles {
		if known[role] == "" {
			known[role] = rand.Text()
			missing = true
		}
	}
	if missing {
		if err := d.write(passwordsName, known); err != nil {
			return nil, fmt.Errorf("the database passwords cannot be stored: %w", err)
		}
	}
	return known, nil
}

// Publish tells the commands beside this process how to reach its databases.
func (d *Dir) Publish(c Connections) error {
	if err := d.write(connectionsName, c); err != nil {
		return fmt.Errorf("the connections file cannot be written: %w", err)
	}
	return nil
}

// Running returns the connections of the process that uses the directory;
// ErrNotRunning when there is none, be it that one was killed.
func Running(path string) (Connections, error) {
	var c Connections
	running, err := held(path)
	if err != nil {
		return c, fmt.Errorf("the data directory %s cannot be used: %w", path, err)
	}
	if !running {
		return c, ErrNotRunning
	}
	content, err := os.ReadFile(filepath.Join(path, connectionsName)) //nolint:gosec // the operator's own directory
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("the `verbatim up` on %s is still starting or already stopping", path)
	}
	if err != nil {
		return c, fmt.Errorf("the connections of the running `verbatim up` cannot be read: %w", err)
	}
	if err := json.Unmarshal(content, &c); err != nil {
		return c, fmt.Errorf("the connections file of %s is no JSON object", path)
	}
	return c, nil
}

func (d *Dir) forget() error {
	err := os.Remove(filepath.Join(d.path, connectionsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write stores v for the owner's eyes, whole or not at all.
func (d *Dir) write(name string, v any) (err error) {
	content, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(d.path, name+".*") // made with 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(append(content, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), filepath.Join(d.path, name)); err != nil {
		return err
	}
	dir, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
