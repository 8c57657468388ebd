// Package command holds the operator's commands, one in each file. A command
// prints its result on standard output; what goes wrong is one sentence on
// standard error and exit code 1.
package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// streams are where a command reads and prints.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Run executes the command that args name and returns the exit code. The first
// SIGINT or SIGTERM ends it in order, the second at once.
func Run(args []string, in io.Reader, out, err io.Writer) int {
	ctx, stop := interruptible()
	defer stop()
	root := newRoot(streams{in: in, out: out, err: err})
	root.SetArgs(args)
	if failure := root.ExecuteContext(ctx); failure != nil {
		_, _ = fmt.Fprintln(err, "verbatim: "+sentence(failure))
		return 1
	}
	return 0
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "verbatim",
		Short:         "Keep what AI agents said and did, and show it word for word",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newUp(s), newBootstrap(s), newMigrate(s), newApply(s), newAdmin(s), newRelay(s), newReplay(s), newAudit(s), newSecrets(s), newVersion(s))
	return root
}

// group makes a command that only holds others: alone it shows what they are, and
// a word that is none of them is an error, which cobra would answer with help.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// interruptible returns a context that ends with the first signal.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(1)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// sentence makes one line of an error, whose parts may be lines of their own. A
// connection that was tried with and without TLS tells the same thing twice.
func sentence(err error) string {
	var parts []string
	for line := range strings.Lines(err.Error()) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && !slices.Contains(parts, line) {
			parts = append(parts, line)
		}
	}
	text := strings.Join(parts, "; ")
	return strings.ReplaceAll(text, ":; ", ": ")
}
