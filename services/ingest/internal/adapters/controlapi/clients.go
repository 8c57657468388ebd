package controlapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	contract "verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/adapters/httpapi"
	"verbatim.internal/services/ingest/internal/app"
	"verbatim.internal/services/ingest/internal/registryfile"
)

func (a *api) clients(c *gin.Context) {
	q, err := parsePage(c, resourceKey)
	if err != nil {
		a.edge.Fail(c, err)
		return
	}
	found, err := a.Control.Clients(c.Request.Context(), q.after, q.limit+1)
	list(a, c, contract.SchemaRegistryClients, q.limit, found, err,
		clientView, func(c app.StoredClient) string { return c.AppID })
}

func (a *api) client(c *gin.Context) {
	found, err := a.Control.Client(c.Request.Context(), c.Param("app_id"))
	a.answerClient(c, http.StatusOK, found, "", err)
}

func (a *api) putClient(c *gin.Context) {
	wanted, err := registryfile.ParseClient(c.Param("app_id"), httpapi.BodyOf(c))
	if err != nil {
		a.edge.Fail(c, err)
		return
	}
	out, err := a.Control.PutClient(c.Request.Context(), controllerOf(c), wanted)
	a.answerClient(c, madeOr(http.StatusOK, out.Created), out.Entry, out.Token, err)
}

func (a *api) disableClient(c *gin.Context) {
	disabled, err := a.Control.DisableClient(c.Request.Context(), controllerOf(c), c.Param("app_id"))
	a.answerClient(c, http.StatusOK, disabled, "", err)
}

func (a *api) rotateClientToken(c *gin.Context) {
	token, err := a.Control.RotateClientToken(c.Request.Context(), controllerOf(c), c.Param("app_id"))
	a.answer(c, http.StatusOK, contract.RegistryTokenAnswer{Token: token}, err)
}

func (a *api) answerClient(c *gin.Context, status int, client app.StoredClient, token string, err error) {
	a.answer(c, status, contract.RegistryClientAnswer{Client: clientView(client), Token: token}, err)
}

func clientView(c app.StoredClient) contract.RegistryClient {
	return contract.RegistryClient{
		AppID: c.AppID, Name: c.Name, AgentAuthorizeURL: c.AuthorizeURL, AllowedRoutes: c.AllowedRoutes, Enabled: c.Enabled,
		CreatedAt: contract.FormatTime(c.CreatedAt), UpdatedAt: contract.FormatTime(c.UpdatedAt),
	}
}

func resourceKey(s string) (string, bool) { return s, identity.IsResourceKey(s) }
