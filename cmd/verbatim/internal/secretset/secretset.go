// Package secretset makes the secrets of a deployment as files: connection
// strings with their passwords, and the bearer and certificate of the relay.
package secretset

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"verbatim.internal/cmd/verbatim/internal/clock"
	"verbatim.internal/pkg/platform/database"
)

// Layout says where the deployment's parts are.
type Layout struct {
	// Postgres is the server's host:port.
	Postgres string
	// Relay is the host name under which ingest reaches auditview's internal listener.
	Relay string
}

const (
	superuser = "postgres"

	passwordFile = "postgres-password"
	adminFile    = "postgres-admin-dsn"
	tokenFile    = "relay-token"
	caFile       = "relay-ca.pem"
	certFile     = "relay-cert.pem"
	keyFile      = "relay-key.pem"
)

// Write makes the files that are missing and keeps the others.
//
// The directory is its owner's alone, and that is what protects the files: they
// are readable in it, because a container mounts single files and reads them as
// an account that the host does not know.
func Write(dir string, layout Layout) (made, kept int, err error) {
	if _, _, err := net.SplitHostPort(layout.Postgres); err != nil {
		return 0, 0, errors.New("--postgres takes host:port")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, 0, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory that only its owner may pass
		return 0, 0, err
	}
	w := writer{dir: dir}
	w.postgres(layout)
	w.file(tokenFile, func() (string, error) { return random(), nil })
	w.certificate(layout)
	return w.made, w.kept, w.err
}

// writer remembers the first failure.
type writer struct {
	dir        string
	made, kept int
	err        error
}

// file makes a file, whole or not at all, unless it exists.
func (w *writer) file(name string, content func() (string, error)) {
	if w.err != nil || w.exists(name) {
		return
	}
	text, err := content()
	if err == nil {
		err = w.write(name, text)
	}
	w.err = err
}

func (w *writer) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		w.err = err
		return true
	}
	w.kept++
	return true
}

func (w *writer) write(name, text string) error {
	path := filepath.Join(w.dir, name)
	temporary := path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(temporary, []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.Chmod(temporary, 0o444); err != nil { //nolint:gosec // see Write: the directory protects it
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	w.made++
	return nil
}

// postgres makes the superuser's password and one connection string for each role.
func (w *writer) postgres(layout Layout) {
	w.file(passwordFile, func() (string, error) { return random(), nil })
	if w.err != nil {
		return
	}
	password, err := os.ReadFile(filepath.Join(w.dir, passwordFile))
	if err != nil {
		w.err = err
		return
	}
	w.file(adminFile, func() (string, error) {
		return dsn(layout, superuser, trimNewline(password), superuser), nil
	})
	for prefix, r := range map[string]database.Roles{"ingest": database.Ingest, "auditview": database.Auditview} {
		for suffix, role := range map[string]string{"-owner-dsn": r.Owner, "-dsn": r.Service, "-reader-dsn": r.Reader} {
			w.file(prefix+suffix, func() (string, error) { return dsn(layout, role, random(), r.Database), nil })
		}
	}
}

// certificate makes the three files together: each is worthless without the others.
func (w *writer) certificate(layout Layout) {
	if w.err != nil {
		return
	}
	there := 0
	for _, name := range []string{caFile, certFile, keyFile} {
		if w.exists(name) {
			there++
		}
	}
	switch {
	case w.err != nil || there == 3:
		return
	case there > 0:
		w.err = fmt.Errorf("of %s, %s and %s only some are there: remove them all to make new ones", caFile, certFile, keyFile)
		return
	}
	pair, err := newCertificate(layout.Relay, clock.Now())
	if err != nil {
		w.err = err
		return
	}
	w.err = errors.Join(w.write(caFile, pair.ca), w.write(certFile, pair.cert), w.write(keyFile, pair.key))
}

func dsn(layout Layout, user, password, db string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: layout.Postgres, Path: "/" + db, RawQuery: "sslmode=disable"}
	return u.String()
}

// random is 32 random bytes in base64url.
func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func trimNewline(content []byte) string {
	for len(content) > 0 && (content[len(content)-1] == '\n' || content[len(content)-1] == '\r') {
		content = content[:len(content)-1]
	}
	return string(content)
}
