// Command auditview is the service that administrators read from.
//
//	auditview serve                 serve until SIGTERM, then drain
//	auditview migrate up [--to N]   apply migrations as the owner role
//	auditview migrate status        tell what is applied
//	auditview health                ask a running service of this configuration; for container health checks
//	auditview --validate            check configuration, database and migrations
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// The first signal drains; after it the default returns, so that a second one ends at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "auditview: "+err.Error())
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var check bool
	root := &cobra.Command{
		Use: "auditview", Short: "Serve complete conversations to administrators, word for word",
		SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return validate(cmd.Context(), cmd.OutOrStdout())
			}
			return errors.New("name a command: serve, migrate or health; see auditview --help")
		},
	}
	root.Flags().BoolVar(&check, "validate", false, "check configuration, database and migrations, and exit")
	root.AddCommand(
		&cobra.Command{
			Use: "serve", Short: "Serve administrators until SIGINT or SIGTERM, then drain", Args: cobra.NoArgs,
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
