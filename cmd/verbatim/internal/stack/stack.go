// Package stack runs everything in one process: the database server or a
// connection to one, both services, and the relay between them in memory.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"verbatim.internal/cmd/verbatim/internal/datadir"
	"verbatim.internal/cmd/verbatim/internal/pgembed"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

// stopPatience bounds how long everything may take to end in order.
const stopPatience = 60 * time.Second

// Config says what to run.
type Config struct {
	// DataDir is the data directory. Empty means the default one.
	DataDir string
	// WorkingDir is where the default data directory is looked for.
	WorkingDir string
	// Postgres names a server to use, as a role that may create roles and
	// databases. Empty means a server of our own.
	Postgres config.Secret
	// Registry and Admins are the contents of files to apply, nil for none.
	Registry, Admins []byte
	// IngestAddr and AuditviewAddr are where the services listen, host:port.
	IngestAddr, AuditviewAddr string
	// ControlAddr is where ingest serves its registry to controllers; empty turns it off.
	ControlAddr string
	// IngestMetricsAddr and AuditviewMetricsAddr serve the metrics; empty turns them off.
	IngestMetricsAddr, AuditviewMetricsAddr string
	// Environ are the process's variables: those that begin with a service's
	// prefix set what this Config does not.
	Environ map[string]string
	// LogLevel is the services' own.
	LogLevel slog.Level
	// Log gets what happens.
	Log io.Writer
	// Applied is told what the applied files changed, before the services start:
	// it may hold tokens that are shown only once.
	Applied func(registry *ingest.Result, admins *auditview.Result) error
}

// Stack is everything running. It is safe for concurrent use.
type Stack struct {
	config      Config
	log         *slog.Logger
	dir         *datadir.Dir
	server      *pgembed.Server // nil with Config.Postgres
	connections datadir.Connections
	ingest      *ingest.Service
	auditview   *auditview.Service
	undo        []undo // what Stop does, in reverse
}

type undo struct {
	what string
	do   func(context.Context) error
}

// Start starts everything and returns when both services are ready. When it
// fails, or ctx ends, nothing is left running and nothing stands in the way of
// the next start; its error is one sentence.
func Start(ctx context.Context, c Config) (*Stack, error) {
	s := &Stack{config: c, log: telemetry.NewLogger(c.Log, c.LogLevel, "verbatim")}
	for _, step := range []func(context.Context) error{
		s.checkAddresses, s.openDataDir, s.startPostgres, s.claimServer, s.prepareDatabases, s.applyFiles, s.startServices, s.publish,
	} {
		err := step(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			if ctx.Err() != nil {
				err = errors.New("it was stopped before it was ready")
			} else if died := s.serverDied(); died != nil {
				err = died
			}
			return nil, errors.Join(err, s.Stop()) //nolint:contextcheck // what was started is ended, also when ctx has
		}
	}
	return s, nil
}

// IngestURL is where agents reach ingest.
func (s *Stack) IngestURL() string { return s.ingest.URL() }

// ControlURL is where controllers reach ingest's registry, "" when it is off.
func (s *Stack) ControlURL() string { return s.ingest.ControlURL() }

// AuditviewURL is where administrators reach auditview.
func (s *Stack) AuditviewURL() string { return s.auditview.URL() }

// ApplyRegistry applies a registry as the running ingest sees it.
func (s *Stack) ApplyRegistry(ctx context.Context, file []byte) (ingest.Result, error) {
	return ingest.Apply(ctx, secret(s.connections.Ingest), file)
}

// ApplyAdmins applies administrators as the running auditview sees them.
func (s *Stack) ApplyAdmins(ctx context.Context, file []byte) (auditview.Result, error) {
	return auditview.ApplyAdmins(ctx, secret(s.connections.Auditview), file)
}

// Wait returns nil when ctx ends, and an error when something that everything
// rests on ends before.
func (s *Stack) Wait(ctx context.Context) error {
	var died <-chan struct{}
	if s.server != nil {
		died = s.server.Done()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-died:
		return s.serverDied()
	case err := <-s.ingest.Failed():
		return fmt.Errorf("ingest failed: %w", err)
	case err := <-s.auditview.Failed():
		return fmt.Errorf("auditview failed: %w", err)
	}
}

func (s *Stack) serverDied() error {
	if s.server == nil {
		return nil
	}
	return s.server.Err()
}

// Stop ends everything in the reverse order of its start: no new requests, the
// answers in flight, the relay, auditview, the database server last. It is
// called once.
func (s *Stack) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	died := s.serverDied() != nil
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		// Without its server a service cannot end in order: that is told already.
		if err := s.undo[i].do(ctx); err != nil && !died {
			errs = append(errs, fmt.Errorf("%s did not stop in order: %w", s.undo[i].what, err))
		}
	}
	s.undo = nil
	return errors.Join(errs...)
}

func (s *Stack) later(what string, do func(context.Context) error) {
	s.undo = append(s.undo, undo{what, do})
}

// startServices starts auditview, then ingest, with the relay between them.
func (s *Stack) startServices(ctx context.Context) error {
	local := transport.NewLocal(telemetry.NewWatermillLogger(s.log))
	s.later("the relay", func(context.Context) error { return local.Close() })

	viewConfig, err := auditview.LoadConfig(s.environ("VERBATIM_AUDITVIEW_", s.connections.Auditview, s.config.AuditviewAddr, s.config.AuditviewMetricsAddr))
	if err != nil {
		return err
	}
	view, err := auditview.New(viewConfig, telemetry.NewLogger(s.config.Log, s.config.LogLevel, "auditview"), auditview.WithSubscriber(local))
	if err != nil {
		return err
	}
	if err := view.Start(ctx); err != nil {
		return err
	}
	s.later("auditview", view.Stop)
	s.auditview = view

	environ := s.environ("VERBATIM_INGEST_", s.connections.Ingest, s.config.IngestAddr, s.config.IngestMetricsAddr)
	environ["VERBATIM_INGEST_CONTROL_ADDR"] = s.config.ControlAddr
	ingestConfig, err := ingest.LoadConfig(environ)
	if err != nil {
		return err
	}
	agents, err := ingest.New(ingestConfig, telemetry.NewLogger(s.config.Log, s.config.LogLevel, "ingest"), ingest.WithPublisher(local))
	if err != nil {
		return err
	}
	if err := agents.Start(ctx); err != nil {
		return err
	}
	s.later("ingest", agents.Stop)
	s.ingest = agents
	for name, url := range map[string]string{"ingest": agents.URL(), "auditview": view.URL()} {
		if err := s.awaitReady(ctx, name, url); err != nil {
			return err
		}
	}
	s.log.Info("everything is ready", slog.String("ingest", agents.URL()), slog.String("auditview", view.URL()),
		slog.String("control", agents.ControlURL()),
		slog.String("ingest_metrics", agents.MetricsURL()), slog.String("auditview_metrics", view.MetricsURL()))
	return nil
}

// publish tells the commands beside this process how to reach its databases.
func (s *Stack) publish(context.Context) error { return s.dir.Publish(s.connections) }
