package httpapi

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/domain/run"
)

var errRunTooLarge = refusal.New(refusal.RunLimit, "a request body about a run has at most 512 KiB")

// runRoutes serves workspaces, turns, completions and trace events.
func (a *api) runRoutes(engine *gin.Engine) {
	agents := engine.Group("/agent-api/v1", a.authenticate)
	agents.GET("/workspaces", a.bound, a.workspaces)
	agents.GET("/workspaces/:route_key/bootstrap", a.bound, a.bootstrap)
	agents.POST("/workspaces/:route_key/turns", a.runBody, a.bound, a.turn)
	agents.POST("/runs/:run_id/complete", a.runBody, a.bound, a.complete)
	agents.POST("/runs/:run_id/trace-events", a.runBody, a.bound, a.traceEvents)
}

func (a *api) runBody(c *gin.Context) { a.readBody(c, httpapi.MaxRunBytes, errRunTooLarge) }

func (a *api) workspaces(c *gin.Context) {
	usable, err := a.Runs.Workspaces(c.Request.Context(), bearerOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	out, err := httpapi.NewWorkspaces(usable)
	if err != nil {
		a.fail(c, err)
		return
	}
	answerRevision(c, out.Revision, out)
}

func (a *api) bootstrap(c *gin.Context) {
	usable, err := a.Runs.Bootstrap(c.Request.Context(), bearerOf(c), c.Param("route_key"))
	if err != nil {
		a.fail(c, err)
		return
	}
	out, err := httpapi.NewRuntimeProfile(usable)
	if err != nil {
		a.fail(c, err)
		return
	}
	answerRevision(c, out.Revision, out)
}

// answerRevision answers v, or that the caller has it already.
func answerRevision(c *gin.Context, revision string, v any) {
	etag := `"` + revision + `"`
	c.Header("ETag", etag)
	if hasETag(c.Request.Header.Values("If-None-Match"), etag) {
		c.Status(http.StatusNotModified)
		return
	}
	answer(c, http.StatusOK, v)
}

// hasETag reports whether the values of If-None-Match name etag, a tag without a comma, by
// the weak comparison (RFC 9110, section 13.1.2).
func hasETag(values []string, etag string) bool {
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			tag = strings.Trim(tag, " \t")
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}

// runID is asked for after the body: what breaks the schema is named first.
func runID(c *gin.Context) (identity.UUID, error) {
	id, ok := identity.ParseUUID(c.Param("run_id"))
	if !ok {
		return "", run.ErrNotFound
	}
	return id, nil
}
