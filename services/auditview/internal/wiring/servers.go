package wiring

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"verbatim.internal/pkg/platform/httpserver"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview/internal/adapters/adminapi"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/clock"
	"verbatim.internal/services/auditview/internal/config"
)

// maxBatch bounds the body of one batch, in bytes: 4 MiB of text, escaped, and its events.
const maxBatch = 64 << 20

// Servers are the listeners, bound when the service is built.
type Servers struct {
	Admin    *httpserver.Server
	Internal *httpserver.Server // nil with a transport in process
	Metrics  *httpserver.Server // nil when off
}

// all returns the listeners that there are, in the order of their draining.
func (s Servers) all() []*httpserver.Server {
	var all []*httpserver.Server
	for _, server := range []*httpserver.Server{s.Internal, s.Admin, s.Metrics} {
		if server != nil {
			all = append(all, server)
		}
	}
	return all
}

func (s Servers) shutdown(ctx context.Context) error {
	var errs []error
	for _, server := range s.all() {
		errs = append(errs, server.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

func newServers(cfg config.Config, log *slog.Logger, reg *prometheus.Registry, source source,
	reader *app.Reader, administrators *app.Administrators, ready readiness,
) (servers Servers, err error) {
	defer func() {
		if err != nil { // what is bound already is released
			err = errors.Join(err, servers.shutdown(context.Background()))
			servers = Servers{}
		}
	}()
	admin, err := adminapi.New(adminapi.Config{
		Reader: reader, Authenticator: administrators, Readiness: ready,
		Metrics: adminapi.NewMetrics(reg, clock.Now), Log: log,
		RequestTimeout: cfg.RequestTimeout, TrustedProxies: cfg.TrustedProxies,
		MaxStreams: max(1, int(cfg.MaxConns)/2), Now: clock.Now,
	})
	if err != nil {
		return servers, errors.New(config.Prefix + "TRUSTED_PROXIES takes addresses and networks")
	}
	limits := httpserver.Defaults()
	limits.DrainTimeout = cfg.DrainTimeout
	limits.Name, limits.Addr = "auditview", cfg.Addr
	if servers.Admin, err = httpserver.Listen(limits, otelhttp.NewHandler(admin, "auditview"), log); err != nil {
		return servers, err
	}
	if source.local != nil {
		relay := transport.NewHTTPHandler(source.local, cfg.InternalToken, maxBatch)
		relay = httpserver.RequestID(httpserver.Recover(log, nil)(relay))
		internal := limits
		internal.Name, internal.Addr = "auditview's internal listener", cfg.InternalAddr
		internal.TLSCertFile, internal.TLSKeyFile = cfg.InternalTLSCertFile, cfg.InternalTLSKeyFile
		if servers.Internal, err = httpserver.Listen(internal, relay, log); err != nil {
			return servers, err
		}
	}
	if cfg.MetricsAddr != "" {
		limits.Name, limits.Addr = "auditview's metrics", cfg.MetricsAddr
		if servers.Metrics, err = httpserver.Listen(limits, telemetry.MetricsHandler(reg), log); err != nil {
			return servers, err
		}
	}
	return servers, nil
}
