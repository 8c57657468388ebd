// Package wiring puts auditview together. It is the only importer of fx: every
// constructor that it calls is a plain function.
package wiring

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/dig"
	"go.uber.org/fx"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview/internal/adapters/consumer"
	"verbatim.internal/services/auditview/internal/adapters/postgres"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/clock"
	"verbatim.internal/services/auditview/internal/config"
)

// Sessions of the service's role: how long a statement may wait or run.
const (
	lockTimeout      = 10 * time.Second
	statementTimeout = 30 * time.Second
	idleTimeout      = 30 * time.Second
)

// App is the built service.
type App struct {
	fx      *fx.App
	Servers Servers
}

// New builds the service and binds its addresses. subscriber nil means the internal
// HTTP listener of the configuration. The error is one sentence for an operator.
func New(cfg config.Config, log *slog.Logger, subscriber message.Subscriber) (*App, error) {
	src, err := newSource(cfg, log, subscriber)
	if err != nil {
		return nil, err
	}
	a := &App{}
	a.fx = fx.New(
		fx.NopLogger, // its errors are returned, and told in one sentence
		fx.Supply(cfg, log, src),
		fx.Provide(
			telemetry.NewRegistry,
			newDatabases,
			newReadStore,
			newProjector,
			newConsumer,
			newReader,
			newAdministrators,
			newReadiness,
			newServers,
		),
		fx.Invoke(run),
		fx.Populate(&a.Servers),
	)
	if err := a.fx.Err(); err != nil {
		return nil, dig.RootCause(err)
	}
	return a, nil
}

// Start starts the consumer, then the listeners.
func (a *App) Start(ctx context.Context) error { return a.fx.Start(ctx) }

// Stop drains in the reverse order, and closes the databases last.
func (a *App) Stop(ctx context.Context) error { return a.fx.Stop(ctx) }

// source is where batches come from: a subscriber, and the local transport behind the
// internal listener when it is ours.
type source struct {
	subscriber message.Subscriber
	local      *transport.Local
}

func newSource(cfg config.Config, log *slog.Logger, given message.Subscriber) (source, error) {
	if given != nil {
		return source{subscriber: given}, nil
	}
	if err := cfg.ValidateInternal(); err != nil {
		return source{}, err
	}
	local := transport.NewLocal(telemetry.NewWatermillLogger(log))
	return source{subscriber: local, local: local}, nil
}

// databaseOfReads and databaseOfProjection are pools of their own, so that neither
// administrators nor the relay starve the other.
type (
	databaseOfReads      struct{ *database.DB }
	databaseOfProjection struct{ *database.DB }
)

func newDatabases(lc fx.Lifecycle, cfg config.Config, log *slog.Logger) (databaseOfReads, databaseOfProjection, error) {
	open := func(name string, repeats bool) (*database.DB, error) {
		return database.Open(context.Background(), database.Config{
			DSN: cfg.DSN, MaxConns: cfg.MaxConns, ApplicationName: name, Logger: log, Repeats: repeats,
			LockTimeout: lockTimeout, StatementTimeout: statementTimeout, IdleInTransactionTimeout: idleTimeout,
		})
	}
	reads, err := open("verbatim-auditview", false)
	if err != nil {
		return databaseOfReads{}, databaseOfProjection{}, err
	}
	projection, err := open("verbatim-auditview-projection", true) // the relay sends again
	if err != nil {
		reads.Close()
		return databaseOfReads{}, databaseOfProjection{}, err
	}
	lc.Append(fx.StopHook(func() {
		projection.Close()
		reads.Close()
	}))
	return databaseOfReads{reads}, databaseOfProjection{projection}, nil
}

func newReadStore(db databaseOfReads) *postgres.Store { return postgres.New(db.DB, clock.Now) }

// stopping is set when the consumer stops: what the projector parks depends on it.
type stopping struct{ is func() bool }

func newProjector(db databaseOfProjection) (*app.Projector, *stopping) {
	s := &stopping{}
	return app.NewProjector(postgres.New(db.DB, clock.Now), func() bool { return s.is() }), s
}

func newConsumer(cfg config.Config, log *slog.Logger, reg *prometheus.Registry, src source,
	projector *app.Projector, s *stopping,
) (*consumer.Consumer, error) {
	c, err := consumer.New(src.subscriber, projector, consumer.NewMetrics(reg, clock.Now), log, cfg.DrainTimeout)
	if err != nil {
		return nil, err
	}
	s.is = c.Stopping
	return c, nil
}

func newReader(store *postgres.Store) *app.Reader { return app.NewReader(store) }

func newAdministrators(store *postgres.Store) *app.Administrators {
	return app.NewAdministrators(store, clock.Now)
}

func newReadiness(reads databaseOfReads, store *postgres.Store) readiness {
	return readiness{reads, store}
}

// run orders the start and, in reverse, the end: no batch is begun and nothing parked any
// more; what listens is drained, so that the relay's batches in flight get their answer;
// then the consumer ends.
func run(lc fx.Lifecycle, cfg config.Config, log *slog.Logger, src source, c *consumer.Consumer, servers Servers) {
	lc.Append(fx.Hook{
		OnStart: c.Start,
		OnStop: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, cfg.DrainTimeout)
			defer cancel()
			err := c.Stop(ctx)
			if src.local != nil {
				err = errors.Join(err, src.local.Close())
			}
			return err
		},
	})
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			for _, server := range servers.all() {
				server.Serve()
			}
			log.Info("auditview serves", slog.String("address", servers.Admin.Addr()))
			return nil
		},
		OnStop: func(ctx context.Context) error {
			c.Refuse()
			return servers.shutdown(ctx)
		},
	})
}
