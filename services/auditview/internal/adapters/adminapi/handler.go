package adminapi

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/trace"

	"verbatim.internal/pkg/contracts/openapi"
	"verbatim.internal/pkg/platform/httpserver"
	"verbatim.internal/services/auditview/internal/app"
)

// Reader answers what administrators ask.
type Reader interface {
	Archives(ctx context.Context, limit, offset int64) (app.ArchivePage, error)
	Detail(ctx context.Context, conversationID string, after, limit int64) (app.DetailPage, error)
	Threads(ctx context.Context, limit, before int64) (app.ThreadPage, error)
	Thread(ctx context.Context, threadID, limit, offset int64) (app.ThreadDetailPage, error)
	RunTrace(ctx context.Context, threadID int64, runID string) (app.RunTrace, error)
	JobTrace(ctx context.Context, jobID string) (app.JobTrace, error)
	RegistryChanges(ctx context.Context, filter app.RegistryFilter, limit, before int64) (app.RegistryChangePage, error)
	ExecutionReader
}

// Authenticator tells whose token it is.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (app.Administrator, bool, error)
}

// Readiness reports whether the service can do its work. The report is shown as JSON.
type Readiness interface {
	Ready(ctx context.Context) (report any, ready bool)
}

// Config says what the API stands on.
type Config struct {
	Reader        Reader
	Authenticator Authenticator
	Readiness     Readiness
	Metrics       *Metrics
	Log           *slog.Logger
	// RequestTimeout bounds the work for one request, and for one page of a stream.
	RequestTimeout time.Duration
	// MaxStreams bounds the audit traces that are streamed at a time: each holds a
	// connection to the database. 1 or more.
	MaxStreams int
	// Now is the clock.
	Now func() time.Time
	// TrustedProxies are addresses and networks whose X-Forwarded-For is believed. Empty
	// means nobody's.
	TrustedProxies []string
}

type api struct {
	Config
	streams chan struct{} // a place for each
}

// New returns the API's handler. The error is about TrustedProxies.
func New(cfg Config) (http.Handler, error) {
	a := &api{Config: cfg, streams: make(chan struct{}, cfg.MaxStreams)}
	engine, err := a.engine()
	if err != nil {
		return nil, err
	}
	engine.GET("/healthz", a.health)
	engine.GET("/readyz", a.ready)
	engine.GET("/openapi.yaml", description)

	admin := engine.Group("/admin/api", a.authenticate)
	admin.GET("/conversation-audits", a.require(app.PermissionMetadata), a.list)
	admin.GET("/conversation-audits/:conversation_id", a.require(app.PermissionRead), a.detail)
	admin.GET("/threads", a.require(app.PermissionMetadata), a.threads)
	admin.GET("/threads/:thread_id", a.require(app.PermissionMetadata), a.thread)
	admin.GET("/threads/:thread_id/agent-runs/:run_id/trace", a.require(app.PermissionMetadata), a.runTrace)
	admin.GET("/runs", a.require(app.PermissionMetadata), a.executions)
	admin.GET("/usage", a.require(app.PermissionMetadata), a.usage)
	admin.GET("/registry-changes", a.require(app.PermissionMetadata), a.registryChanges)

	runs, err := a.engine()
	if err != nil {
		return nil, err
	}
	runs.UseEscapedPath, runs.UnescapePathValues = true, false
	a.runRoutes(runs)

	h := withRuns(runs, engine)
	h = httpserver.Recover(cfg.Log, http.HandlerFunc(internalError))(h)
	h = httpserver.AccessLog(cfg.Log)(h)
	return httpserver.RequestID(h), nil
}

// engine returns an engine without routes.
func (a *api) engine() (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	engine.RedirectFixedPath = false
	engine.HandleMethodNotAllowed = false
	if err := engine.SetTrustedProxies(a.TrustedProxies); err != nil {
		return nil, err
	}
	engine.Use(noStore, a.Metrics.measure, a.bound)
	engine.NoRoute(a.noRoute)
	return engine, nil
}

// noStore keeps answers out of caches, and tells the access log which route it is.
func noStore(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	c.Header("X-Content-Type-Options", "nosniff")
	if route := c.FullPath(); route != "" {
		httpserver.SetRoute(c.Request.Context(), route)
		trace.SpanFromContext(c.Request.Context()).SetName(c.Request.Method + " " + route)
	}
}

// bound ends work that takes too long: a database that answers nothing is away.
func (a *api) bound(c *gin.Context) {
	c.Set(unboundKey, c.Request.Context())
	ctx, cancel := context.WithTimeout(c.Request.Context(), a.RequestTimeout)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// noRoute answers unknown paths. Below /admin it asks for the bearer first, as everything
// there does.
func (a *api) noRoute(c *gin.Context) {
	path := c.Request.URL.Path
	if path == "/admin" || strings.HasPrefix(path, "/admin/") {
		if a.authenticate(c); c.IsAborted() {
			return
		}
	}
	fail(c, http.StatusNotFound, codeNotFound, "there is nothing here")
}

func (a *api) health(c *gin.Context) { answer(c, http.StatusOK, map[string]string{"status": "ok"}) }

func (a *api) ready(c *gin.Context) {
	report, ready := a.Readiness.Ready(c.Request.Context())
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	answer(c, status, report)
}

func description(c *gin.Context) { c.Data(http.StatusOK, "application/yaml", openapi.Auditview) }
