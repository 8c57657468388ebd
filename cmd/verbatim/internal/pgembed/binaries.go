package pgembed

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// ErrNoBinaries says that no PostgreSQL server is installed where this package looks.
var ErrNoBinaries = errors.New("no PostgreSQL server programs were found: install them (Debian and Ubuntu: apt-get install postgresql; macOS: brew install postgresql) or name a server with --postgres")

// MinMajor is the oldest major version that Verbatim's SQL runs on.
const MinMajor = 15

// Installation is one installed PostgreSQL server.
type Installation struct {
	// BinDir is the directory of initdb and postgres.
	BinDir string
	// Major is the server's major version, such as 17.
	Major int
}

// searched are the directories where distributions put the server's programs.
var searched = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// Installations returns the installed servers, newest first.
func Installations(ctx context.Context) []Installation {
	return installations(ctx, searched, exec.LookPath)
}

func installations(ctx context.Context, patterns []string, lookPath func(string) (string, error)) []Installation {
	candidates := make([]string, 0, len(patterns)+1)
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			continue
		}
		candidates = append(candidates, found...)
	}
	if initdb, err := lookPath("initdb"); err == nil {
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil {
			candidates = append(candidates, filepath.Dir(initdb))
		}
	}
	var out []Installation
	for _, dir := range candidates {
		known := slices.ContainsFunc(out, func(i Installation) bool { return i.BinDir == dir })
		if major, ok := majorOf(ctx, dir); ok && !known {
			out = append(out, Installation{BinDir: dir, Major: major})
		}
	}
	slices.SortStableFunc(out, func(a, b Installation) int { return cmp.Compare(b.Major, a.Major) })
	return out
}

// majorOf asks the programs themselves, since a directory's name may say nothing.
func majorOf(ctx context.Context, dir string) (int, bool) {
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
		return 0, false
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output() //nolint:gosec // a program of a fixed name in a system directory
	if err != nil {
		return 0, false
	}
	found := versionPattern.FindSubmatch(out)
	if found == nil {
		return 0, false
	}
	major, err := strconv.Atoi(string(found[1]))
	return major, err == nil
}
