package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"verbatim.internal/cmd/verbatim/internal/clock"
	"verbatim.internal/cmd/verbatim/internal/demo"
	"verbatim.internal/cmd/verbatim/internal/stack"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/memory"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

// tracingPatience bounds the export of the last spans.
const tracingPatience = 3 * time.Second

// upFlags are the flags of `verbatim up`.
type upFlags struct {
	registry, admins, dataDir, postgres, level string
	ingest, auditview, control                 string
	ingestMetrics, auditviewMetrics            string
	demo                                       bool
}

func newUp(s streams) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything in one process, with a PostgreSQL of its own",
		Long: `Run ingest and auditview in one process, on a PostgreSQL server that is started for
them (the system's programs; no Docker) or that --postgres names. When both are ready,
one JSON line on standard output says where: {"ready":true,"ingest":…,"auditview":…,"control":…}.
Logs go to standard error. SIGINT or SIGTERM ends it in order, a second one at once.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd.Context(), s, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.registry, "registry", "", "apply this registry file first, as `verbatim apply` does")
	flags.StringVar(&f.admins, "admins", "", "apply this file of administrators first, as `verbatim admin apply` does")
	flags.StringVar(&f.ingest, "ingest", "127.0.0.1:8080", "where agents are served, host:port; port 0 takes a free one")
	flags.StringVar(&f.auditview, "auditview", "127.0.0.1:8081", "where administrators are served")
	flags.StringVar(&f.control, "control", "127.0.0.1:8083", "where the registry is served to its controllers; empty turns it off")
	flags.StringVar(&f.ingestMetrics, "ingest-metrics", "127.0.0.1:0", "where ingest's metrics are served; the log says where; empty turns them off")
	flags.StringVar(&f.auditviewMetrics, "auditview-metrics", "127.0.0.1:0", "where auditview's metrics are served")
	flags.StringVar(&f.dataDir, "data-dir", "", "where data and generated passwords are kept (default .verbatim, or one under /var/lib/verbatim that the database's account can reach)")
	flags.StringVar(&f.postgres, "postgres", "", "use this PostgreSQL server, as a role that may create roles and databases; - takes it from VERBATIM_ADMIN_DSN (default: a server of its own)")
	flags.StringVar(&f.level, "log-level", "", "debug, info, warn or error (default info; with --demo warn)")
	flags.BoolVar(&f.demo, "demo", false, "play a conversation and show how to try the API")
	return cmd
}

func up(ctx context.Context, s streams, f upFlags) error {
	memory.Tune()
	c, err := f.config(s)
	if err != nil {
		return err
	}
	stopTracing, err := telemetry.StartTracing(ctx, "verbatim")
	if err != nil {
		return err
	}
	defer func() { // the last spans are no reason to fail
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracingPatience)
		defer cancel()
		_ = stopTracing(closing)
	}()
	running, err := stack.Start(ctx, c)
	if err != nil {
		return err
	}
	err = serve(ctx, s, f, running)
	return errors.Join(err, running.Stop()) //nolint:contextcheck // ctx has ended: that is why it stops
}

// serve says that everything is ready and returns when it is to end.
func serve(ctx context.Context, s streams, f upFlags, running *stack.Stack) error {
	if err := printReady(s.out, running); err != nil {
		return err
	}
	if f.demo {
		err := demo.Run(ctx, demo.Config{
			Ingest: running.IngestURL(), Auditview: running.AuditviewURL(),
			ApplyRegistry: func(ctx context.Context, file []byte) error { _, err := running.ApplyRegistry(ctx, file); return err },
			ApplyAdmins:   func(ctx context.Context, file []byte) error { _, err := running.ApplyAdmins(ctx, file); return err },
			Out:           s.out, Color: colorful(s.out), Now: clock.Now,
		})
		if err != nil && ctx.Err() == nil { // not stopped in the middle, on request
			return err
		}
	}
	return running.Wait(ctx)
}

func printReady(out io.Writer, running *stack.Stack) error {
	line, err := json.Marshal(struct {
		Ready     bool   `json:"ready"`
		Ingest    string `json:"ingest"`
		Auditview string `json:"auditview"`
		Control   string `json:"control,omitzero"` // absent when it is off
	}{true, running.IngestURL(), running.AuditviewURL(), running.ControlURL()})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}

func (f upFlags) config(s streams) (stack.Config, error) {
	level := slog.LevelInfo
	if f.demo {
		level = slog.LevelWarn
	}
	if f.level != "" {
		if err := level.UnmarshalText([]byte(f.level)); err != nil {
			return stack.Config{}, errors.New("--log-level takes debug, info, warn or error")
		}
	}
	if f.postgres == "-" {
		variables, err := config.Load[dsnVariables](dsnPrefix, nil)
		if err != nil {
			return stack.Config{}, err
		}
		if variables.Admin == "" {
			return stack.Config{}, errors.New("--postgres - takes the server from VERBATIM_ADMIN_DSN or VERBATIM_ADMIN_DSN_FILE, and neither is set")
		}
		f.postgres = variables.Admin.Reveal()
	}
	workingDir, err := os.Getwd()
	if err != nil {
		return stack.Config{}, err
	}
	c := stack.Config{
		DataDir: f.dataDir, WorkingDir: workingDir, Postgres: config.Secret(f.postgres),
		IngestAddr: f.ingest, AuditviewAddr: f.auditview, ControlAddr: f.control,
		IngestMetricsAddr: f.ingestMetrics, AuditviewMetricsAddr: f.auditviewMetrics,
		Environ: env.ToMap(os.Environ()), LogLevel: level, Log: s.err,
		Applied: func(registry *ingest.Result, admins *auditview.Result) error {
			if registry != nil {
				return printRegistry(s.err, *registry)
			}
			return printAdmins(s.err, *admins)
		},
	}
	for _, file := range []struct {
		flag, path string
		into       *[]byte
	}{{"--registry", f.registry, &c.Registry}, {"--admins", f.admins, &c.Admins}} {
		if file.path == "" {
			continue
		}
		if *file.into, err = readFile(s.in, file.path); err != nil {
			return stack.Config{}, fmt.Errorf("%s: %w", file.flag, err)
		}
	}
	return c, nil
}

// colorful tells whether out is a terminal that is not asked to stay plain.
func colorful(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}
