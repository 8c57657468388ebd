// Package wiring puts ingest together. It is the only importer of fx: every
// constructor it calls is a plain function.
package wiring

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/dig"
	"go.uber.org/fx"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/httpserver"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest/internal/adapters/httpapi"
	"verbatim.internal/services/ingest/internal/adapters/outbox"
	"verbatim.internal/services/ingest/internal/adapters/postgres"
	"verbatim.internal/services/ingest/internal/adapters/system"
	"verbatim.internal/services/ingest/internal/app"
	"verbatim.internal/services/ingest/internal/config"
)

// Sessions of the service's roles: how long a statement may wait or run.
const (
	lockTimeout      = 5 * time.Second
	statementTimeout = 30 * time.Second
	idleTimeout      = 30 * time.Second
	relayConns       = 4
	operationsConns  = 4
	controlConns     = 4
	authConns        = 4
	stopTimeout      = 70 * time.Second
)

// Servers are the listeners, bound when the app is built.
type Servers struct {
	Agents  *httpserver.Server
	Control *httpserver.Server // nil when off
	Metrics *httpserver.Server // nil when off
	// Failed gives the error when one that serves requests fails by itself.
	Failed chan error
}

// there returns those listeners that are on.
func there(servers ...*httpserver.Server) []*httpserver.Server {
	return slices.DeleteFunc(servers, func(s *httpserver.Server) bool { return s == nil })
}

func (s Servers) serve() {
	for _, server := range there(s.Agents, s.Control) {
		server.Serve()
		go s.watch(server)
	}
	for _, server := range there(s.Metrics) {
		server.Serve()
	}
}

// watch returns when the listener ends.
func (s Servers) watch(server *httpserver.Server) {
	for err := range server.Failed() {
		s.Failed <- err
	}
}

// shutdown drains those that serve requests at once; metrics are there until it is done.
func (s Servers) shutdown(ctx context.Context) error {
	serving := there(s.Agents, s.Control)
	errs := make([]error, len(serving))
	var draining sync.WaitGroup
	for i, server := range serving {
		draining.Go(func() { errs[i] = server.Shutdown(ctx) })
	}
	draining.Wait()
	for _, server := range there(s.Metrics) {
		errs = append(errs, server.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// App is the whole service.
type App struct {
	fx      *fx.App
	Servers Servers
}

// Start starts the parts in their order.
func (a *App) Start(ctx context.Context) error { return a.fx.Start(ctx) }

// Stop ends the service; see run for the order.
func (a *App) Stop(ctx context.Context) error { return a.fx.Stop(ctx) }

// New returns the service, built but not started. publisher nil means the http
// transport of the configuration. The error is the part's own that failed.
func New(cfg config.Config, log *slog.Logger, publisher message.Publisher) (*App, error) {
	a := &App{}
	a.fx = fx.New(
		fx.NopLogger, // its errors are returned, and told in one sentence
		fx.StopTimeout(stopTimeout),
		fx.Supply(cfg, log),
		fx.Provide(
			telemetry.NewRegistry,
			func(r *prometheus.Registry) *outbox.Metrics { return outbox.NewMetrics(r) },
			func() (message.Publisher, error) { return newPublisher(cfg, log, publisher) },
			newDatabases, newSchema, newStore, newArchives, newAuthenticator, newClientAuthenticator,
			newAgentAuth, newRuns, newExecutions, newRelay, newServers,
		),
		fx.Invoke(run),
		fx.Populate(&a.Servers),
	)
	if err := a.fx.Err(); err != nil {
		return nil, dig.RootCause(err)
	}
	return a, nil
}

func newPublisher(cfg config.Config, log *slog.Logger, given message.Publisher) (message.Publisher, error) {
	if given != nil {
		return given, nil
	}
	if err := cfg.ValidateRelay(); err != nil {
		return nil, err
	}
	return transport.NewHTTPPublisher(transport.HTTPPublisherConfig{
		URL: cfg.RelayURL, Token: cfg.RelayToken, CAFile: cfg.RelayCAFile,
	}, telemetry.NewWatermillLogger(log))
}

// databases are separate pools, so that none starves another: writes may wait for
// locks, the relay for its receiver; who is asking, and whether the service is
// well, is answered meanwhile.
type databases struct {
	requests   *database.DB // writes of archives
	operations *database.DB // authentication, capabilities, readiness, reads of the registry
	control    *database.DB // changes of the registry
	auth       *database.DB // Agent Auth: anybody may ask, and a revocation must not queue behind appends
	relay      *database.DB
}

func newDatabases(lc fx.Lifecycle, cfg config.Config, log *slog.Logger) (databases, error) {
	var d databases
	var opened []*database.DB
	for _, pool := range []struct {
		name  string
		conns int32
		async bool
		into  **database.DB
	}{
		{"verbatim-ingest", cfg.MaxConns, false, &d.requests},
		{"verbatim-ingest-operations", operationsConns, false, &d.operations},
		{"verbatim-ingest-control", controlConns, false, &d.control},
		{"verbatim-ingest-auth", authConns, false, &d.auth},
		// The relay only deletes rows that were acknowledged: at worst they are sent again. What
		// fails, it does again.
		{"verbatim-ingest-relay", relayConns, true, &d.relay},
	} {
		db, err := database.Open(context.Background(), database.Config{
			DSN: cfg.DSN, MaxConns: pool.conns, ApplicationName: pool.name, Logger: log, AsyncCommit: pool.async, Repeats: pool.async,
			LockTimeout: lockTimeout, StatementTimeout: statementTimeout, IdleInTransactionTimeout: idleTimeout,
		})
		if err != nil {
			for _, db := range opened {
				db.Close()
			}
			return databases{}, err
		}
		*pool.into, opened = db, append(opened, db)
	}
	lc.Append(fx.StopHook(func() {
		for _, db := range opened {
			db.Close()
		}
	}))
	return d, nil
}

func newSchema(db databases) *postgres.Schema {
	return postgres.NewSchema(db.operations.Pool, system.Clock{})
}

func newStore(db databases, schema *postgres.Schema, relay *relay) *postgres.UnitOfWork {
	return postgres.NewUnitOfWork(db.requests.Pool, schema, relay.waker)
}

func newArchives(store *postgres.UnitOfWork, schema *postgres.Schema) *app.Archives {
	return app.NewArchives(store, store, schema, system.Clock{}, system.IDs{})
}

func newAuthenticator(db databases) *app.Authenticator {
	return app.NewAuthenticator(postgres.NewSessions(db.operations.Pool), system.Clock{})
}

// useCases are what the agents' surface serves.
type useCases struct {
	fx.In
	Archives      *app.Archives
	AgentAuth     *app.AgentAuth
	Runs          *app.Runs
	Executions    *app.Executions
	Authenticator *app.Authenticator
	Clients       *app.ClientAuthenticator
}

func newServers(cfg config.Config, log *slog.Logger, reg *prometheus.Registry, db databases, schema *postgres.Schema,
	uses useCases, relay *relay,
) (Servers, error) {
	handler, err := httpapi.New(httpapi.Options{
		Archives: uses.Archives, AgentAuth: uses.AgentAuth, Runs: uses.Runs, Executions: uses.Executions,
		Authenticator: uses.Authenticator, Clients: uses.Clients, Readiness: readiness(db, schema, relay),
		TrustedProxies: cfg.TrustedProxies, RequestTimeout: cfg.RequestTimeout, Log: log,
	})
	if err != nil {
		return Servers{}, errors.New(config.Prefix + "TRUSTED_PROXIES takes addresses and networks")
	}
	s := Servers{Failed: make(chan error, 2)}
	limits := httpserver.Defaults()
	limits.DrainTimeout = cfg.DrainTimeout
	for _, l := range []struct {
		name, addr string
		handler    http.Handler
		into       **httpserver.Server
	}{
		{"ingest", cfg.Addr, handler, &s.Agents},
		{"ingest's control API", cfg.ControlAddr, newControl(cfg, log, db, relay), &s.Control},
		{"ingest's metrics", cfg.MetricsAddr, telemetry.MetricsHandler(reg), &s.Metrics},
	} {
		if l.addr == "" {
			continue
		}
		limits.Name, limits.Addr = l.name, l.addr
		server, err := httpserver.Listen(limits, l.handler, log)
		if err != nil {
			_ = s.shutdown(context.Background())
			return Servers{}, err
		}
		*l.into = server
	}
	return s, nil
}

// run orders the start and, in reverse, the end: requests are drained first, then
// the relay finishes the batches that are on their way; databases close last. What
// is not sent by then stays in the outbox.
func run(lc fx.Lifecycle, relay *relay, servers Servers, log *slog.Logger) {
	lc.Append(fx.Hook{OnStart: relay.start, OnStop: relay.stop})
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			servers.serve()
			log.Info("ingest serves", slog.String("address", servers.Agents.Addr()))
			if servers.Control != nil {
				log.Info("ingest serves controllers", slog.String("address", servers.Control.Addr()))
			}
			return nil
		},
		OnStop: servers.shutdown,
	})
}
