package httpapi

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5/pgconn"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/httpserver"
	"verbatim.internal/services/ingest/internal/app"
)

var (
	errNoEndpoint = errors.New("no such endpoint")
	errEncoding   = errors.New("the body must not be encoded")
	errTooLarge   = refusal.New(refusal.Limit, "a request body has at most 2 MiB")
)

var statuses = map[refusal.Code]int{
	refusal.InvalidRequest:          http.StatusBadRequest,
	refusal.AuthorizationInvalid:    http.StatusForbidden,
	refusal.NotFound:                http.StatusNotFound,
	refusal.NotReady:                http.StatusConflict,
	refusal.Conflict:                http.StatusConflict,
	refusal.Limit:                   http.StatusRequestEntityTooLarge,
	refusal.Unavailable:             http.StatusServiceUnavailable,
	refusal.CrossBindingUnavailable: http.StatusServiceUnavailable,

	refusal.InvalidClient:         http.StatusBadRequest,
	refusal.InvalidGrant:          http.StatusBadRequest,
	refusal.UnsupportedGrantType:  http.StatusBadRequest,
	refusal.RateLimited:           http.StatusTooManyRequests,
	refusal.AuthorizationNotFound: http.StatusNotFound,
	refusal.AuthorizationDecided:  http.StatusConflict,
	refusal.AuthorizationExpired:  http.StatusGone,
	refusal.SessionNotFound:       http.StatusNotFound,
	refusal.RequestLimit:          http.StatusRequestEntityTooLarge,
	refusal.AgentAuthUnavailable:  http.StatusServiceUnavailable,

	refusal.RouteNotAllowed:          http.StatusForbidden,
	refusal.TurnConflict:             http.StatusConflict,
	refusal.RunNotFound:              http.StatusNotFound,
	refusal.RunCompletionConflict:    http.StatusConflict,
	refusal.AssistantMessageConflict: http.StatusConflict,
	refusal.TraceEventConflict:       http.StatusConflict,
	refusal.RunLimit:                 http.StatusRequestEntityTooLarge,
	refusal.RunsUnavailable:          http.StatusServiceUnavailable,
	refusal.RunConflict:              http.StatusConflict,

	refusal.RegistryNotFound:    http.StatusNotFound,
	refusal.RegistryConflict:    http.StatusConflict,
	refusal.RegistryUnavailable: http.StatusServiceUnavailable,
}

// fail ends the request with the answer for err: the one mapping from errors to
// HTTP. What is not known becomes a 500 without detail.
func (a *api) fail(c *gin.Context, err error) {
	status, body := a.describe(c, err)
	switch status {
	case http.StatusUnauthorized:
		c.Header("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		if refusal.CodeOf(err) == "" { // a missing migration does not come by waiting
			c.Header("Retry-After", "1")
		}
	}
	c.Abort()
	answer(c, status, body)
}

func (a *api) describe(c *gin.Context, err error) (int, httpapi.Error) {
	var refused *refusal.Error
	switch {
	case errors.As(err, &refused):
		return statuses[refused.Code], httpapi.Error{Code: string(refused.Code), Message: refused.Message}
	case errors.Is(err, httpapi.ErrInvalid):
		return http.StatusBadRequest, httpapi.Error{Code: string(refusal.InvalidRequest), Message: httpapi.ErrInvalid.Error()}
	case errors.Is(err, app.ErrUnauthorized):
		return http.StatusUnauthorized, httpapi.Error{Code: httpapi.CodeUnauthorized, Message: app.ErrUnauthorized.Error()}
	case errors.Is(err, app.ErrForbidden):
		return http.StatusForbidden, httpapi.Error{Code: httpapi.CodeForbidden, Message: app.ErrForbidden.Error()}
	case errors.Is(err, errNoEndpoint):
		return http.StatusNotFound, httpapi.Error{Code: httpapi.CodeNotFound, Message: errNoEndpoint.Error()}
	case errors.Is(err, errEncoding):
		return http.StatusUnsupportedMediaType, httpapi.Error{Code: httpapi.CodeUnsupportedMediaType, Message: errEncoding.Error()}
	}
	class := database.Classify(err)
	a.log(c, err, class)
	if class == database.Transient || class == database.Serialization || isUnmigrated(err) {
		return http.StatusServiceUnavailable, httpapi.Error{
			Code: string(refusal.Unavailable), Message: "the archive store cannot be reached right now; repeat the request unchanged",
		}
	}
	return http.StatusInternalServerError, httpapi.Error{
		Code: httpapi.CodeInternal, Message: "an internal error; its request id is in the header " + httpserver.RequestIDHeader,
	}
}

// isUnmigrated reports whether the database lacks a table or a column of the first migrations.
func isUnmigrated(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "42703")
}

// log records a failure by its kind: what a database says may quote a text.
func (a *api) log(c *gin.Context, err error, class database.Class) {
	attrs := []any{
		slog.String("class", class.String()),
		slog.String("request_id", httpserver.RequestIDFrom(c.Request.Context())),
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		attrs = append(attrs, slog.String("sqlstate", pg.Code), slog.String("constraint", pg.ConstraintName))
	} else {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	a.Log.ErrorContext(c.Request.Context(), "a request failed", attrs...)
}
