package controlapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	contract "verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/services/ingest/internal/adapters/httpapi"
	"verbatim.internal/services/ingest/internal/app"
	"verbatim.internal/services/ingest/internal/registryfile"
)

var errNoSession = refusal.New(refusal.RegistryNotFound, "there is no such session")

func (a *api) sessions(c *gin.Context) {
	q, err := parsePage(c, uuid)
	if err != nil {
		a.edge.Fail(c, err)
		return
	}
	client, err := parameter(c, "client_app_id", resourceKey)
	if err != nil {
		a.edge.Fail(c, err)
		return
	}
	found, err := a.Control.Sessions(c.Request.Context(), client, q.after, q.limit+1)
	list(a, c, contract.SchemaRegistrySessions, q.limit, found, err,
		sessionView, func(s app.StoredSession) string { return string(s.ID) })
}

func uuid(s string) (string, bool) {
	id, ok := identity.ParseUUID(s)
	return string(id), ok
}

func (a *api) session(c *gin.Context) {
	id, ok := identity.ParseUUID(c.Param("session_id"))
	if !ok {
		a.edge.Fail(c, errNoSession)
		return
	}
	found, err := a.Control.Session(c.Request.Context(), id)
	a.answerSession(c, http.StatusOK, found, "", err)
}

func (a *api) issueSession(c *gin.Context) {
	wanted, err := registryfile.ParseSession(httpapi.BodyOf(c), a.IDs.NewUUID)
	if err != nil {
		a.edge.Fail(c, err)
		return
	}
	out, err := a.Control.IssueSession(c.Request.Context(), controllerOf(c), wanted)
	a.answerSession(c, http.StatusCreated, out.Entry, out.Token, err)
}

func (a *api) revokeSession(c *gin.Context) {
	id, ok := identity.ParseUUID(c.Param("session_id"))
	if !ok {
		a.edge.Fail(c, errNoSession)
		return
	}
	revoked, err := a.Control.RevokeSession(c.Request.Context(), controllerOf(c), id)
	a.answerSession(c, http.StatusOK, revoked, "", err)
}

func (a *api) answerSession(c *gin.Context, status int, session app.StoredSession, token string, err error) {
	a.answer(c, status, contract.RegistrySessionAnswer{Session: sessionView(session), AccessToken: token}, err)
}

func sessionView(s app.StoredSession) contract.RegistrySession {
	v := contract.RegistrySession{
		SessionID: string(s.ID), ClientAppID: s.ClientAppID, DeviceLabel: s.DeviceLabel, Principal: encode(s.Principal),
		OnBehalfOf: s.OnBehalfOf, AllowedRoutes: s.AllowedRoutes, RefreshExpiresAt: contract.FormatTime(s.RefreshExpiresAt),
		CreatedAt: contract.FormatTime(s.CreatedAt), UpdatedAt: contract.FormatTime(s.UpdatedAt),
	}
	if s.RevokedAt != nil {
		at := contract.FormatTime(*s.RevokedAt)
		v.RevokedAt = &at
	}
	return v
}

func (a *api) importRuns(c *gin.Context) {
	runs, err := registryfile.ParseRuns(httpapi.BodyOf(c))
	if err != nil {
		a.edge.Fail(c, err)
		return
	}
	created, unchanged, err := a.Control.ImportRuns(c.Request.Context(), controllerOf(c), runs)
	a.answer(c, http.StatusOK, contract.RegistryRunsAnswer{Created: created, Unchanged: unchanged}, err)
}
