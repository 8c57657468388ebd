package adminapi

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/platform/httpserver"
	"verbatim.internal/services/auditview/internal/app"
)

const (
	codeUnauthorized    = httpapi.CodeUnauthorized
	codeForbidden       = httpapi.CodeForbidden
	codeNotFound        = httpapi.CodeNotFound
	codeInternal        = httpapi.CodeInternal
	codeThreadNotFound  = "thread_not_found"
	codeRunNotFound     = string(refusal.RunNotFound)
	codeRunLimit        = string(refusal.RunLimit)
	codeInvalidRequest  = string(refusal.InvalidRequest)
	codeArchiveNotFound = string(refusal.NotFound)
	codeUnavailable     = string(refusal.Unavailable)

	contentType = "application/json; charset=utf-8"
)

// answer writes JSON without HTML escapes; strings that are JSON already keep their bytes.
func answer(c *gin.Context, status int, body any) {
	encoded, err := json.Marshal(body, jsontext.PreserveRawStrings(true))
	if err != nil {
		panic("adminapi: an answer that is not JSON") // a programmer's error; never with content
	}
	c.Data(status, contentType, encoded)
}

func fail(c *gin.Context, status int, code, message string) {
	answer(c, status, httpapi.Error{Code: code, Message: message})
	c.Abort()
}

// failWith is the one place where errors become answers.
func (a *api) failWith(c *gin.Context, err error) {
	var ambiguous *app.AmbiguousRunError
	switch {
	case errors.As(err, &ambiguous):
		answer(c, http.StatusMultipleChoices, candidates(ambiguous))
		c.Abort()
	case errors.Is(err, app.ErrTooLarge):
		fail(c, http.StatusRequestEntityTooLarge, codeRunLimit, "the run is too large to be shown at once")
	case errors.Is(err, app.ErrArchiveNotFound):
		fail(c, http.StatusNotFound, codeArchiveNotFound, "there is no such archive")
	case errors.Is(err, app.ErrThreadNotFound):
		fail(c, http.StatusNotFound, codeThreadNotFound, "there is no such thread")
	case errors.Is(err, app.ErrRunNotFound):
		fail(c, http.StatusNotFound, codeRunNotFound, "there is no such run or job here")
	case errors.Is(err, app.ErrUnavailable):
		a.log(c, slog.LevelWarn, "the store is not available", err)
		c.Header("Retry-After", "1")
		fail(c, http.StatusServiceUnavailable, codeUnavailable, "the archive is not available at the moment")
	default:
		a.log(c, slog.LevelError, "a request failed", err)
		fail(c, http.StatusInternalServerError, codeInternal, "the service failed; its log has the request's id")
	}
}

func (a *api) log(c *gin.Context, level slog.Level, text string, err error) {
	a.Log.LogAttrs(c.Request.Context(), level, text, //nolint:sloglint // the callers' texts are constants
		slog.String("request_id", httpserver.RequestIDFrom(c.Request.Context())),
		slog.String("route", c.FullPath()),
		slog.Any("error", err))
}

// internalError answers after a panic.
func internalError(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	httpserver.WriteError(w, http.StatusInternalServerError, codeInternal, "the service failed; its log has the request's id")
}
