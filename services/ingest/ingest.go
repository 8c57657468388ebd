// Package ingest is the service that agents write to: it archives their complete
// visible conversations and tells auditview about them through a transactional
// outbox.
//
// The binary cmd/ingest and the command `verbatim up` both run it from here.
package ingest

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill/message"

	"verbatim.internal/services/ingest/internal/config"
	"verbatim.internal/services/ingest/internal/wiring"
)

// Config is the service's configuration.
type Config = config.Config

// LoadConfig reads the configuration from environment variables that begin with
// VERBATIM_INGEST_; nil means the process's own. The error names everything
// that is wrong, and no value.
func LoadConfig(environ map[string]string) (Config, error) { return config.Load(environ) }

// LoadStandaloneConfig is LoadConfig for a service whose relay uses the http
// transport: it also asks for what that needs.
func LoadStandaloneConfig(environ map[string]string) (Config, error) {
	return config.LoadStandalone(environ)
}

// Service is one running ingest.
type Service struct{ app *wiring.App }

// Option changes how a service is built.
type Option func(*options)

type options struct{ publisher message.Publisher }

// WithPublisher gives the relay a transport in process, in place of the http one.
// It must return nil from Publish only for a batch that its receiver has taken.
func WithPublisher(p message.Publisher) Option { return func(o *options) { o.publisher = p } }

// New builds a service and binds its addresses; nothing is served before Start.
// The error is one sentence for an operator.
func New(cfg Config, log *slog.Logger, opts ...Option) (*Service, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	app, err := wiring.New(cfg, log, o.publisher)
	if err != nil {
		return nil, err
	}
	return &Service{app: app}, nil
}

// Start serves agents and starts the relay. It does not wait for the database:
// a service whose database is away starts, and says so in /readyz.
func (s *Service) Start(ctx context.Context) error {
	if err := s.app.Start(ctx); err != nil {
		return fmt.Errorf("start ingest: %w", err)
	}
	return nil
}

// Stop drains: no new request is taken, requests in flight get their answer, the
// relay finishes the batches that are on their way, then the databases close.
// What the relay did not send stays in the outbox.
func (s *Service) Stop(ctx context.Context) error {
	if err := s.app.Stop(ctx); err != nil {
		return fmt.Errorf("stop ingest: %w", err)
	}
	return nil
}

// Failed gives the error when a listener of agents or controllers fails by itself.
func (s *Service) Failed() <-chan error { return s.app.Servers.Failed }

// URL returns where agents are served.
func (s *Service) URL() string { return s.app.Servers.Agents.URL() }

// ControlURL returns where the registry is served to controllers, or "" when it is off.
func (s *Service) ControlURL() string {
	if s.app.Servers.Control == nil {
		return ""
	}
	return s.app.Servers.Control.URL()
}

// MetricsURL returns where metrics are served, or "" when they are off.
func (s *Service) MetricsURL() string {
	if s.app.Servers.Metrics == nil {
		return ""
	}
	return s.app.Servers.Metrics.URL()
}
