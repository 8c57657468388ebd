// Command verbatim is the operator's command: it runs everything in one process,
// or prepares, feeds and watches services that run on their own.
package main

import (
	"os"

	"verbatim.internal/cmd/verbatim/internal/command"
)

func main() {
	os.Exit(command.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
