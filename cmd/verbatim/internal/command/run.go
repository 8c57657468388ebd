package command

import (
	"errors"

	"github.com/spf13/cobra"

	"verbatim.internal/cmd/verbatim/internal/adminapi"
	"verbatim.internal/pkg/platform/config"
)

// adminVariables are an administrator's. A token is no flag: those are seen by everybody
// on the machine, and kept in histories.
type adminVariables struct {
	Token config.Secret `env:"ADMIN_TOKEN"`
}

// reading is how a command reaches an execution.
type reading struct{ auditview, client string }

func (r *reading) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.auditview, "auditview", "http://127.0.0.1:8081", "where administrators are served")
	cmd.Flags().StringVar(&r.client, "client", "", "the client of the run, where several have the id")
}

func (r *reading) open(id string) (*adminapi.Client, adminapi.Run, error) {
	variables, err := config.Load[adminVariables](dsnPrefix, nil)
	if err != nil {
		return nil, adminapi.Run{}, err
	}
	if variables.Token == "" {
		return nil, adminapi.Run{}, errors.New("an administrator's token is needed: set VERBATIM_ADMIN_TOKEN or VERBATIM_ADMIN_TOKEN_FILE")
	}
	client, err := adminapi.New(r.auditview, variables.Token)
	return client, adminapi.Run{ID: id, ClientAppID: r.client}, err
}
