package command

import (
	"github.com/spf13/cobra"

	"verbatim.internal/services/auditview"
)

func newAdmin(s streams) *cobra.Command {
	return group("admin", "Say who may read", newAdminApply(s))
}

func newAdminApply(s streams) *cobra.Command {
	var (
		file string
		from databases
	)
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Apply a list of administrators",
		Long: `Apply a list of administrators (YAML or JSON, admins: [{name, token, permissions}])
in one transaction. Prints what changed. A token that the file does not give is
generated and printed once; only its hash is stored.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			content, err := readFile(s.in, file)
			if err != nil {
				return err
			}
			dsn, err := from.dsn(auditviewService)
			if err != nil {
				return err
			}
			result, err := auditview.ApplyAdmins(cmd.Context(), dsn, content)
			if err != nil {
				return err
			}
			return printAdmins(s.out, result)
		},
	}
	fileFlag(cmd, &file)
	from.flag(cmd)
	return cmd
}
