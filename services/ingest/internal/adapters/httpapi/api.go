// Package httpapi serves ingest's HTTP surface: the agents' archive API and the
// operational endpoints. It decodes, asks the use cases, and maps every error to
// the contract's codes in one place.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/contracts/openapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/platform/httpserver"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/services/ingest/internal/app"
)

// Options are what the surface needs.
type Options struct {
	Archives      *app.Archives
	AgentAuth     *app.AgentAuth
	Runs          *app.Runs
	Executions    *app.Executions
	Authenticator *app.Authenticator
	Clients       *app.ClientAuthenticator
	// Readiness reports whether the service can do its work, as JSON-able detail.
	Readiness func(ctx context.Context) (detail any, ready bool)
	// TrustedProxies may set X-Forwarded-For; none by default.
	TrustedProxies []string
	// RequestTimeout bounds the work for one request, in which a client that
	// went away does not cut a commit short.
	RequestTimeout time.Duration
	Log            *slog.Logger
}

// New returns the whole surface as one handler.
func New(o Options) (http.Handler, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	if err := engine.SetTrustedProxies(o.TrustedProxies); err != nil {
		return nil, err
	}
	engine.RemoteIPHeaders = []string{"X-Forwarded-For"} // a proxy that writes no other lets a client's other through
	a := newAPI(o)
	engine.Use(tellRoute, noStore)
	engine.NoRoute(func(c *gin.Context) { a.fail(c, errNoEndpoint) })
	engine.GET("/healthz", health)
	engine.GET("/readyz", a.ready)
	engine.GET("/openapi.yaml", func(c *gin.Context) { c.Data(http.StatusOK, "application/yaml", openapi.Ingest) })

	engine.POST(archivesBase+"/:conversation_id/events", a.recall, a.body, a.bound, a.append)
	agents := engine.Group(archivesBase, a.authenticate)
	agents.GET("/capabilities", a.bound, a.capabilities)
	agents.POST("", a.body, a.bound, a.create)
	agents.POST("/:conversation_id/confirm", a.body, a.bound, a.confirm)
	a.agentAuthRoutes(engine)
	a.runRoutes(engine)

	return a.outermost(a.withExecutions(engine)), nil
}

const archivesBase = "/agent-api/v1/conversation-audits"

type api struct {
	Options
	large *semaphore.Weighted // bytes of large bodies
}

func newAPI(o Options) *api { return &api{o, semaphore.NewWeighted(largeBodies)} }

// tellRoute names the route, never the path, to the access log and the trace.
func tellRoute(c *gin.Context) {
	ctx := c.Request.Context()
	httpserver.SetRoute(ctx, c.FullPath())
	ctx = telemetry.ExtractTrace(ctx, c.GetHeader("traceparent"))
	ctx, span := otel.Tracer("verbatim/ingest").Start(ctx, c.Request.Method+" "+c.FullPath(), trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

func noStore(c *gin.Context) {
	c.Header("X-Content-Type-Options", "nosniff")
	if path := c.Request.URL.Path; strings.HasPrefix(path, "/agent-") || strings.HasPrefix(path, "/control-") || strings.HasPrefix(path, executionsBase) {
		c.Header("Cache-Control", "no-store")
	}
}

// patience bounds one piece of work, independent of the client's: a client that
// goes away does not cut a commit short, and one that sends slowly loses nothing of it.
func (a *api) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), a.RequestTimeout)
}

// bound gives the work for a request that has been read its own end.
func (a *api) bound(c *gin.Context) {
	ctx, cancel := a.patience(c.Request.Context())
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

const bearerKey = "bearer"

// bearerToken is that of the one Authorization header, and of nothing else.
func bearerToken(c *gin.Context) string {
	if values := c.Request.Header.Values("Authorization"); len(values) == 1 {
		if scheme, token, ok := strings.Cut(values[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			return token
		}
	}
	return ""
}

func (a *api) authenticate(c *gin.Context) {
	ctx, cancel := a.patience(c.Request.Context())
	defer cancel()
	bearer, err := a.Authenticator.Authenticate(ctx, bearerToken(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	c.Set(bearerKey, bearer)
}

const recalledKey = "recalled"

// recall lets a bearer pass that was authenticated before; all others are authenticated.
func (a *api) recall(c *gin.Context) {
	if bearer, ok := a.Authenticator.Recall(bearerToken(c)); ok {
		c.Set(recalledKey, bearer)
		return
	}
	a.authenticate(c)
}

func bearerOf(c *gin.Context) identity.Bearer {
	b, _ := c.MustGet(bearerKey).(identity.Bearer)
	return b
}

func (a *api) ready(c *gin.Context) {
	detail, ready := a.Readiness(c.Request.Context())
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	answer(c, status, detail)
}

// answer writes v as JSON without HTML escapes: text goes out as it came in.
func answer(c *gin.Context, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		c.Data(http.StatusInternalServerError, "application/json",
			[]byte(`{"error":"`+httpapi.CodeInternal+`","message":"the answer cannot be written"}`))
		return
	}
	c.Data(status, "application/json", body)
}
