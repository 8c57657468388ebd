package secretset

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var layout = Layout{Postgres: "postgres:5432", Relay: "auditview"}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return strings.TrimSuffix(string(content), "\n")
}

func TestWriteMakesEachFileOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "secrets")
	made, kept, err := Write(dir, layout)
	require.NoError(t, err)
	assert.Equal(t, 12, made)
	assert.Equal(t, 0, kept)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	before := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 12)
	for _, e := range entries {
		before[e.Name()] = read(t, dir, e.Name())
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "ingest-dsn")))
	made, kept, err = Write(dir, layout)
	require.NoError(t, err)
	assert.Equal(t, 1, made)
	assert.Equal(t, 11, kept)
	for name, content := range before {
		if name == "ingest-dsn" {
			assert.NotEqual(t, content, read(t, dir, name))
		} else {
			assert.Equal(t, content, read(t, dir, name), name)
		}
	}
	require.NoError(t, os.Remove(filepath.Join(dir, keyFile)))
	_, _, err = Write(dir, layout)
	require.ErrorContains(t, err, "only some are there")
	_, _, err = Write(dir, Layout{Postgres: "nowhere"})
	require.ErrorContains(t, err, "--postgres takes host:port")
}

func TestConnectionStrings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, _, err := Write(dir, layout)
	require.NoError(t, err)
	for name, want := range map[string][2]string{
		"postgres-admin-dsn":   {"postgres", "postgres"},
		"ingest-dsn":           {"verbatim_ingest", "verbatim_ingest"},
		"ingest-owner-dsn":     {"verbatim_ingest_owner", "verbatim_ingest"},
		"ingest-reader-dsn":    {"verbatim_ingest_reader", "verbatim_ingest"},
		"auditview-dsn":        {"verbatim_auditview", "verbatim_auditview"},
		"auditview-owner-dsn":  {"verbatim_auditview_owner", "verbatim_auditview"},
		"auditview-reader-dsn": {"verbatim_auditview_reader", "verbatim_auditview"},
	} {
		parsed, err := pgx.ParseConfig(read(t, dir, name))
		require.NoError(t, err, name)
		assert.Equal(t, want, [2]string{parsed.User, parsed.Database}, name)
		assert.Equal(t, "postgres", parsed.Host)
		assert.Len(t, parsed.Password, 43, name)
	}
	admin, err := pgx.ParseConfig(read(t, dir, "postgres-admin-dsn"))
	require.NoError(t, err)
	assert.Equal(t, read(t, dir, "postgres-password"), admin.Password)
}

func TestCertificateServesItsHostAlone(t *testing.T) {
	t.Parallel()
	made, err := newCertificate("auditview", time.Now())
	require.NoError(t, err)
	pair, err := tls.X509KeyPair([]byte(made.cert), []byte(made.key))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(made.ca)))

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	for name, works := range map[string]bool{"auditview": true, "elsewhere": false} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12}}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		if !works {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
}
