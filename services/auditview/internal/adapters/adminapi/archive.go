package adminapi

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/auditview/internal/app"
)

func (a *api) list(c *gin.Context) {
	query, ok := numbers(c, "limit", "offset")
	if !ok {
		return
	}
	page, err := a.Reader.Archives(c.Request.Context(), query[0], query[1])
	if err != nil {
		a.failWith(c, err)
		return
	}
	list := httpapi.List{Schema: httpapi.SchemaList, Items: make([]httpapi.Header, 0, len(page.Archives)), HasMore: page.HasMore}
	for _, archive := range page.Archives {
		list.Items = append(list.Items, header(archive))
	}
	if page.HasMore {
		list.NextOffset = &page.NextOffset
	}
	answer(c, http.StatusOK, list)
}

func (a *api) detail(c *gin.Context) {
	query, ok := numbers(c, "limit", "after_sequence")
	if !ok {
		return
	}
	id, ok := identity.ParseUUID(c.Param("conversation_id"))
	if !ok {
		a.failWith(c, app.ErrArchiveNotFound)
		return
	}
	page, err := a.Reader.Detail(c.Request.Context(), string(id), query[1], query[0])
	if err != nil {
		a.failWith(c, err)
		return
	}
	detail := httpapi.Detail{
		Schema: httpapi.SchemaDetail, Conversation: header(page.Archive),
		Members: make([]httpapi.Member, 0, len(page.Members)), Events: make([]httpapi.Event, 0, len(page.Events)),
		HasMore: page.HasMore, NextAfterSequence: page.NextAfterSequence,
	}
	for _, m := range page.Members {
		detail.Members = append(detail.Members, member(m))
	}
	for _, e := range page.Events {
		detail.Events = append(detail.Events, event(e))
	}
	answer(c, http.StatusOK, detail)
}

func header(a app.Archive) httpapi.Header {
	return httpapi.Header{
		ConversationID: a.ConversationID, ClientArchiveID: a.ClientArchiveID, ClientConversationID: a.ClientConversationID,
		ClientAppID: a.ClientAppID, RouteKey: a.RouteKey, State: a.State,
		MemberCount: a.MemberCount, ConfirmedCount: a.ConfirmedCount, LastSequence: a.LastSequence,
		MessageCount: a.MessageCount, TurnCount: a.TurnCount, LastTurnStatus: a.LastTurnStatus,
		CreatedAt: httpapi.FormatTime(a.CreatedAt), UpdatedAt: httpapi.FormatTime(a.UpdatedAt),
	}
}

func member(m app.Member) httpapi.Member {
	view := httpapi.Member{
		SessionID: m.SessionID, DisplayLabel: m.DisplayLabel, Confirmed: m.ConfirmedAt != nil,
		ClientAppID: m.ClientAppID, ClientName: m.ClientName, RouteKey: m.RouteKey,
	}
	if view.DisplayLabel == "" {
		view.DisplayLabel = m.SessionID
	}
	if view.Confirmed {
		view.OnBehalfOf = m.OnBehalfOf
		if m.Principal != nil {
			view.Principal = jsontext.Value(*m.Principal)
		}
	}
	return view
}

func event(e app.Event) httpapi.Event {
	return httpapi.Event{
		EventID: e.EventID, Sequence: e.Sequence, ClientTurnID: e.ClientTurnID, Kind: e.Kind,
		Content: e.Content, Status: e.Status, RunID: e.RunID, MemberSessionID: e.MemberSessionID, ThreadID: e.ThreadID,
		CreatedAt: httpapi.FormatTime(e.CreatedAt),
	}
}
