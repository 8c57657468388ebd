package datadir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
)

// local is the data directory's name beside what the operator works on.
const local = ".verbatim"

// system is where data goes that cannot be in the working directory.
const system = "/var/lib/verbatim"

// Account is whom the database server runs as.
type Account interface {
	// Reaches reports the first directory on the way to dir, dir included, that the
	// account may not pass, or nothing.
	Reaches(dir string) (blocked string, err error)
}

// Candidates returns the default data directories for a working directory, the
// preferred one first.
func Candidates(workingDir string) []string {
	sum := sha256.Sum256([]byte(workingDir))
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, filepath.Base(workingDir))
	return []string{
		filepath.Join(workingDir, local),
		filepath.Join(system, strings.TrimPrefix(name+"-"+hex.EncodeToString(sum[:4]), "-")),
	}
}

// Default returns the default data directory for a working directory: the one in
// it, or, when the server's account cannot reach that, one under /var/lib.
func Default(workingDir string, account Account) (string, error) {
	candidates := Candidates(workingDir)
	blocked, err := account.Reaches(candidates[0])
	if err != nil {
		return "", fmt.Errorf("the working directory cannot be examined: %w", err)
	}
	if blocked != "" {
		return candidates[1], nil
	}
	return candidates[0], nil
}
