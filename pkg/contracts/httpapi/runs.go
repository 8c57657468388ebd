package httpapi

import (
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/run"
)

// Schema names of the surface of runs.
const (
	SchemaWorkspaces     = "bailing.agent-workspaces.v1"
	SchemaRuntimeProfile = "bailing.agent-runtime-profile.v1"
	SchemaTurnContext    = "bailing.agent-turn-context.v1"
	SchemaRunCompletion  = "bailing.agent-run-completion.v1"
	SchemaTraceAck       = "verbatim.run-trace-ack.v1"
)

// MaxRunBytes is the size of a request body about a run: 512 KiB.
const MaxRunBytes = 512 << 10

// Bounded lists; see bounded.go.
type (
	rendererList   []string
	traceEventList []TraceEvent
)

// UnmarshalJSONFrom reads at most 32 elements.
func (l *rendererList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList((*[]string)(l), dec, run.MaxRenderers)
}

// UnmarshalJSONFrom reads at most 200 elements.
func (l *traceEventList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList((*[]TraceEvent)(l), dec, run.MaxBatchEvents)
}

// Turn is the body that opens a run: what is absent is nil.
type Turn struct {
	ClientConversationID string         `json:"client_conversation_id"`
	ClientTurnID         string         `json:"client_turn_id"`
	UserMessageID        string         `json:"user_message_id"`
	UserInput            string         `json:"user_input"`
	PageContext          jsontext.Value `json:"page_context"`
	Renderers            *rendererList  `json:"renderers"`
}

// DecodeTurn reads a turn. A page context may hold nulls, and only that.
func DecodeTurn(data []byte) (Turn, error) {
	var t Turn
	err := decode(data, &t, "/page_context")
	return t, err
}

// Completion is the body that ends a run: what is absent is nil.
type Completion struct {
	AssistantMessageID string  `json:"assistant_message_id"`
	Status             string  `json:"status"`
	Content            *string `json:"content"`
	Model              *string `json:"model"`
	Runtime            *string `json:"runtime"`
	Usage              *Usage  `json:"usage"`
}

// Usage is what a run used, in tokens, calls and US dollars.
type Usage struct {
	InputTokens       *Sequence `json:"input_tokens"`
	CachedInputTokens *Sequence `json:"cached_input_tokens"`
	OutputTokens      *Sequence `json:"output_tokens"`
	TotalTokens       *Sequence `json:"total_tokens"`
	ToolCalls         *Sequence `json:"tool_calls"`
	CostUSD           *float64  `json:"cost_usd"`
}

// DecodeCompletion reads a completion.
func DecodeCompletion(data []byte) (Completion, error) {
	var c Completion
	err := Decode(data, &c)
	return c, err
}

// TraceEvents is the body that records what happened in a run.
type TraceEvents struct {
	Events traceEventList `json:"events"`
}

// TraceEvent is one trace event as submitted: what is absent is nil.
type TraceEvent struct {
	EventID    string         `json:"event_id"`
	Event      string         `json:"event"`
	OccurredAt string         `json:"occurred_at"`
	JobID      *string        `json:"job_id"`
	Metadata   jsontext.Value `json:"metadata"`
}

// DecodeTraceEvents reads trace events. Metadata may hold nulls, which are dropped like
// everything that it may not keep.
func DecodeTraceEvents(data []byte) (TraceEvents, error) {
	var t TraceEvents
	err := decode(data, &t, "/events/*/metadata")
	return t, err
}

// Workspaces are the routes that a session may use, by key.
type Workspaces struct {
	Schema string `json:"schema"`
	// Revision names the content: it is the SHA-256 of the rest, in hexadecimal.
	Revision   string      `json:"revision,omitzero"`
	Workspaces []Workspace `json:"workspaces"`
}

// Workspace is one route; its revision is that of its runtime profile.
type Workspace struct {
	RouteKey string `json:"route_key"`
	Name     string `json:"name"`
	Revision string `json:"revision"`
}

// NewWorkspaces returns the answer for the given routes, with its revision.
func NewWorkspaces(routes []run.Workspace) (Workspaces, error) {
	out := Workspaces{Schema: SchemaWorkspaces, Workspaces: make([]Workspace, len(routes))}
	for i, route := range routes {
		profile, err := NewRuntimeProfile(route)
		if err != nil {
			return Workspaces{}, err
		}
		out.Workspaces[i] = Workspace{RouteKey: route.RouteKey, Name: route.Name, Revision: profile.Revision}
	}
	var err error
	out.Revision, err = run.Revision(out)
	return out, err
}

// Nothing is a list of what Verbatim does not plan: it is always empty.
type Nothing []struct{}

// RuntimeProfile is what an agent is told about a route before its first turn.
type RuntimeProfile struct {
	Schema string `json:"schema"`
	// Revision names the content: it is the SHA-256 of the rest, in hexadecimal.
	Revision     string  `json:"revision,omitzero"`
	RouteKey     string  `json:"route_key"`
	Name         string  `json:"name"`
	Instructions string  `json:"instructions"` // "" for none
	Knowledge    Nothing `json:"knowledge"`
	Memory       Nothing `json:"memory"`
	Tools        Nothing `json:"tools"`
}

// NewRuntimeProfile returns the answer for one route, with its revision.
func NewRuntimeProfile(route run.Workspace) (RuntimeProfile, error) {
	out := RuntimeProfile{
		Schema: SchemaRuntimeProfile, RouteKey: route.RouteKey, Name: route.Name, Instructions: route.Instructions,
		Knowledge: Nothing{}, Memory: Nothing{}, Tools: Nothing{},
	}
	var err error
	out.Revision, err = run.Revision(out)
	return out, err
}

// TurnContext answers a turn: the run that it opened and the request again, with the
// route's instructions as of the first answer.
type TurnContext struct {
	Schema               string         `json:"schema"`
	RunID                string         `json:"run_id"`
	ThreadID             int64          `json:"thread_id"`
	RouteKey             string         `json:"route_key"`
	ClientConversationID string         `json:"client_conversation_id"`
	ClientTurnID         string         `json:"client_turn_id"`
	UserMessageID        string         `json:"user_message_id"`
	UserInput            string         `json:"user_input"`
	PageContext          jsontext.Value `json:"page_context,omitzero"` // names sorted, no white space
	Renderers            []string       `json:"renderers,omitzero"`
	Instructions         string         `json:"instructions"`
	Knowledge            Nothing        `json:"knowledge"`
	Memory               Nothing        `json:"memory"`
	Tools                Nothing        `json:"tools"`
	CreatedAt            string         `json:"created_at"`
}

// RunCompletion answers a completion; IdempotentReplay is true when it was stored before.
type RunCompletion struct {
	Schema             string `json:"schema"`
	RunID              string `json:"run_id"`
	AssistantMessageID string `json:"assistant_message_id"`
	Status             string `json:"status"`
	CompletedAt        string `json:"completed_at"`
	IdempotentReplay   bool   `json:"idempotent_replay"`
}

// TraceAck answers trace events: how many are new, how many were stored before, how many
// fields of this request were dropped, and the position of the run's last event.
type TraceAck struct {
	Schema        string `json:"schema"`
	RunID         string `json:"run_id"`
	Accepted      int    `json:"accepted"`
	Skipped       int    `json:"skipped"`
	DroppedFields int    `json:"dropped_fields"`
	LastPosition  int    `json:"last_position"`
}
