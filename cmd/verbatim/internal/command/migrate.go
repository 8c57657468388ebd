package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

func newMigrate(s streams) *cobra.Command {
	return group("migrate", "Apply the databases' migrations, or tell which are applied", newMigrateUp(s), newMigrateStatus(s))
}

// migrator is one service's migrations.
type migrator struct {
	owner, service target
	up             func(ctx context.Context, dsn config.Secret, to int64) ([]migration.Applied, error)
	status         func(ctx context.Context, dsn config.Secret) (migration.State, error)
}

var migrators = map[string]migrator{
	"ingest":    {ingestOwner, ingestService, ingest.MigrateUp, ingest.MigrateStatus},
	"auditview": {auditviewOwner, auditviewService, auditview.MigrateUp, auditview.MigrateStatus},
}

func newMigrateUp(s streams) *cobra.Command {
	var (
		only string
		to   int64
		from databases
	)
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that are missing, as the owner roles",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to != 0 && only == "" {
				return errors.New("--to counts one database's migrations: name it with --only ingest or --only auditview")
			}
			chosen, err := chosen(only)
			if err != nil {
				return err
			}
			for _, service := range chosen {
				m := migrators[service.name]
				dsn, err := from.dsn(m.owner)
				if err != nil {
					return err
				}
				applied, err := m.up(cmd.Context(), dsn, to)
				for _, a := range applied {
					if _, err := fmt.Fprintf(s.out, "%s %s applied (%s)\n", service.name, a.Name, a.Duration.Round(time.Millisecond)); err != nil {
						return err
					}
				}
				if err != nil {
					return fmt.Errorf("%s: %w", service.name, err)
				}
				if len(applied) == 0 {
					if _, err := fmt.Fprintf(s.out, "%s is up to date\n", service.name); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
	cmd.Flags().Int64Var(&to, "to", 0, "stop after the migration of this number (default: all)")
	onlyFlag(cmd, &only)
	from.flag(cmd)
	return cmd
}

func newMigrateStatus(s streams) *cobra.Command {
	var (
		only string
		from databases
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell which migrations are applied",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := chosen(only)
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintln(table, "DATABASE\tCURRENT\tPENDING")
			for _, service := range chosen {
				m := migrators[service.name]
				dsn, err := from.either(m.service, m.owner)
				if err != nil {
					return err
				}
				state, err := m.status(cmd.Context(), dsn)
				if err != nil {
					return fmt.Errorf("%s: %w", service.name, err)
				}
				_, _ = fmt.Fprintf(table, "%s\t%d\t%s\n", service.name, state.Current, pending(state))
			}
			return table.Flush()
		},
	}
	onlyFlag(cmd, &only)
	from.flag(cmd)
	return cmd
}

func pending(state migration.State) string {
	text := "none"
	if len(state.Pending) > 0 {
		text = strings.Join(state.Pending, " ")
	}
	if len(state.Unknown) > 0 {
		text += " (and " + strconv.Itoa(len(state.Unknown)) + " applied that this release does not know)"
	}
	return text
}
