package controlapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	contract "verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/services/ingest/internal/adapters/httpapi"
	"verbatim.internal/services/ingest/internal/app"
	"verbatim.internal/services/ingest/internal/registryfile"
)

func (a *api) routes(c *gin.Context) {
	q, err := parsePage(c, resourceKey)
	if err != nil {
		a.edge.Fail(c, err)
		return
	}
	found, err := a.Control.Routes(c.Request.Context(), q.after, q.limit+1)
	list(a, c, contract.SchemaRegistryRoutes, q.limit, found, err,
		routeView, func(r app.StoredRoute) string { return r.RouteKey })
}

func (a *api) route(c *gin.Context) {
	found, err := a.Control.Route(c.Request.Context(), c.Param("route_key"))
	a.answerRoute(c, http.StatusOK, found, err)
}

func (a *api) putRoute(c *gin.Context) {
	wanted, err := registryfile.ParseRoute(c.Param("route_key"), httpapi.BodyOf(c))
	if err != nil {
		a.edge.Fail(c, err)
		return
	}
	out, err := a.Control.PutRoute(c.Request.Context(), controllerOf(c), wanted)
	a.answerRoute(c, madeOr(http.StatusOK, out.Created), out.Entry, err)
}

func (a *api) disableRoute(c *gin.Context) {
	disabled, err := a.Control.DisableRoute(c.Request.Context(), controllerOf(c), c.Param("route_key"))
	a.answerRoute(c, http.StatusOK, disabled, err)
}

func (a *api) answerRoute(c *gin.Context, status int, route app.StoredRoute, err error) {
	a.answer(c, status, contract.RegistryRouteAnswer{Route: routeView(route)}, err)
}

func routeView(r app.StoredRoute) contract.RegistryRoute {
	v := contract.RegistryRoute{
		RouteKey: r.RouteKey, Name: r.Name, Enabled: r.Enabled, AgentAccess: r.AgentAccess, Instructions: r.Instructions,
		CreatedAt: contract.FormatTime(r.CreatedAt), UpdatedAt: contract.FormatTime(r.UpdatedAt),
	}
	if r.Audience.Enabled {
		v.Audience = encode(r.Audience)
	}
	return v
}
