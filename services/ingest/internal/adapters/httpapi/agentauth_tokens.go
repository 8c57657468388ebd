package httpapi

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/services/ingest/internal/app"
)

var errGrantType = refusal.New(refusal.UnsupportedGrantType, "grant_type must be authorization_code or refresh_token")

func (a *api) token(c *gin.Context) {
	pair, err := a.issue(c.Request.Context(), bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.Tokens{
		TokenType:   httpapi.TokenType,
		AccessToken: pair.AccessToken, ExpiresIn: seconds(pair.AccessExpiresIn),
		RefreshToken: pair.RefreshToken, RefreshExpiresIn: seconds(pair.RefreshExpiresIn),
		SessionID: string(pair.SessionID), ClientAppID: pair.ClientAppID,
	})
}

func (a *api) issue(ctx context.Context, body []byte) (app.TokenPair, error) {
	grantType, err := httpapi.DecodeGrantType(body)
	if err != nil {
		return app.TokenPair{}, err
	}
	switch grantType {
	case httpapi.GrantAuthorizationCode:
		g, err := httpapi.DecodeCodeGrant(body)
		if err != nil {
			return app.TokenPair{}, err
		}
		return a.AgentAuth.Exchange(ctx, g.ClientAppID, g.Code, g.RedirectURI, g.CodeVerifier)
	case httpapi.GrantRefreshToken:
		g, err := httpapi.DecodeRefreshGrant(body)
		if err != nil {
			return app.TokenPair{}, err
		}
		return a.AgentAuth.Refresh(ctx, g.ClientAppID, g.RefreshToken)
	default:
		return app.TokenPair{}, errGrantType
	}
}

func (a *api) showSession(c *gin.Context) {
	s, err := a.AgentAuth.Session(c.Request.Context(), bearerToken(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	principal, err := s.Principal.Marshal()
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.AgentSession{
		SessionID: string(s.ID), ClientAppID: s.ClientAppID, DeviceLabel: s.DeviceLabel, Principal: principal,
		OnBehalfOf: s.OnBehalfOf, AllowedRoutes: s.AllowedRoutes, CreatedAt: httpapi.FormatTime(s.CreatedAt),
		ExpiresAt: httpapi.FormatTime(s.AccessExpiresAt), RefreshExpiresAt: httpapi.FormatTime(s.RefreshExpiresAt),
	})
}

// ownRevocation authenticates an agent that shows its access token in place of its
// refresh token.
func (a *api) ownRevocation(c *gin.Context) {
	if len(c.Request.Header.Values("Authorization")) > 0 {
		a.authenticate(c)
	}
}

func (a *api) revoke(c *gin.Context) {
	ctx, body := c.Request.Context(), bodyOf(c)
	var err error
	if _, own := c.Get(bearerKey); own {
		if len(body) > 0 {
			err = httpapi.DecodeConfirm(body)
		}
		if err == nil {
			err = a.AgentAuth.RevokeOwn(ctx, bearerOf(c))
		}
	} else {
		var g httpapi.RefreshGrant
		if g, err = httpapi.DecodeRevocation(body); err == nil {
			err = a.AgentAuth.RevokeByToken(ctx, g.ClientAppID, g.RefreshToken)
		}
	}
	a.revoked(c, err)
}

func (a *api) revokeOf(c *gin.Context) {
	err := httpapi.DecodeConfirm(bodyOf(c))
	if err == nil {
		id, ok := identity.ParseUUID(c.Param("session_id"))
		if !ok {
			a.fail(c, app.ErrNoSession)
			return
		}
		err = a.AgentAuth.RevokeOf(c.Request.Context(), clientOf(c), id)
	}
	a.revoked(c, err)
}

// revoked answers a revocation.
func (a *api) revoked(c *gin.Context, err error) {
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.Revoked{Revoked: true})
}
