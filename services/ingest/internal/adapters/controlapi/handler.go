// Package controlapi serves the registry to programs that may change it. It has a
// listener of its own: where agents are served, none of its paths exist. Bodies are the
// entries of the registry file; they go through the file's validator and its transaction.
//
// No answer but the one to its generation holds a token, and no log a body.
package controlapi

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	contract "verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/contracts/openapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/services/ingest/internal/adapters/httpapi"
	"verbatim.internal/services/ingest/internal/app"
)

// Options are what the surface needs.
type Options struct {
	Control *app.Control
	IDs     app.IDs
	// RequestTimeout bounds the work for one request, in which a client that went away
	// does not cut a commit short.
	RequestTimeout time.Duration
	Log            *slog.Logger
}

type api struct {
	Options
	edge *httpapi.Edge
}

var errTooLarge = refusal.New(refusal.RequestLimit, "a request body has at most 2 MiB")

// New returns the whole surface as one handler.
func New(o Options) http.Handler {
	a := &api{o, httpapi.NewEdge(o.RequestTimeout, o.Log)}
	engine, handler := a.edge.Engine()
	engine.GET("/openapi.yaml", func(c *gin.Context) { c.Data(http.StatusOK, "application/yaml", openapi.Control) })
	control := engine.Group("/control-api/v1", a.authenticate)

	body := a.edge.Body(contract.MaxEnvelopeBytes, errTooLarge)
	read := func(path string, answer gin.HandlerFunc) { control.GET(path, a.edge.Bound, answer) }
	put := func(path string, answer gin.HandlerFunc) { control.PUT(path, body, a.edge.Bound, answer) }
	post := func(path string, answer gin.HandlerFunc) { control.POST(path, body, a.edge.Bound, answer) }

	read("/clients", a.clients)
	read("/clients/:app_id", a.named("app_id", errNoClient, a.client))
	put("/clients/:app_id", a.putClient)
	post("/clients/:app_id/disable", a.empty(a.named("app_id", errNoClient, a.disableClient)))
	post("/clients/:app_id/token", a.empty(a.named("app_id", errNoClient, a.rotateClientToken)))

	read("/routes", a.routes)
	read("/routes/:route_key", a.named("route_key", errNoRoute, a.route))
	put("/routes/:route_key", a.putRoute)
	post("/routes/:route_key/disable", a.empty(a.named("route_key", errNoRoute, a.disableRoute)))

	read("/sessions", a.sessions)
	read("/sessions/:session_id", a.session)
	post("/sessions", a.issueSession)
	post("/sessions/:session_id/revoke", a.empty(a.revokeSession))

	post("/runs", a.importRuns)
	return handler
}

const controllerKey = "controller"

// authenticate lets controllers through that may change the registry.
func (a *api) authenticate(c *gin.Context) {
	ctx, cancel := a.edge.Patience(c.Request.Context())
	defer cancel()
	controller, err := a.Control.Authenticate(ctx, httpapi.BearerToken(c))
	if err != nil {
		a.edge.Fail(c, err)
		return
	}
	c.Set(controllerKey, controller)
}

func controllerOf(c *gin.Context) app.Controller {
	controller, _ := c.MustGet(controllerKey).(app.Controller)
	return controller
}

// empty answers requests whose body is exactly {}.
func (a *api) empty(answer gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := contract.Decode(httpapi.BodyOf(c), &struct{}{}); err != nil {
			a.edge.Fail(c, err)
			return
		}
		answer(c)
	}
}

var (
	errNoClient = refusal.New(refusal.RegistryNotFound, "there is no such client")
	errNoRoute  = refusal.New(refusal.RegistryNotFound, "there is no such route")
)

// named answers requests whose path names something by a key; what no key can be is
// missing, and PostgreSQL, which has no text for some of it, is not asked.
func (a *api) named(parameter string, missing error, answer gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if !identity.IsResourceKey(c.Param(parameter)) {
			a.edge.Fail(c, missing)
			return
		}
		answer(c)
	}
}

// answer writes v, or what err says.
func (a *api) answer(c *gin.Context, status int, v any, err error) {
	if err != nil {
		a.edge.Fail(c, err)
		return
	}
	httpapi.Answer(c, status, v)
}

// madeOr is 201 for what was created.
func madeOr(status int, created bool) int {
	if created {
		return http.StatusCreated
	}
	return status
}
