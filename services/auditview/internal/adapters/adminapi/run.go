package adminapi

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/services/auditview/internal/app"
)

func (a *api) threads(c *gin.Context) {
	query, ok := numbers(c, "limit", "before")
	if !ok {
		return
	}
	page, err := a.Reader.Threads(c.Request.Context(), query[0], query[1])
	if err != nil {
		a.failWith(c, err)
		return
	}
	list := httpapi.ThreadList{Schema: httpapi.SchemaThreads, Items: make([]httpapi.Thread, 0, len(page.Threads)), HasMore: page.HasMore}
	for _, t := range page.Threads {
		list.Items = append(list.Items, thread(t))
	}
	if page.HasMore {
		list.NextBefore = &page.NextBefore
	}
	answer(c, http.StatusOK, list)
}

func (a *api) thread(c *gin.Context) {
	query, ok := numbers(c, "limit", "offset")
	if !ok {
		return
	}
	id, ok := number(c.Param("thread_id"))
	if !ok || id == 0 {
		a.failWith(c, app.ErrThreadNotFound)
		return
	}
	page, err := a.Reader.Thread(c.Request.Context(), id, query[0], query[1])
	if err != nil {
		a.failWith(c, err)
		return
	}
	detail := httpapi.ThreadDetail{
		Schema: httpapi.SchemaThread, Thread: thread(page.Thread),
		Runs: make([]httpapi.ThreadRun, 0, len(page.Runs)), HasMore: page.HasMore,
	}
	for _, r := range page.Runs {
		detail.Runs = append(detail.Runs, httpapi.ThreadRun{
			RunID: r.RunID, ClientTurnID: r.ClientTurnID, Status: r.Status, Model: r.Model, Runtime: r.Runtime,
			CreatedAt: httpapi.FormatTime(r.CreatedAt), CompletedAt: formatTime(r.CompletedAt), ConversationAuditID: r.ConversationID,
		})
	}
	if page.HasMore {
		detail.NextOffset = &page.NextOffset
	}
	answer(c, http.StatusOK, detail)
}

func (a *api) runTrace(c *gin.Context) {
	thread, isNumber := number(c.Param("thread_id"))
	id, isUUID := identity.ParseUUID(c.Param("run_id"))
	if !isNumber || !isUUID || thread == 0 {
		a.failWith(c, app.ErrRunNotFound)
		return
	}
	t, err := a.Reader.RunTrace(c.Request.Context(), thread, string(id))
	if err != nil {
		a.failWith(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.RunTrace{
		Kind: httpapi.TraceAgentRun, Run: run(t), Trace: t.Trace.Trace, Invocations: t.Trace.Invocations,
	})
}

func (a *api) jobTrace(c *gin.Context) {
	id, ok := identity.ParseUUID(pathID(c))
	if !ok {
		a.failWith(c, app.ErrRunNotFound)
		return
	}
	t, err := a.Reader.JobTrace(c.Request.Context(), string(id))
	if err != nil {
		a.failWith(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.JobTrace{
		Kind: httpapi.TraceToolJob, Job: job(t), Trace: t.Trace.Trace, Invocations: t.Trace.Invocations,
	})
}

func thread(t app.Thread) httpapi.Thread {
	return httpapi.Thread{
		ThreadID: t.ThreadID, SessionID: t.SessionID, ClientAppID: t.ClientAppID, RouteKey: t.RouteKey,
		ClientConversationID: t.ClientConversationID, RunCount: t.RunCount,
		FirstRunAt: httpapi.FormatTime(t.FirstRunAt), LastRunAt: httpapi.FormatTime(t.LastRunAt),
	}
}

func run(t app.RunTrace) httpapi.RunView {
	r := t.Run
	view := httpapi.RunView{
		RunID: r.RunID, SessionID: r.SessionID, ClientAppID: r.ClientAppID, RouteKey: r.RouteKey,
		ThreadID: r.ThreadID, ClientConversationID: r.ClientConversationID, ClientTurnID: r.ClientTurnID,
		CreatedAt: httpapi.FormatTime(r.CreatedAt), Status: r.Status, Model: r.Model, Runtime: r.Runtime,
		CompletedAt: formatTime(r.CompletedAt), Governance: t.Trace.Governance, ConversationAuditID: r.ConversationID,
	}
	if r.Usage != nil {
		view.Usage = jsontext.Value(*r.Usage)
	}
	for _, x := range t.Executions {
		view.Executions = append(view.Executions, httpapi.RunExecution{
			ClientAppID: x.ClientAppID, SwarmID: x.SwarmID, Result: trace.Result(x.Result),
		})
	}
	return view
}

func job(t app.JobTrace) httpapi.JobView {
	r := t.Run
	view := httpapi.JobView{
		JobID: t.JobID, RunID: r.RunID, SessionID: r.SessionID, ClientAppID: r.ClientAppID, RouteKey: r.RouteKey,
		ConversationAuditID: r.ConversationID,
	}
	if r.ThreadID > 0 {
		view.ThreadID = &r.ThreadID
	}
	if r.ConversationID != nil {
		view.ClientTurnID = &r.ClientTurnID
	}
	for _, i := range t.Trace.Invocations { // the one
		view.Tool, view.Provider, view.Status, view.Attempts = i.Tool, i.Provider, i.Status, i.Attempts
		view.StartedAt, view.FinishedAt = i.StartedAt, i.FinishedAt
	}
	return view
}

func formatTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := httpapi.FormatTime(*t)
	return &text
}
