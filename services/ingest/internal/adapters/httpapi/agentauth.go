package httpapi

import (
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/services/ingest/internal/app"
)

var errAuthTooLarge = refusal.New(refusal.RequestLimit, "a request body of Agent Auth has at most 64 KiB")

// agentAuthRoutes serves Agent Auth v1.
func (a *api) agentAuthRoutes(engine *gin.Engine) {
	auth := engine.Group("/agent-auth/v1")
	body := a.bodyUpTo(httpapi.MaxAuthBytes, errAuthTooLarge)
	auth.POST("/authorizations", body, a.bound, a.ask)
	auth.GET("/authorizations/:authorization_id", a.authenticateClient, a.bound, a.showAuthorization)
	auth.POST("/authorizations/:authorization_id/approve", a.authenticateClient, body, a.bound, a.approve)
	auth.POST("/authorizations/:authorization_id/deny", a.authenticateClient, body, a.bound, a.deny)
	auth.POST("/token", noCache, body, a.bound, a.token)
	auth.GET("/session", a.bound, a.showSession)
	auth.POST("/revoke", a.ownRevocation, body, a.bound, a.revoke)
	auth.POST("/sessions/:session_id/revoke", a.authenticateClient, body, a.bound, a.revokeOf)
}

// noCache is what OAuth asks of a token endpoint, for caches of HTTP/1.0.
func noCache(c *gin.Context) { c.Header("Pragma", "no-cache") }

const clientKey = "client"

// authenticateClient is for a client's own backend.
func (a *api) authenticateClient(c *gin.Context) {
	ctx, cancel := a.patience(c.Request.Context())
	defer cancel()
	appID, err := a.Clients.Authenticate(ctx, bearerToken(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	c.Set(clientKey, appID)
}

func clientOf(c *gin.Context) string {
	appID, _ := c.MustGet(clientKey).(string)
	return appID
}

func (a *api) ask(c *gin.Context) {
	var dto httpapi.AuthorizationRequest
	if err := httpapi.Decode(bodyOf(c), &dto); err != nil {
		a.fail(c, err)
		return
	}
	request, err := authorization.NewRequest(authorization.Fields{
		ClientAppID: dto.ClientAppID, RedirectURI: dto.RedirectURI, State: dto.State, RequestedRoutes: dto.RequestedRoutes,
		DeviceLabel: dto.DeviceLabel, CodeChallenge: dto.CodeChallenge, CodeChallengeMethod: dto.CodeChallengeMethod,
	})
	if err != nil {
		a.fail(c, err)
		return
	}
	address, _ := netip.ParseAddr(c.ClientIP()) // what is none belongs to those who cannot be told apart
	opened, err := a.AgentAuth.Ask(c.Request.Context(), request, address)
	var limited *app.RateLimitError
	if errors.As(err, &limited) {
		c.Header("Retry-After", strconv.FormatInt(seconds(limited.After+time.Second-1), 10))
	}
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusCreated, httpapi.AuthorizationOpened{
		AuthorizationID: string(opened.ID), AuthorizationURL: opened.URL, ExpiresIn: seconds(opened.ExpiresIn),
	})
}

// seconds are those of d that are full.
func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// authorizationID is asked for after the body: what breaks the schema is named first.
func authorizationID(c *gin.Context) (identity.UUID, error) {
	id, ok := identity.ParseUUID(c.Param("authorization_id"))
	if !ok {
		return "", authorization.ErrNotFound
	}
	return id, nil
}

func (a *api) showAuthorization(c *gin.Context) {
	id, err := authorizationID(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	shown, err := a.AgentAuth.Authorization(c.Request.Context(), clientOf(c), id)
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.Authorization{
		AuthorizationID: string(shown.ID),
		Client:          httpapi.AuthorizationClient{AppID: shown.ClientAppID, Name: shown.ClientName},
		Device:          httpapi.AuthorizationDevice{Name: shown.DeviceLabel},
		RequestedRoutes: shown.RequestedRoutes, Status: string(shown.Status), ExpiresAt: httpapi.FormatTime(shown.ExpiresAt),
	})
}

func (a *api) approve(c *gin.Context) {
	grant, err := decodeGrant(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	id, err := authorizationID(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	redirect, err := a.AgentAuth.Approve(c.Request.Context(), clientOf(c), id, grant)
	a.redirect(c, redirect, err)
}

func decodeGrant(body []byte) (authorization.Grant, error) {
	dto, err := httpapi.DecodeApproval(body)
	if err != nil {
		return authorization.Grant{}, err
	}
	p := identity.Principal{ID: dto.Principal.ID, Roles: *dto.Principal.Roles}
	for _, value := range []struct{ from, to *string }{
		{dto.Principal.Tenant, &p.Tenant}, {dto.Principal.Audience, &p.Audience}, {dto.Principal.Channel, &p.Channel},
	} {
		if value.from != nil {
			*value.to = *value.from
		}
	}
	return authorization.NewGrant(p, dto.OnBehalfOf, dto.AllowedRoutes)
}

func (a *api) deny(c *gin.Context) {
	err := httpapi.DecodeConfirm(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	id, err := authorizationID(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	redirect, err := a.AgentAuth.Deny(c.Request.Context(), clientOf(c), id)
	a.redirect(c, redirect, err)
}

// redirect answers a decision.
func (a *api) redirect(c *gin.Context, uri string, err error) {
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.AuthorizationRedirect{RedirectURI: uri})
}
