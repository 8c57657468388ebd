package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/platform/httpserver"
)

// Edge is what every HTTP surface of the service does in one way: bounded bodies and
// work, answers, logs, and the one mapping from errors to answers. Safe for concurrent use.
type Edge struct{ api *api }

// NewEdge returns an edge that gives a request's work timeout.
func NewEdge(timeout time.Duration, log *slog.Logger) *Edge {
	return &Edge{newAPI(Options{RequestTimeout: timeout, Log: log})}
}

// Engine returns an engine that names its routes and answers /healthz, and the handler
// that serves it.
func (e *Edge) Engine() (*gin.Engine, http.Handler) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	_ = engine.SetTrustedProxies(nil) // nobody's address matters; nil is never malformed
	engine.Use(tellRoute, noStore)
	engine.NoRoute(func(c *gin.Context) { e.Fail(c, errNoEndpoint) })
	engine.GET("/healthz", health)
	return engine, e.api.outermost(engine)
}

// outermost gives requests an id, a line in the log and an answer after a panic.
func (a *api) outermost(h http.Handler) http.Handler {
	return httpserver.RequestID(httpserver.AccessLog(a.Log)(httpserver.Recover(a.Log, nil)(h)))
}

func health(c *gin.Context) { answer(c, http.StatusOK, map[string]string{"status": "ok"}) }

// Patience bounds one piece of work, independent of the client's.
func (e *Edge) Patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return e.api.patience(ctx)
}

// Bound gives the work for a request that has been read its own end, which a client that
// went away does not bring.
func (e *Edge) Bound(c *gin.Context) { e.api.bound(c) }

// Body reads a body of at most limit bytes for BodyOf; tooLarge is the refusal of a larger one.
func (e *Edge) Body(limit int64, tooLarge error) gin.HandlerFunc {
	return e.api.bodyUpTo(limit, tooLarge)
}

// BodyOf returns the body that Body read. It holds until the request's end.
func BodyOf(c *gin.Context) []byte { return bodyOf(c) }

// BearerToken returns the token of the one Authorization header, else "".
func BearerToken(c *gin.Context) string { return bearerToken(c) }

// Fail ends the request with the answer for err.
func (e *Edge) Fail(c *gin.Context, err error) { e.api.fail(c, err) }

// Answer writes v as JSON without HTML escapes: text goes out as it came in.
func Answer(c *gin.Context, status int, v any) { answer(c, status, v) }
