package kit

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
	"verbatim.internal/sql"
	auditviewsql "verbatim.internal/sql/auditview"
)

// stopTimeout bounds a service's drain.
const stopTimeout = 20 * time.Second

// NoMigration leaves a database empty.
const NoMigration int64 = -1

// Options say what to start. The zero value is everything, joined in process.
type Options struct {
	// HTTP joins the services by the http transport instead of in process.
	HTTP bool
	// Control has ingest serve the registry to controllers.
	Control bool
	// IngestVersion and AuditviewVersion are the last migrations to apply: 0 all, NoMigration none.
	IngestVersion, AuditviewVersion int64
	// Registry is applied to ingest once its database has the tables; nil means NewRegistry(3).
	Registry []byte
	// IngestEnv and AuditviewEnv add to the services' environment variables.
	IngestEnv, AuditviewEnv map[string]string
}

// Deployment is both services, running. Its methods are for the test's own
// goroutine, those of the endpoints for any.
type Deployment struct {
	// Ingest and Auditview are where the services listen.
	Ingest, Auditview *Endpoint
	// Control is where ingest serves the registry to controllers; nil unless Options asked for it.
	Control *Endpoint
	// IngestDB and AuditviewDB are their databases.
	IngestDB, AuditviewDB pgtest.Database
	// Logs is all that both services have logged, at debug level.
	Logs *Logs

	t       *testing.T
	options Options
	local   *transport.Local
	token   string
	bearers map[string]string
	learned learned

	ingest    *ingest.Service
	auditview *auditview.Service
}

// Start makes databases, starts both services and stops them at the test's end.
func Start(t *testing.T, options Options) *Deployment {
	t.Helper()
	if options.Registry == nil {
		options.Registry = NewRegistry(3).Encode()
	}
	d := &Deployment{
		IngestDB:    pgtest.New(t, database.Ingest, sql.FS, options.IngestVersion),
		AuditviewDB: pgtest.New(t, database.Auditview, auditviewsql.FS, options.AuditviewVersion),
		Logs:        &Logs{},
		t:           t,
		options:     options,
		token:       rand.Text() + rand.Text(),
	}
	var err error
	d.bearers, err = bearers(options.Registry)
	require.NoError(t, err)
	if options.IngestVersion != NoMigration {
		d.Apply(options.Registry)
	}
	if options.AuditviewVersion != NoMigration {
		d.ApplyAdministrators()
	}
	d.local = transport.NewLocal(telemetry.NewWatermillLogger(d.logger("transport")))
	t.Cleanup(func() {
		d.StopIngest()
		d.StopAuditview()
		_ = d.local.Close()
		d.checkLogs()
	})
	d.StartAuditview()
	d.StartIngest()
	return d
}

// Join returns a deployment of services that run elsewhere, on migrated databases,
// once the registry and the administrators are applied. It can be spoken to, not
// stopped.
func Join(t *testing.T, ingestURL, auditviewURL string, ingestDB, auditviewDB pgtest.Database, registry []byte) *Deployment {
	t.Helper()
	d := &Deployment{
		Ingest:      NewEndpoint(t, ingestURL, IngestContract),
		Auditview:   NewEndpoint(t, auditviewURL, AuditviewContract),
		IngestDB:    ingestDB,
		AuditviewDB: auditviewDB,
		Logs:        &Logs{},
		t:           t,
	}
	var err error
	d.bearers, err = bearers(registry)
	require.NoError(t, err)
	d.Apply(registry)
	d.ApplyAdministrators()
	return d
}

// Apply applies a registry file to ingest's database, as `verbatim apply` does.
func (d *Deployment) Apply(file []byte) {
	d.t.Helper()
	_, err := ingest.Apply(d.t.Context(), config.Secret(d.IngestDB.ServiceDSN), file)
	require.NoError(d.t, err)
}

// ApplyAdministrators makes Viewer, MetadataViewer and NoPermission known.
func (d *Deployment) ApplyAdministrators() {
	d.t.Helper()
	_, err := auditview.ApplyAdmins(d.t.Context(), config.Secret(d.AuditviewDB.ServiceDSN), administrators())
	require.NoError(d.t, err)
}

// MigrateIngest applies ingest's migrations up to a version, as `migrate up` does.
func (d *Deployment) MigrateIngest(to int64) {
	d.t.Helper()
	_, err := ingest.MigrateUp(d.t.Context(), config.Secret(d.IngestDB.OwnerDSN), to)
	require.NoError(d.t, err)
}

// MigrateAuditview applies all of auditview's migrations.
func (d *Deployment) MigrateAuditview() {
	d.t.Helper()
	_, err := auditview.MigrateUp(d.t.Context(), config.Secret(d.AuditviewDB.OwnerDSN), 0)
	require.NoError(d.t, err)
}

// StartIngest starts ingest on a free port.
func (d *Deployment) StartIngest() {
	d.t.Helper()
	env := map[string]string{
		"VERBATIM_INGEST_DSN":          d.IngestDB.ServiceDSN,
		"VERBATIM_INGEST_ADDR":         "127.0.0.1:0",
		"VERBATIM_INGEST_METRICS_ADDR": "127.0.0.1:0",
	}
	if d.options.Control {
		env["VERBATIM_INGEST_CONTROL_ADDR"] = "127.0.0.1:0"
	}
	var options []ingest.Option
	if d.options.HTTP {
		env["VERBATIM_INGEST_RELAY_URL"] = d.auditview.InternalURL()
		env["VERBATIM_INGEST_RELAY_TOKEN"] = d.token
	} else {
		options = append(options, ingest.WithPublisher(d.local))
	}
	maps.Copy(env, d.options.IngestEnv)
	cfg, err := ingest.LoadConfig(env)
	require.NoError(d.t, err)
	service, err := ingest.New(cfg, d.logger("ingest"), options...)
	require.NoError(d.t, err)
	require.NoError(d.t, service.Start(d.t.Context()))
	d.ingest = service
	d.Ingest = NewEndpoint(d.t, service.URL(), IngestContract)
	if url := service.ControlURL(); url != "" {
		d.Control = NewEndpoint(d.t, url, ControlContract)
	}
}

// StopIngest drains and stops ingest, if it runs.
func (d *Deployment) StopIngest() {
	d.t.Helper()
	if d.ingest == nil {
		return
	}
	d.Ingest.Client.CloseIdleConnections()
	if d.Control != nil {
		d.Control.Client.CloseIdleConnections()
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	service := d.ingest
	d.ingest = nil
	require.NoError(d.t, service.Stop(ctx))
}

// StartAuditview starts auditview on free ports. With the http transport ingest
// has to be started after it, to learn its address.
func (d *Deployment) StartAuditview() {
	d.t.Helper()
	env := map[string]string{
		"VERBATIM_AUDITVIEW_DSN":          d.AuditviewDB.ServiceDSN,
		"VERBATIM_AUDITVIEW_ADDR":         "127.0.0.1:0",
		"VERBATIM_AUDITVIEW_METRICS_ADDR": "127.0.0.1:0",
	}
	var options []auditview.Option
	if d.options.HTTP {
		env["VERBATIM_AUDITVIEW_INTERNAL_ADDR"] = "127.0.0.1:0"
		env["VERBATIM_AUDITVIEW_INTERNAL_TOKEN"] = d.token
	} else {
		options = append(options, auditview.WithSubscriber(d.local))
	}
	maps.Copy(env, d.options.AuditviewEnv)
	cfg, err := auditview.LoadConfig(env)
	require.NoError(d.t, err)
	service, err := auditview.New(cfg, d.logger("auditview"), options...)
	require.NoError(d.t, err)
	require.NoError(d.t, service.Start(d.t.Context()))
	d.auditview = service
	d.Auditview = NewEndpoint(d.t, service.URL(), AuditviewContract)
}

// StopAuditview drains and stops auditview, if it runs.
func (d *Deployment) StopAuditview() {
	d.t.Helper()
	if d.auditview == nil {
		return
	}
	d.Auditview.Client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	service := d.auditview
	d.auditview = nil
	require.NoError(d.t, service.Stop(ctx))
}

// MetricsURLs returns where both services show their metrics.
func (d *Deployment) MetricsURLs() []string {
	return []string{d.ingest.MetricsURL(), d.auditview.MetricsURL()}
}

// Bearer returns the token of a session (by letter or id), an administrator (by name), a
// client or a controller (by kind and name, "client app"); what is none is taken for a token.
func (d *Deployment) Bearer(name string) string {
	if bearer, ok := d.bearers[name]; ok {
		return bearer
	}
	return name
}

// Secrets returns every token, code and password that the deployment was given or gave.
func (d *Deployment) Secrets() []string {
	secrets := append(d.learned.all(), d.token)
	for _, bearer := range d.bearers {
		if bearer != "" {
			secrets = append(secrets, bearer)
		}
	}
	for _, password := range pgtest.Passwords() {
		secrets = append(secrets, password)
	}
	return secrets
}

// checkLogs fails the test when a service has logged a secret or a text.
func (d *Deployment) checkLogs() {
	d.t.Helper()
	logged := d.Logs.String()
	for _, secret := range append(d.Secrets(), Canary) {
		if i := strings.Index(logged, secret); i >= 0 {
			line := logged[strings.LastIndexByte(logged[:i], '\n')+1:]
			line, _, _ = strings.Cut(line, "\n")
			d.t.Errorf("a secret or a text is in the log: %s", line)
		}
	}
}

// endpoint returns the service that a path belongs to.
func (d *Deployment) endpoint(path string) *Endpoint {
	switch {
	case strings.HasPrefix(path, "/admin"):
		return d.Auditview
	case strings.HasPrefix(path, "/control-"):
		return d.Control
	}
	return d.Ingest
}

func (d *Deployment) logger(service string) *slog.Logger {
	return telemetry.NewLogger(d.Logs, slog.LevelDebug, service)
}
