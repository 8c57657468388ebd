package adminapi

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/services/auditview/internal/app"
)

func (a *api) events(c *gin.Context) {
	ref, cursor, limit, ok := a.positions(c)
	if !ok {
		return
	}
	page, err := a.Reader.ExecutionEvents(c.Request.Context(), ref, cursor, limit)
	if err != nil {
		a.failWith(c, err)
		return
	}
	list := httpapi.ExecutionEventList{
		Schema: httpapi.SchemaRunEvents, Lineage: page.Execution.Lineage,
		Events: make([]httpapi.ExecutionEventView, 0, len(page.Events)), NextCursor: page.Next,
	}
	for _, e := range page.Events {
		list.Events = append(list.Events, httpapi.ExecutionEventView{
			Position: e.Position, EventID: e.EventID, EventType: e.EventType, OccurredAt: e.OccurredAt, TaskID: e.TaskID,
			AgentInstanceID: e.AgentInstanceID, AgentRole: e.AgentRole, UserID: e.UserID, ChannelID: e.ChannelID,
			Payload: jsontext.Value(e.Payload), DroppedFields: e.DroppedFields, DroppedCount: e.DroppedCount,
			RecordedAt: httpapi.FormatTime(e.RecordedAt),
		})
	}
	answer(c, http.StatusOK, list)
}

// logs answers with the same page as compact lines.
func (a *api) logs(c *gin.Context) {
	ref, cursor, limit, ok := a.positions(c)
	if !ok {
		return
	}
	page, err := a.Reader.ExecutionEvents(c.Request.Context(), ref, cursor, limit)
	if err != nil {
		a.failWith(c, err)
		return
	}
	var lines []byte
	for _, e := range page.Events {
		lines = append(appendLog(lines, e), '\n')
	}
	c.Data(http.StatusOK, contentTypeText, lines)
}

func (a *api) lineage(c *gin.Context) {
	ref, ok := a.executionRef(c)
	if !ok {
		return
	}
	lineage, err := a.Reader.ExecutionLineage(c.Request.Context(), ref)
	if err != nil {
		a.failWith(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.ExecutionLineage{
		Schema: httpapi.SchemaRunLineage, Run: executionView(lineage.Execution), TaskGraph: lineage.Graph,
	})
}

// names reads what a page of ids is asked by.
func (a *api) names(c *gin.Context) (ref app.ExecutionRef, cursor string, limit int64, ok bool) {
	query, ok := numbers(c, "limit")
	if !ok {
		return ref, "", 0, false
	}
	if cursor, ok = text(c, "cursor", isName); !ok {
		return ref, "", 0, false
	}
	ref, ok = a.executionRef(c)
	return ref, cursor, query[0], ok
}

func (a *api) approvals(c *gin.Context) {
	ref, cursor, limit, ok := a.names(c)
	if !ok {
		return
	}
	page, err := a.Reader.Approvals(c.Request.Context(), ref, cursor, limit)
	if err != nil {
		a.failWith(c, err)
		return
	}
	list := httpapi.ApprovalList{
		Schema: httpapi.SchemaRunApprovals, Lineage: page.Execution.Lineage,
		Approvals: make([]httpapi.ApprovalView, 0, len(page.Approvals)), NextCursor: page.Next,
	}
	for _, approval := range page.Approvals {
		f := approval.Facts
		view := httpapi.ApprovalView{
			ApprovalID: approval.ID, Operation: known(f.Operation), RiskLevel: known(f.RiskLevel), Decision: known(f.Decision),
			CredentialRef: known(f.CredentialRef), LeaseID: known(f.LeaseID), Scope: known(f.Scope), ExpiresAt: known(f.ExpiresAt),
			Reason: known(f.Reason), DecidedAt: known(f.DecidedAt),
		}
		if by := f.DecidedBy; by != nil {
			view.DecidedBy = &httpapi.DeciderView{UserID: known(by.UserID), ChannelID: known(by.ChannelID)}
		}
		list.Approvals = append(list.Approvals, view)
	}
	answer(c, http.StatusOK, list)
}

func (a *api) grants(c *gin.Context) {
	ref, cursor, limit, ok := a.names(c)
	if !ok {
		return
	}
	page, err := a.Reader.Grants(c.Request.Context(), ref, cursor, limit)
	if err != nil {
		a.failWith(c, err)
		return
	}
	list := httpapi.GrantList{
		Schema: httpapi.SchemaRunGrants, Lineage: page.Execution.Lineage,
		Grants: make([]httpapi.GrantView, 0, len(page.Grants)), NextCursor: page.Next,
	}
	for _, grant := range page.Grants {
		f := grant.Facts
		view := httpapi.GrantView{
			GrantID: grant.ID, SecretRef: known(f.SecretRef), AllowedActions: f.AllowedActions, Constraints: f.Constraints,
			ExpiresAt: known(f.ExpiresAt), Status: known(f.Status), CreatedBy: known(f.CreatedBy), RevokedBy: known(f.RevokedBy),
			CreatedAt: known(f.CreatedAt), RevokedAt: known(f.RevokedAt),
		}
		if view.Constraints == nil {
			view.Constraints = jsontext.Value("{}")
		}
		list.Grants = append(list.Grants, view)
	}
	answer(c, http.StatusOK, list)
}

func (a *api) diagnostics(c *gin.Context) {
	ref, cursor, limit, ok := a.positions(c)
	if !ok {
		return
	}
	page, err := a.Reader.Diagnostics(c.Request.Context(), ref, cursor, limit)
	if err != nil {
		a.failWith(c, err)
		return
	}
	t := page.Totals
	view := httpapi.Diagnostics{
		Schema: httpapi.SchemaRunDiagnostics, Lineage: page.Execution.Lineage,
		Attempts: make([]httpapi.AttemptView, 0, len(page.Attempts)), Events: make([]httpapi.EventDelivery, 0, len(page.Events)),
		Totals: httpapi.DiagnosticsTotals{
			Attempts: t.Attempts, FailedAttempts: t.Failed, Events: t.Events, Delivered: t.Delivered, Undelivered: t.Events - t.Delivered,
		},
		NextCursor: page.Next,
	}
	if t.Attempts > 0 {
		rate := float64(t.Failed) / float64(t.Attempts)
		view.Totals.FailureRate = &rate
	}
	for _, attempt := range page.Attempts {
		f := attempt.Facts
		view.Attempts = append(view.Attempts, httpapi.AttemptView{
			Position: attempt.Position, AttemptID: attempt.ID, EventID: f.EventID, EventType: f.EventType, Scheme: f.Scheme,
			Host: f.Host, Port: f.Port, URLSHA256: f.URLSHA256, Status: f.Status, Delivered: attempt.Delivered, AttemptedAt: f.AttemptedAt,
		})
	}
	for _, e := range page.Events {
		view.Events = append(view.Events, httpapi.EventDelivery{
			EventID: e.EventID, Attempts: e.Attempts, LastStatus: jsontext.Value(e.LastStatus), Delivered: e.Delivered,
		})
	}
	answer(c, http.StatusOK, view)
}

func (a *api) usage(c *gin.Context) {
	query, ok := numbers(c, "limit")
	if !ok {
		return
	}
	var filter app.UsageFilter
	if filter.By, ok = text(c, "by", isAxis); !ok {
		return
	}
	if filter.By == "" {
		fail(c, http.StatusBadRequest, codeInvalidRequest, "usage is summed by user, channel, client, role or model")
		return
	}
	if filter.Since, filter.Until, ok = period(c); !ok {
		return
	}
	if filter.After, ok = text(c, "cursor", isName); !ok {
		return
	}
	page, err := a.Reader.Usage(c.Request.Context(), filter, query[0])
	if err != nil {
		a.failWith(c, err)
		return
	}
	report := httpapi.UsageReport{
		Schema: httpapi.SchemaUsage, By: filter.By, Since: formatTime(filter.Since), Until: formatTime(filter.Until),
		Items: make([]httpapi.UsageSum, 0, len(page.Sums)), HasMore: page.HasMore,
	}
	for _, u := range page.Sums {
		report.Items = append(report.Items, httpapi.UsageSum{
			Key: u.Key, Tasks: u.Tasks, InputTokens: jsontext.Value(u.InputTokens), OutputTokens: jsontext.Value(u.OutputTokens),
			TotalTokens: jsontext.Value(u.TotalTokens), ToolCalls: jsontext.Value(u.ToolCalls),
		})
	}
	if page.HasMore {
		report.NextCursor = &page.Next
	}
	answer(c, http.StatusOK, report)
}

func isAxis(s string) bool {
	return slices.Contains([]string{app.UsageByUser, app.UsageByChannel, app.UsageByClient, app.UsageByRole, app.UsageByModel}, s)
}

// known returns nil for what is absent.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
