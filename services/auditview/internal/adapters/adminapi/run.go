package adminapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/auditview/internal/app"
)

// runTrace answers GET …/trace of an authorized run.
type runTrace struct {
	Kind string  `json:"kind"`
	Run  runView `json:"run"`
}

const kindAgentRun = "agent_client_run"

// runView is what administrators see of a run. ConversationAuditID is there when an
// archive links to it.
type runView struct {
	RunID                string  `json:"run_id"`
	SessionID            string  `json:"session_id"`
	ClientAppID          string  `json:"client_app_id"`
	RouteKey             string  `json:"route_key"`
	ThreadID             int64   `json:"thread_id"`
	ClientConversationID string  `json:"client_conversation_id"`
	ClientTurnID         string  `json:"client_turn_id"`
	CreatedAt            string  `json:"created_at"`
	ConversationAuditID  *string `json:"conversation_audit_id,omitzero"`
}

func (a *api) runTrace(c *gin.Context) {
	thread, isNumber := number(c.Param("thread_id"))
	id, isUUID := identity.ParseUUID(c.Param("run_id"))
	if !isNumber || !isUUID || thread == 0 {
		a.failWith(c, app.ErrRunNotFound)
		return
	}
	run, err := a.Reader.Run(c.Request.Context(), thread, string(id))
	if err != nil {
		a.failWith(c, err)
		return
	}
	answer(c, http.StatusOK, runTrace{Kind: kindAgentRun, Run: runView{
		RunID: run.RunID, SessionID: run.SessionID, ClientAppID: run.ClientAppID, RouteKey: run.RouteKey,
		ThreadID: run.ThreadID, ClientConversationID: run.ClientConversationID, ClientTurnID: run.ClientTurnID,
		CreatedAt: httpapi.FormatTime(run.CreatedAt), ConversationAuditID: run.ConversationID,
	}})
}
