// Command ingest is the service that agents write to.
//
//	ingest serve                 serve until SIGTERM, then drain
//	ingest migrate up [--to N]   apply migrations as the owner role
//	ingest migrate status        tell what is applied
//	ingest health                ask a running service of this configuration; for container health checks
//	ingest --validate            check configuration, database and migrations
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// The first signal drains; after it the default returns, so that a second one ends at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ingest: "+strings.TrimPrefix(err.Error(), "ingest "))
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var check bool
	root := &cobra.Command{
		Use: "ingest", Short: "Archive the complete visible conversations of agents",
		SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return validate(cmd.Context(), cmd.OutOrStdout())
			}
			return errors.New("name a command: serve, migrate or health; see ingest --help")
		},
	}
	root.Flags().BoolVar(&check, "validate", false, "check configuration, database and migrations, and exit")
	root.AddCommand(
		&cobra.Command{
			Use: "serve", Short: "Serve agents until SIGINT or SIGTERM, then drain", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context()) },
		},
		&cobra.Command{
			Use: "health", Short: "Ask the running service whether it is ready", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return health(cmd.Context()) },
		},
		migrate(),
	)
	return root
}
