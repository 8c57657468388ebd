package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/ingest"
)

// migrateConfig is all that migrating needs.
type migrateConfig struct {
	// OwnerDSN reaches ingest's database as its owner role.
	OwnerDSN config.Secret `env:"OWNER_DSN,required"`
}

func migrate() *cobra.Command {
	root := &cobra.Command{Use: "migrate", Short: "Apply or list ingest's migrations"}
	var to int64
	up := &cobra.Command{
		Use: "up", Short: "Apply migrations as the owner role (VERBATIM_INGEST_OWNER_DSN)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load[migrateConfig](prefix, nil)
			if err != nil {
				return err
			}
			applied, err := ingest.MigrateUp(cmd.Context(), cfg.OwnerDSN, to)
			for _, m := range applied {
				fmt.Fprintf(cmd.OutOrStdout(), "applied %s (%s)\n", m.Name, m.Duration.Round(time.Millisecond))
			}
			if err == nil && len(applied) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to apply")
			}
			return err
		},
	}
	up.Flags().Int64Var(&to, "to", 0, "stop at this version (0: apply all)")
	status := &cobra.Command{
		Use: "status", Short: "Tell what is applied", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load[migrateConfig](prefix, nil)
			if err != nil {
				return err
			}
			state, err := ingest.MigrateStatus(cmd.Context(), cfg.OwnerDSN)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "at version %d\n", state.Current)
			for _, name := range state.Pending {
				fmt.Fprintf(cmd.OutOrStdout(), "pending %s\n", name)
			}
			for _, version := range state.Unknown {
				fmt.Fprintf(cmd.OutOrStdout(), "unknown to this release: %d\n", version)
			}
			return nil
		},
	}
	root.AddCommand(up, status)
	return root
}
