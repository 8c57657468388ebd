package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Workspaces are the routes that a session may use.
type Workspaces struct {
	// Revision changes only when the rest does.
	Revision   string      `json:"revision"`
	Workspaces []Workspace `json:"workspaces"`
}

// Workspace is one route.
type Workspace struct {
	RouteKey string `json:"route_key"`
	Name     string `json:"name"`
	Revision string `json:"revision"`
}

// Profile is what the hub gives an agent for a route.
type Profile struct {
	// Revision changes only when the rest does.
	Revision     string            `json:"revision"`
	RouteKey     string            `json:"route_key"`
	Name         string            `json:"name"`
	Instructions string            `json:"instructions"`
	Knowledge    []json.RawMessage `json:"knowledge"`
	Memory       []json.RawMessage `json:"memory"`
	Tools        []json.RawMessage `json:"tools"`
}

// Workspaces asks which routes the session may use. known is an earlier answer, which is
// returned when it still holds, or nil.
func (s *Session) Workspaces(ctx context.Context, known *Workspaces) (*Workspaces, error) {
	r := get("/agent-api/v1/workspaces")
	if known != nil {
		r.ifNoneMatch = known.Revision
	}
	return askRevised(ctx, s, r, "bailing.agent-workspaces.v1", known)
}

// Profile asks for a route's profile. known is an earlier answer for the same route,
// which is returned when it still holds, or nil. A route that the session may not use is
// a RefusedError with the code route_not_allowed.
func (s *Session) Profile(ctx context.Context, route string, known *Profile) (*Profile, error) {
	if !isRoute(route) {
		return nil, invalid("the route is no resource key, or auto")
	}
	r := get("/agent-api/v1/workspaces/" + route + "/bootstrap")
	if known != nil && known.RouteKey == route {
		r.ifNoneMatch = known.Revision
	}
	return askRevised(ctx, s, r, "bailing.agent-runtime-profile.v1", known)
}

func askRevised[T any](ctx context.Context, s *Session, r request, schema string, known *T) (*T, error) {
	var fresh T
	unchanged := false
	err := s.spool.hub.retry(ctx, func() error {
		a, err := s.call(ctx, r)
		if err != nil {
			return err
		}
		if unchanged = r.ifNoneMatch != "" && a.status == http.StatusNotModified; unchanged {
			return nil
		}
		return a.decode(schema, &fresh)
	})
	if err != nil {
		return nil, err
	}
	if unchanged {
		return known, nil
	}
	return &fresh, nil
}

// Turn is what opens a run.
type Turn struct {
	// ConversationID, TurnID and UserMessageID are the host's own stable identifiers:
	// ^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$. The same turn opened again is the same run.
	ConversationID string `json:"client_conversation_id"`
	TurnID         string `json:"client_turn_id"`
	UserMessageID  string `json:"user_message_id"`
	// UserInput is the user's exact text; the hub keeps its SHA-256 only.
	UserInput string `json:"user_input"`
	// PageContext is a JSON object of at most 16 KiB, or nil.
	PageContext json.RawMessage `json:"page_context,omitempty"`
	// Renderers are at most 32 names of what can show an answer.
	Renderers []string `json:"renderers,omitempty"`
}

func (t Turn) check() error {
	if !isIdentifier(t.ConversationID) || !isIdentifier(t.TurnID) || !isIdentifier(t.UserMessageID) {
		return invalid("the conversation's, the turn's or the user message's id is no identifier")
	}
	if !isClean(t.UserInput) || strings.TrimFunc(t.UserInput, isTrimmed) == "" {
		return invalid("the user's input is no visible text")
	}
	if t.PageContext != nil {
		value := bytes.TrimSpace(t.PageContext)
		if !json.Valid(value) || value[0] != '{' || !utf8.Valid(value) {
			return invalid("the page context is no JSON object")
		}
	}
	return nil
}

// TurnContext is an open run.
type TurnContext struct {
	RunID          string            `json:"run_id"`
	ThreadID       int64             `json:"thread_id"`
	RouteKey       string            `json:"route_key"`
	ConversationID string            `json:"client_conversation_id"`
	TurnID         string            `json:"client_turn_id"`
	UserMessageID  string            `json:"user_message_id"`
	Instructions   string            `json:"instructions"`
	Knowledge      []json.RawMessage `json:"knowledge"`
	Memory         []json.RawMessage `json:"memory"`
	Tools          []json.RawMessage `json:"tools"`
	CreatedAt      time.Time         `json:"created_at"`
	// SessionID is the session that owns the run.
	SessionID string `json:"-"`
}

// Link returns the event that links the run to its turn in an archive. Append checks it
// against the archive's conversation and the member's route.
func (c *TurnContext) Link() Event {
	return Event{
		TurnID: c.TurnID, Kind: RunLink, RunID: c.RunID, MemberSessionID: c.SessionID,
		of: &binding{conversationID: c.ConversationID, route: c.RouteKey, turnID: c.TurnID},
	}
}

// OpenTurn opens a run on a route, or returns the one that the same turn opened before.
// Another input for the same turn is a RefusedError with the code turn_conflict.
func (s *Session) OpenTurn(ctx context.Context, route string, t Turn) (*TurnContext, error) {
	if !isRoute(route) {
		return nil, invalid("the route is no resource key, or auto")
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	body, err := encodeRun(t)
	if err != nil {
		return nil, err
	}
	c := TurnContext{SessionID: s.id}
	r := post("/agent-api/v1/workspaces/"+route+"/turns", body)
	if err := s.ask(ctx, r, "bailing.agent-turn-context.v1", &c); err != nil {
		return nil, err
	}
	id, ok := parseUUID(c.RunID)
	if !ok || c.RouteKey != route || c.ConversationID != t.ConversationID || c.TurnID != t.TurnID {
		return nil, &unavailableError{reason: "the answer speaks of another turn"}
	}
	c.RunID = id
	return &c, nil
}

// Completion is how a run ended.
type Completion struct {
	// AssistantMessageID is the host's own stable identifier of the answer.
	AssistantMessageID string     `json:"assistant_message_id"`
	Status             TurnStatus `json:"status"`
	// Content is the exact final text, which may be empty unless Status is Completed; the
	// hub keeps its SHA-256 only.
	Content string `json:"content"`
	Model   string `json:"model,omitempty"`
	Runtime string `json:"runtime,omitempty"`
	Usage   *Usage `json:"usage,omitempty"`
}

// Usage is what a run took; nil is not known.
type Usage struct {
	InputTokens       *int64   `json:"input_tokens,omitempty"`
	CachedInputTokens *int64   `json:"cached_input_tokens,omitempty"`
	OutputTokens      *int64   `json:"output_tokens,omitempty"`
	TotalTokens       *int64   `json:"total_tokens,omitempty"`
	ToolCalls         *int64   `json:"tool_calls,omitempty"`
	CostUSD           *float64 `json:"cost_usd,omitempty"`
}

// RunCompletion is a completed run.
type RunCompletion struct {
	RunID              string     `json:"run_id"`
	AssistantMessageID string     `json:"assistant_message_id"`
	Status             TurnStatus `json:"status"`
	CompletedAt        time.Time  `json:"completed_at"`
	// Replayed tells that the run was completed by the same completion before.
	Replayed bool `json:"idempotent_replay"`
}

// Complete completes a run, for good. Refusals: run_not_found, run_completion_conflict,
// assistant_message_conflict.
func (s *Session) Complete(ctx context.Context, runID string, c Completion) (*RunCompletion, error) {
	id, ok := parseUUID(runID)
	switch {
	case !ok:
		return nil, invalid("the run's id is no UUID")
	case !isIdentifier(c.AssistantMessageID):
		return nil, invalid("the assistant message's id is no identifier")
	case c.Status != Completed && c.Status != Failed && c.Status != Cancelled:
		return nil, invalid("a run ends completed, failed or cancelled")
	case !isClean(c.Content) || c.Status == Completed && strings.TrimFunc(c.Content, isTrimmed) == "":
		return nil, invalid("the content is no visible text")
	case !utf8.ValidString(c.Model) || !utf8.ValidString(c.Runtime):
		return nil, invalid("model and runtime are names")
	}
	body, err := encodeRun(c)
	if err != nil {
		return nil, err
	}
	var done RunCompletion
	if err := s.ask(ctx, post("/agent-api/v1/runs/"+id+"/complete", body), "bailing.agent-run-completion.v1", &done); err != nil {
		return nil, err
	}
	return &done, nil
}

// encodeRun encodes the body of a request about a run, within its limit.
func encodeRun(v any) ([]byte, error) {
	body, err := encode(v)
	if err == nil && len(body) > maxRunBytes {
		return nil, overLimit("a request about a run has at most 512 KiB")
	}
	return body, err
}
