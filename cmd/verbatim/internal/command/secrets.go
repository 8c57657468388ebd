package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"verbatim.internal/cmd/verbatim/internal/secretset"
)

func newSecrets(s streams) *cobra.Command {
	var (
		dir    string
		layout secretset.Layout
	)
	cmd := &cobra.Command{
		Use:   "secrets --dir DIR",
		Short: "Make the files of secrets that a deployment needs",
		Long: `Make what deploy/compose.yaml mounts: passwords as connection strings, the bearer
and the certificate of the relay's internal listener. Files that exist are kept, so
that a repetition makes only what is missing. The certificate's authority signs this
one certificate and its key is thrown away; to renew it, remove the three relay-*.pem
files and repeat.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			made, kept, err := secretset.Write(dir, layout)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%s: %d files made, %d kept\n", dir, made, kept)
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the directory to write to, made when absent")
	cmd.Flags().StringVar(&layout.Postgres, "postgres", "postgres:5432", "host:port of the PostgreSQL server")
	cmd.Flags().StringVar(&layout.Relay, "relay", "auditview", "host name of auditview's internal listener")
	_ = cmd.MarkFlagRequired("dir")
	return cmd
}
