// Command testreport runs a "go test -json" command and prints what a person or
// a CI log wants of it: a line per package, the output of what failed, and a last
// line "N passed, N failed". It ends with 1 when a test or a build failed, when
// the command failed for another reason, and when no test ran at all.
//
// Usage: testreport go test -json ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	if len(os.Args) < 2 {
		_, _ = fmt.Fprintln(os.Stderr, "usage: testreport go test -json PACKAGES")
		os.Exit(2)
	}
	ok, err := run(context.Background(), os.Stdout, os.Stderr, os.Args[1:])
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run executes the command and reports it; ok says that tests ran and all passed.
func run(ctx context.Context, stdout, stderr io.Writer, command []string) (ok bool, err error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // running its arguments is its purpose
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	r := newReport(stdout)
	readErr := r.read(out)
	waitErr := cmd.Wait()
	good := r.close()
	var exit *exec.ExitError
	if errors.As(waitErr, &exit) && !good {
		waitErr = nil // the report says why already
	}
	return good, errors.Join(readErr, waitErr)
}
