package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/services/ingest/internal/app"
)

var errExecutionTooLarge = refusal.New(refusal.RunLimit, "a request body about a run has at most 2 MiB")

const executionsBase = "/runtime-api/"

// withExecutions serves executions beside the other surfaces. Their ids are names that may
// hold a slash, so their paths are matched as they came, and each id is unescaped by
// itself; for the other surfaces nothing changes.
func (a *api) withExecutions(others http.Handler) http.Handler {
	engine := gin.New()
	engine.UseEscapedPath, engine.UnescapePathValues, engine.RedirectTrailingSlash = true, false, false
	_ = engine.SetTrustedProxies(nil) // nobody's address matters; nil is never malformed
	engine.Use(tellRoute, noStore)
	engine.NoRoute(func(c *gin.Context) { a.fail(c, errNoEndpoint) })
	a.executionRoutes(engine)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, executionsBase) {
			engine.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// executionRoutes serves what orchestrators tell.
func (a *api) executionRoutes(engine *gin.Engine) {
	body := a.bodyUpTo(httpapi.MaxEnvelopeBytes, errExecutionTooLarge)
	runs := engine.Group(executionsBase+"v1/runs/:swarm_id", a.authenticateClient, a.attribute, body, a.bound)
	runs.PUT("", a.openExecution)
	runs.POST("/events", a.executionEvents)
	runs.PUT("/tasks/:task_id", a.putTask)
	runs.PUT("/approvals/:approval_id", a.putApproval)
	runs.PUT("/grants/:grant_id", a.putGrant)
	runs.POST("/callback-attempts", a.callbackAttempts)
}

const attributionKey = "attribution"

// attribute reads the attribution headers, which any call may have.
func (a *api) attribute(c *gin.Context) {
	h := c.Request.Header
	by, err := execution.NewAttribution(execution.AttributionFields{
		UserID: h.Values(httpapi.HeaderAgentUserID), ChannelID: h.Values(httpapi.HeaderAgentChannelID),
		Role: h.Values(httpapi.HeaderAgentRole), InstanceID: h.Values(httpapi.HeaderAgentInstanceID), TaskID: h.Values(httpapi.HeaderAgentTaskID),
	})
	if err != nil {
		a.fail(c, err)
		return
	}
	c.Set(attributionKey, by)
}

func attributionOf(c *gin.Context) execution.Attribution {
	by, _ := c.MustGet(attributionKey).(execution.Attribution)
	return by
}

// pathID returns an id of the path, which came escaped; what is escaped wrongly is no id.
func pathID(c *gin.Context, name string) string {
	id, err := url.PathUnescape(c.Param(name))
	if err != nil {
		return ""
	}
	return id
}

func executionKey(c *gin.Context) app.ExecutionKey {
	return app.ExecutionKey{ClientAppID: clientOf(c), SwarmID: pathID(c, "swarm_id")}
}

func (a *api) openExecution(c *gin.Context) {
	key := executionKey(c)
	opening, err := decodeOpening(bodyOf(c), key.SwarmID)
	if err != nil {
		a.fail(c, err)
		return
	}
	e, created, err := a.Executions.Open(c.Request.Context(), key.ClientAppID, opening, attributionOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	answer(c, status, httpapi.NewExecution(e.Opening, e.LastPosition, e.CreatedAt))
}

func decodeOpening(body []byte, swarmID string) (execution.Opening, error) {
	dto, err := httpapi.DecodeExecutionOpening(body)
	if err != nil {
		return execution.Opening{}, err
	}
	return execution.NewOpening(execution.OpeningFields{
		SwarmID: swarmID, ManagerDeploymentID: dto.ManagerDeploymentID, DeploymentID: dto.DeploymentID,
		CorrelationID: dto.CorrelationID, RunID: dto.RunID,
	})
}
