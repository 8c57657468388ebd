package adminapi

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/timestamp"
	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/services/auditview/internal/app"
)

// ExecutionReader answers what administrators ask about executions.
type ExecutionReader interface {
	Executions(ctx context.Context, filter app.ExecutionFilter, limit int64) (app.ExecutionPage, error)
	Audit(ctx context.Context, ref app.ExecutionRef, cursor, limit int64, known func(tag string) bool) (app.AuditPage, error)
	AuditStream(ctx context.Context, ref app.ExecutionRef, cursor int64, begin func(tag string) bool, each func([]trace.Record) error) error
	ExecutionEvents(ctx context.Context, ref app.ExecutionRef, cursor, limit int64) (app.ExecutionEventPage, error)
	ExecutionLineage(ctx context.Context, ref app.ExecutionRef) (app.ExecutionLineage, error)
	Approvals(ctx context.Context, ref app.ExecutionRef, after string, limit int64) (app.ApprovalPage, error)
	Grants(ctx context.Context, ref app.ExecutionRef, after string, limit int64) (app.GrantPage, error)
	Diagnostics(ctx context.Context, ref app.ExecutionRef, cursor, limit int64) (app.Diagnostics, error)
	Usage(ctx context.Context, filter app.UsageFilter, limit int64) (app.UsagePage, error)
}

// runsBase is where paths hold ids of runs, which may hold a slash.
const runsBase = "/admin/api/runs/"

// withRuns serves the paths below runsBase by an engine of their own, which matches paths
// as they came, so that an escaped slash is a part of its id. For others nothing changes.
func withRuns(runs, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, runsBase) {
			runs.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

func (a *api) runRoutes(engine *gin.Engine) {
	runs := engine.Group(runsBase+":id", a.authenticate, a.require(app.PermissionMetadata))
	runs.GET("/trace", a.jobTrace)
	runs.GET("/audit", a.audit)
	runs.GET("/replay", a.replay)
	runs.GET("/events", a.events)
	runs.GET("/logs", a.logs)
	runs.GET("/lineage", a.lineage)
	runs.GET("/approvals", a.approvals)
	runs.GET("/grants", a.grants)
	runs.GET("/diagnostics", a.diagnostics)
}

// pathID returns the id of the path, which came escaped; what is escaped wrongly is none.
func pathID(c *gin.Context) string {
	id, err := url.PathUnescape(c.Param("id"))
	if err != nil {
		return ""
	}
	return id
}

// executionRef reads which execution is meant. It answers and reports false where it can
// be none: an id that is not of the form of a name is nobody's.
func (a *api) executionRef(c *gin.Context) (ref app.ExecutionRef, ok bool) {
	if ref.ClientAppID, ok = text(c, "client_app_id", isName); !ok {
		return ref, false
	}
	if ref.ID = pathID(c); !isName(ref.ID) {
		a.failWith(c, app.ErrRunNotFound)
		return ref, false
	}
	return ref, true
}

// positions reads what a page of positions is asked by.
func (a *api) positions(c *gin.Context) (ref app.ExecutionRef, cursor, limit int64, ok bool) {
	query, ok := numbers(c, "cursor", "limit")
	if !ok {
		return ref, 0, 0, false
	}
	ref, ok = a.executionRef(c)
	return ref, query[0], query[1], ok
}

// candidates names the executions that an id means.
func candidates(ambiguous *app.AmbiguousRunError) httpapi.ExecutionCandidates {
	list := httpapi.ExecutionCandidates{
		Schema: httpapi.SchemaRunCandidates, Candidates: make([]httpapi.ExecutionCandidate, 0, len(ambiguous.Candidates)),
	}
	for _, x := range ambiguous.Candidates {
		list.Candidates = append(list.Candidates, httpapi.ExecutionCandidate{
			ClientAppID: x.ClientAppID, SwarmID: x.SwarmID(), Lineage: x.Lineage, RunID: x.RunID,
			CreatedAt: httpapi.FormatTime(x.CreatedAt), LatestAt: httpapi.FormatTime(x.LatestAt),
		})
	}
	return list
}

func (a *api) executions(c *gin.Context) {
	query, ok := numbers(c, "limit")
	if !ok {
		return
	}
	var filter app.ExecutionFilter
	for _, f := range []struct {
		name  string
		into  *string
		valid func(string) bool
	}{
		{"client_app_id", &filter.ClientAppID, isName},
		{"result", &filter.Result, isResult},
		{"agent_role", &filter.AgentRole, isName},
		{"model_id", &filter.ModelID, isName},
		{"user_id", &filter.UserID, isName},
		{"channel_id", &filter.ChannelID, isName},
	} {
		if *f.into, ok = text(c, f.name, f.valid); !ok {
			return
		}
	}
	if filter.Since, filter.Until, ok = period(c); !ok {
		return
	}
	cursor, ok := text(c, "cursor", func(s string) bool { _, ok := parseCursor(s); return ok })
	if !ok {
		return
	}
	if after, given := parseCursor(cursor); given {
		filter.After = &after
	}
	page, err := a.Reader.Executions(c.Request.Context(), filter, query[0])
	if err != nil {
		a.failWith(c, err)
		return
	}
	list := httpapi.ExecutionList{Schema: httpapi.SchemaRuns, Items: make([]httpapi.ExecutionView, 0, len(page.Executions)), HasMore: page.HasMore}
	for _, x := range page.Executions {
		list.Items = append(list.Items, executionView(x))
	}
	if page.HasMore {
		next := formatCursor(page.Next)
		list.NextCursor = &next
	}
	answer(c, http.StatusOK, list)
}

func executionView(x app.LinkedExecution) httpapi.ExecutionView {
	return httpapi.ExecutionView{
		ClientAppID: x.ClientAppID, SwarmID: x.SwarmID(), Lineage: x.Lineage, RunID: x.RunID,
		ThreadID: x.ThreadID, ConversationAuditID: x.ConversationID, Result: x.Result, EventCount: x.LastPosition,
		CreatedAt: httpapi.FormatTime(x.CreatedAt), LatestAt: httpapi.FormatTime(x.LatestAt),
	}
}

func isResult(s string) bool {
	return slices.Contains([]trace.Result{trace.Success, trace.Failed, trace.Blocked, trace.Stopped, trace.Info}, trace.Result(s))
}

// period reads since and until, moments in RFC 3339; what is absent is nil.
func period(c *gin.Context) (since, until *time.Time, ok bool) {
	for _, bound := range []struct {
		name string
		into **time.Time
	}{{"since", &since}, {"until", &until}} {
		s, ok := text(c, bound.name, func(s string) bool { _, ok := parseMoment(s); return ok })
		if !ok {
			return nil, nil, false
		}
		if at, given := parseMoment(s); given {
			*bound.into = &at
		}
	}
	return since, until, true
}

// parseMoment reads RFC 3339 with any offset.
func parseMoment(s string) (time.Time, bool) {
	s, ok := timestamp.Normalize(s)
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	return at, err == nil
}

// A cursor of the list is a time in microseconds and an id, in 24 bytes. It is opaque to
// whoever gets it.
const cursorBytes = 8 + len(uuid.UUID{})

func formatCursor(after app.ExecutionCursor) string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, cursorBytes), uint64(after.LatestAt.UnixMicro()))
	id := uuid.MustParse(after.ExecutionID) // of the database's type
	return base64.RawURLEncoding.EncodeToString(append(b, id[:]...))
}

func parseCursor(s string) (app.ExecutionCursor, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != cursorBytes {
		return app.ExecutionCursor{}, false
	}
	at := time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC() //nolint:gosec // any bits are a time
	if year := at.Year(); year < 1 || year > 9999 {
		return app.ExecutionCursor{}, false
	}
	return app.ExecutionCursor{LatestAt: at, ExecutionID: uuid.UUID(b[8:]).String()}, true
}
