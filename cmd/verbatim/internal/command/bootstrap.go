package command

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
)

func newBootstrap(s streams) *cobra.Command {
	var only string
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Make the services' roles and databases on a server",
		Long: `Make the services' roles and databases on the server that VERBATIM_ADMIN_DSN
names, with the passwords of the connection strings in VERBATIM_INGEST_OWNER_DSN,
VERBATIM_INGEST_DSN, VERBATIM_INGEST_READER_DSN and the same three of AUDITVIEW:
afterwards these connection strings work. May be repeated; a changed password is set.
Each variable may be given as NAME_FILE, the path of a file that holds it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := config.Load[dsnVariables](dsnPrefix, nil)
			if err != nil {
				return err
			}
			if v.Admin == "" {
				return errors.New("VERBATIM_ADMIN_DSN or VERBATIM_ADMIN_DSN_FILE must name the server, as a role that may create roles and databases")
			}
			services, err := chosen(only)
			if err != nil {
				return err
			}
			for _, service := range services {
				passwords, err := service.passwords(v)
				if err != nil {
					return err
				}
				if err := database.Bootstrap(cmd.Context(), v.Admin.Reveal(), service.roles, passwords); err != nil {
					return err
				}
				if _, err := fmt.Fprintf(s.out, "%s: roles and database %s are ready\n", service.name, service.roles.Database); err != nil {
					return err
				}
			}
			return nil
		},
	}
	onlyFlag(cmd, &only)
	return cmd
}

// service is one of the two services, as its databases see it.
type service struct {
	name  string
	roles database.Roles
	dsns  func(dsnVariables) map[string]config.Secret
}

var services = []service{
	{"ingest", database.Ingest, func(v dsnVariables) map[string]config.Secret {
		return map[string]config.Secret{"OWNER_DSN": v.IngestOwner, "DSN": v.Ingest, "READER_DSN": v.IngestReader}
	}},
	{"auditview", database.Auditview, func(v dsnVariables) map[string]config.Secret {
		return map[string]config.Secret{"OWNER_DSN": v.AuditviewOwner, "DSN": v.Auditview, "READER_DSN": v.AuditviewReader}
	}},
}

func onlyFlag(cmd *cobra.Command, only *string) {
	cmd.Flags().StringVar(only, "only", "", "ingest or auditview (default: both)")
}

func chosen(only string) ([]service, error) {
	if only == "" {
		return services, nil
	}
	for _, s := range services {
		if s.name == only {
			return []service{s}, nil
		}
	}
	return nil, errors.New("--only takes ingest or auditview")
}

// passwords takes each role's password from the connection string that is to
// work with it. A connection string of another role or database is refused.
func (s service) passwords(v dsnVariables) (map[string]string, error) {
	passwords := map[string]string{}
	var problems []error
	for _, c := range []struct{ suffix, role string }{
		{"OWNER_DSN", s.roles.Owner}, {"DSN", s.roles.Service}, {"READER_DSN", s.roles.Reader},
	} {
		variable := dsnPrefix + map[string]string{"ingest": "INGEST_", "auditview": "AUDITVIEW_"}[s.name] + c.suffix
		dsn := s.dsns(v)[c.suffix]
		if dsn == "" {
			continue // a role that exists keeps its password
		}
		parsed, err := pgx.ParseConfig(dsn.Reveal())
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%s is no connection string", variable))
		case parsed.User != c.role || parsed.Database != s.roles.Database:
			problems = append(problems, fmt.Errorf("%s must connect as the role %s to the database %s", variable, c.role, s.roles.Database))
		case parsed.Password == "":
			problems = append(problems, fmt.Errorf("%s holds no password", variable))
		default:
			passwords[c.role] = parsed.Password
		}
	}
	return passwords, errors.Join(problems...)
}
