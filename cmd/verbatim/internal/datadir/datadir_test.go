package datadir_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/cmd/verbatim/internal/datadir"
)

// closedAt is an account that may not pass one directory.
type closedAt string

func (c closedAt) Reaches(dir string) (string, error) {
	if c != "" && strings.HasPrefix(dir, string(c)) {
		return string(c), nil
	}
	return "", nil
}

func open(t *testing.T, path string) *datadir.Dir {
	t.Helper()
	d, err := datadir.Open(path, closedAt(""))
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestDefault(t *testing.T) {
	t.Parallel()
	got, err := datadir.Default("/srv/my project", closedAt(""))
	require.NoError(t, err)
	assert.Equal(t, "/srv/my project/.verbatim", got)
	got, err = datadir.Default("/home/u/my project", closedAt("/home/u"))
	require.NoError(t, err)
	assert.Regexp(t, `^/var/lib/verbatim/myproject-[0-9a-f]{8}$`, got)
	other, err := datadir.Default("/home/u/sub/my project", closedAt("/home/u"))
	require.NoError(t, err)
	assert.NotEqual(t, got, other)
	assert.Regexp(t, `^/var/lib/verbatim/[0-9a-f]{8}$`, datadir.Candidates("/")[1])
}

func TestOneProcessAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "data")
	first := open(t, path)
	_, err := datadir.Open(path, closedAt(""))
	var inUse *datadir.InUseError
	require.ErrorAs(t, err, &inUse)
	assert.Equal(t, os.Getpid(), inUse.PID)
	assert.Equal(t, path, inUse.Path)
	assert.NotContains(t, err.Error(), "\n")
	require.NoError(t, first.Close())
	open(t, path)
}

func TestUnreachableAndForeignDirectoriesAreRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	_, err := datadir.Open(filepath.Join(root, "data"), closedAt(root))
	require.ErrorContains(t, err, "cannot be reached by the account that PostgreSQL runs as, because "+root+" is closed to it")
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	assert.Empty(t, entries, "nothing is made before the refusal")

	require.NoError(t, os.WriteFile(filepath.Join(root, "thesis.txt"), nil, 0o600))
	_, err = datadir.Open(root, nil)
	require.ErrorContains(t, err, "holds other files")

	file := filepath.Join(root, "thesis.txt")
	_, err = datadir.Open(file, nil)
	require.Error(t, err)
}

func TestPasswordsStayTheSameAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	d := open(t, path)
	first, err := d.Passwords("a", "b")
	require.NoError(t, err)
	assert.NotEqual(t, first["a"], first["b"])
	assert.GreaterOrEqual(t, len(first["a"]), 26)
	second, err := d.Passwords("a", "b", "c")
	require.NoError(t, err)
	assert.Equal(t, first["a"], second["a"])
	assert.NotEmpty(t, second["c"])
	info, err := os.Stat(filepath.Join(path, "passwords.json"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.MkdirAll(filepath.Join(d.ServerDir(), "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(path, "passwords.json"), []byte("[]"), 0o600))
	_, err = d.Passwords("a")
	require.ErrorContains(t, err, "no JSON object")
	require.NoError(t, os.Remove(filepath.Join(path, "passwords.json")))
	_, err = d.Passwords("a")
	require.ErrorContains(t, err, "passwords", "a database without its passwords is told, not given new ones")
}

func TestConnectionsLiveAsLongAsTheProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	_, err := datadir.Running(path)
	require.ErrorIs(t, err, datadir.ErrNotRunning)
	d := open(t, path)
	_, err = datadir.Running(path)
	require.ErrorContains(t, err, "still starting")
	want := datadir.Connections{Ingest: "a", IngestOwner: "b", Auditview: "c", AuditviewOwner: "d"}
	require.NoError(t, d.Publish(want))
	got, err := datadir.Running(path)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	file := filepath.Join(path, "connections.json")
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	content, err := os.ReadFile(file)
	require.NoError(t, err)

	require.NoError(t, d.Close())
	_, err = os.Stat(file)
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, os.WriteFile(file, content, 0o600), "as a killed process leaves it")
	_, err = datadir.Running(path)
	require.ErrorIs(t, err, datadir.ErrNotRunning)
	open(t, path)
	_, err = os.Stat(file)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
