package pgembed

import (
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	installed := []Installation{{BinDir: "/17", Major: 17}, {BinDir: "/15", Major: 15}, {BinDir: "/13", Major: 13}}
	for name, test := range map[string]struct {
		installed []Installation
		major     int
		want      string
		problem   string
	}{
		"a new cluster takes the newest":   {installed: installed, want: "/17"},
		"a cluster keeps its version":      {installed: installed, major: 15, want: "/15"},
		"its version is gone":              {installed: installed, major: 16, problem: "the database in /d was made by PostgreSQL 16, which is not installed (the newest installed one is 17): install that version or use another --data-dir"},
		"only versions that are too old":   {installed: installed[2:], problem: "PostgreSQL 15 or later is needed and the newest installed one is 13: install a newer one or name a server with --postgres"},
		"an old cluster of an old version": {installed: installed[2:], major: 13, want: "/13"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := choose(test.installed, "/d", test.major)
			if test.problem != "" {
				require.EqualError(t, err, test.problem)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, got.BinDir)
		})
	}
}

func TestInstallationsAreFound(t *testing.T) {
	t.Parallel()
	found := Installations(t.Context())
	require.NotEmpty(t, found, "%v", ErrNoBinaries)
	for i := 1; i < len(found); i++ {
		assert.GreaterOrEqual(t, found[i-1].Major, found[i].Major)
	}
}

func TestMissingProgramsAreOneSentence(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	broken := filepath.Join(empty, "bin")
	require.NoError(t, os.MkdirAll(broken, 0o755))
	for _, program := range []string{"initdb", "postgres"} {
		require.NoError(t, os.WriteFile(filepath.Join(broken, program), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	}
	found := installations(t.Context(), []string{empty, broken}, func(string) (string, error) { return "", exec.ErrNotFound })
	require.Empty(t, found)
	_, err := choose(found, "/d", 0)
	require.ErrorIs(t, err, ErrNoBinaries)
	require.NotContains(t, err.Error(), "\n")
}

func TestServesTellsServersApart(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	mine, other := filepath.Join(root, "mine"), filepath.Join(root, "other")
	require.NoError(t, os.Mkdir(mine, 0o700))
	require.NoError(t, os.Mkdir(other, 0o700))
	require.NoError(t, os.Symlink(mine, filepath.Join(root, "link")))
	for name, c := range map[string]struct {
		args  []string
		wants bool
	}{
		"the directory's server":      {[]string{"/usr/bin/postgres", "-D", mine, "-p", "1"}, true},
		"the same by another path":    {[]string{"postgres", "-D", filepath.Join(root, "link")}, true},
		"another directory's":         {[]string{"/usr/bin/postgres", "-D", other}, false},
		"one whose directory is gone": {[]string{"/usr/bin/postgres", "-D", filepath.Join(root, "gone")}, false},
		"another program":             {[]string{"cat", "-D", mine}, false},
		"a server's child":            {[]string{"postgres: walwriter"}, false},
		"a process that has ended":    {nil, false},
	} {
		got, known := serves(c.args, mine)
		assert.Equal(t, c.wants, got, name)
		assert.True(t, known, name)
	}
	args, known := arguments(os.Getpid())
	assert.True(t, known)
	assert.Equal(t, os.Args, args)
	_, known = serves([]string{"postgres", "-D", mine}, filepath.Join(root, "gone"))
	assert.False(t, known, "nothing can be told of a directory that is not there")
}

func TestTakenPortIsTold(t *testing.T) {
	t.Parallel()
	installation, err := Choose(t.Context(), t.TempDir())
	require.NoError(t, err)
	account, err := ServerAccount()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		require.NoError(t, os.Chmod(d, 0o711))
	}
	c := Config{Dir: filepath.Join(dir, "postgres"), Password: "password-of-a-test", Account: account, Installation: installation, Log: slog.New(slog.DiscardHandler)}
	require.NoError(t, c.prepare())
	require.NoError(t, c.initialise(t.Context()))
	var listen net.ListenConfig
	taken, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	address, ok := taken.Addr().(*net.TCPAddr)
	require.True(t, ok)
	_, err = c.launch(t.Context(), address.Port)
	require.ErrorIs(t, err, errPortTaken)
}

func TestReaches(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(root), 0o711))
	require.NoError(t, os.Chmod(root, 0o711))
	open, closed := filepath.Join(root, "open"), filepath.Join(root, "closed")
	require.NoError(t, os.MkdirAll(filepath.Join(open, "in"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(closed, "in"), 0o700)) // what the test is about
	require.NoError(t, os.Symlink(filepath.Join(closed, "in"), filepath.Join(open, "link")))
	other := &Account{Name: "other", UID: 4_000_000, GID: 4_000_000}
	for path, want := range map[string]string{
		open:                                  "",
		filepath.Join(open, "in"):             "",
		filepath.Join(open, "absent", "more"): "",
		closed:                                closed,
		filepath.Join(closed, "in"):           closed,
		filepath.Join(closed, "absent"):       closed,
		filepath.Join(open, "link"):           closed,
	} {
		blocked, err := other.Reaches(path)
		require.NoError(t, err)
		assert.Equal(t, want, blocked, path)
	}
	var own *Account
	blocked, err := own.Reaches(closed)
	require.NoError(t, err)
	assert.Empty(t, blocked)
}

func TestParse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		level   slog.Level
		message string
	}{
		"LOG:  database system is ready":        {slog.LevelDebug, "database system is ready"},
		"FATAL:  data directory has: a problem": {slog.LevelWarn, "data directory has: a problem"},
		"PANIC:  out of space":                  {slog.LevelWarn, "out of space"},
		"something else":                        {slog.LevelDebug, "something else"},
		"\tindented: detail":                    {slog.LevelDebug, "indented: detail"},
	} {
		level, message := parse(line)
		assert.Equal(t, want.level, level, line)
		assert.Equal(t, want.message, message, line)
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "could not create directory", lastLine("hello\ninitdb: error: could not create directory\ninitdb: hint: x\n"))
	assert.Equal(t, "last", lastLine("first\nlast\n\n"))
	assert.Empty(t, lastLine(""))
}
