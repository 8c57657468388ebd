package command

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"verbatim.internal/cmd/verbatim/internal/datadir"
	"verbatim.internal/pkg/platform/config"
)

// dsnVariables are the services' own variables, so that one environment serves
// the services and the commands.
type dsnVariables struct {
	Ingest          config.Secret `env:"INGEST_DSN"`
	IngestOwner     config.Secret `env:"INGEST_OWNER_DSN"`
	IngestReader    config.Secret `env:"INGEST_READER_DSN"`
	Auditview       config.Secret `env:"AUDITVIEW_DSN"`
	AuditviewOwner  config.Secret `env:"AUDITVIEW_OWNER_DSN"`
	AuditviewReader config.Secret `env:"AUDITVIEW_READER_DSN"`
	Admin           config.Secret `env:"ADMIN_DSN"`
}

const dsnPrefix = "VERBATIM_"

// databases finds the connection strings that a command needs: those of the
// running `verbatim up` that --data-dir names, else the environment's, else
// those of a running `verbatim up` in the default data directory.
type databases struct{ dataDir string }

func (d *databases) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.dataDir, "data-dir", "", "use the databases of the `verbatim up` that runs on this data directory (default: the VERBATIM_…_DSN variables, else .verbatim)")
}

// target is one of the four connections.
type target struct {
	variable string
	set      func(dsnVariables) config.Secret
	running  func(datadir.Connections) string
}

var (
	ingestService = target{
		"VERBATIM_INGEST_DSN",
		func(v dsnVariables) config.Secret { return v.Ingest },
		func(c datadir.Connections) string { return c.Ingest },
	}
	ingestOwner = target{
		"VERBATIM_INGEST_OWNER_DSN",
		func(v dsnVariables) config.Secret { return v.IngestOwner },
		func(c datadir.Connections) string { return c.IngestOwner },
	}
	auditviewService = target{
		"VERBATIM_AUDITVIEW_DSN",
		func(v dsnVariables) config.Secret { return v.Auditview },
		func(c datadir.Connections) string { return c.Auditview },
	}
	auditviewOwner = target{
		"VERBATIM_AUDITVIEW_OWNER_DSN",
		func(v dsnVariables) config.Secret { return v.AuditviewOwner },
		func(c datadir.Connections) string { return c.AuditviewOwner },
	}
)

// dsn returns the connection string of a target.
func (d *databases) dsn(t target) (config.Secret, error) {
	if d.dataDir != "" {
		running, err := datadir.Running(d.dataDir)
		if errors.Is(err, datadir.ErrNotRunning) {
			return "", fmt.Errorf("no `verbatim up` is running on the data directory %s", d.dataDir)
		}
		return config.Secret(t.running(running)), err
	}
	variables, err := config.Load[dsnVariables](dsnPrefix, nil)
	if err != nil {
		return "", err
	}
	if dsn := t.set(variables); dsn != "" {
		return dsn, nil
	}
	workingDir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for _, candidate := range datadir.Candidates(workingDir) {
		running, err := datadir.Running(candidate)
		if errors.Is(err, datadir.ErrNotRunning) {
			continue
		}
		return config.Secret(t.running(running)), err
	}
	return "", fmt.Errorf("no database is named: set %s, or start `verbatim up` here, or name the data directory of a running one with --data-dir", t.variable)
}

// either returns the first target's connection string, else the second's.
func (d *databases) either(first, second target) (config.Secret, error) {
	dsn, err := d.dsn(first)
	if err == nil {
		return dsn, nil
	}
	if other, otherErr := d.dsn(second); otherErr == nil {
		return other, nil
	}
	return "", err
}
