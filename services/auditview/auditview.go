// Package auditview is the service that administrators read from: it projects ingest's
// messages into a read model of its own and serves it, word for word.
//
// The binary cmd/auditview and the command `verbatim up` both run it from here.
package auditview

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill/message"

	"verbatim.internal/pkg/platform/httpserver"
	"verbatim.internal/services/auditview/internal/config"
	"verbatim.internal/services/auditview/internal/wiring"
)

// Config is the service's configuration.
type Config = config.Config

// LoadConfig reads the configuration from environment variables that begin with
// VERBATIM_AUDITVIEW_; nil means the process's own. The error names everything that is
// wrong, and no value.
func LoadConfig(environ map[string]string) (Config, error) { return config.Load(environ) }

// Service is one running auditview.
type Service struct {
	app    *wiring.App
	failed chan error
}

// Option changes how a service is built.
type Option func(*options)

type options struct{ subscriber message.Subscriber }

// WithSubscriber gives the consumer a transport in process, in place of the internal
// HTTP listener. The service does not close it.
func WithSubscriber(s message.Subscriber) Option { return func(o *options) { o.subscriber = s } }

// New builds a service and binds its addresses; nothing is served before Start. The
// error is one sentence for an operator.
func New(cfg Config, log *slog.Logger, opts ...Option) (*Service, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	app, err := wiring.New(cfg, log, o.subscriber)
	if err != nil {
		return nil, err
	}
	return &Service{app: app, failed: make(chan error, 1)}, nil
}

// Start receives batches and serves administrators. It does not wait for the database: a
// service whose database is away starts, and says so in /readyz.
func (s *Service) Start(ctx context.Context) error {
	if err := s.app.Start(ctx); err != nil {
		return fmt.Errorf("start auditview: %w", err)
	}
	for _, server := range []*httpserver.Server{s.app.Servers.Admin, s.app.Servers.Internal} {
		if server != nil {
			go s.watch(server)
		}
	}
	return nil
}

func (s *Service) watch(server *httpserver.Server) {
	if err, failed := <-server.Failed(); failed {
		select {
		case s.failed <- err:
		default: // one failure is enough to end the service
		}
	}
}

// Stop drains: no new request or batch is taken, those in flight get their answer, then
// the database closes. What was not acknowledged, ingest has still.
func (s *Service) Stop(ctx context.Context) error {
	if err := s.app.Stop(ctx); err != nil {
		return fmt.Errorf("stop auditview: %w", err)
	}
	return nil
}

// Failed gives the error when a listener fails by itself.
func (s *Service) Failed() <-chan error { return s.failed }

// URL returns where administrators are served.
func (s *Service) URL() string { return s.app.Servers.Admin.URL() }

// InternalURL returns where ingest's relay is received, or "" with a transport in process.
func (s *Service) InternalURL() string { return urlOf(s.app.Servers.Internal) }

// MetricsURL returns where metrics are served, or "" when they are off.
func (s *Service) MetricsURL() string { return urlOf(s.app.Servers.Metrics) }

func urlOf(server *httpserver.Server) string {
	if server == nil {
		return ""
	}
	return server.URL()
}
