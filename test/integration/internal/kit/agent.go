package kit

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// AgentPath is where agents open runs.
const AgentPath = "/agent-api/v1"

// Agent is a program with a session of its own and its present tokens.
type Agent struct {
	Tokens

	d *Deployment
}

// TurnRequest is the body that opens a run.
type TurnRequest struct {
	ClientConversationID string         `json:"client_conversation_id"`
	ClientTurnID         string         `json:"client_turn_id"`
	UserMessageID        string         `json:"user_message_id"`
	UserInput            string         `json:"user_input"`
	PageContext          map[string]any `json:"page_context,omitempty"`
	Renderers            []string       `json:"renderers,omitempty"`
}

// TurnContext is what opening a run answers.
type TurnContext struct {
	RunID                string `json:"run_id"`
	ThreadID             int64  `json:"thread_id"`
	RouteKey             string `json:"route_key"`
	ClientConversationID string `json:"client_conversation_id"`
	ClientTurnID         string `json:"client_turn_id"`
	UserInput            string `json:"user_input"`
	Instructions         string `json:"instructions"`
	CreatedAt            string `json:"created_at"`
}

// Completion is the body that completes a run.
type Completion struct {
	AssistantMessageID string         `json:"assistant_message_id"`
	Status             string         `json:"status"`
	Content            string         `json:"content"`
	Model              string         `json:"model,omitempty"`
	Runtime            string         `json:"runtime,omitempty"`
	Usage              map[string]any `json:"usage,omitempty"`
}

// RunCompletion is what completing a run answers.
type RunCompletion struct {
	RunID            string `json:"run_id"`
	Status           string `json:"status"`
	CompletedAt      string `json:"completed_at"`
	IdempotentReplay bool   `json:"idempotent_replay"`
}

// TraceEvent is one thing that a host says happened in a run.
type TraceEvent struct {
	EventID    string         `json:"event_id"`
	Event      string         `json:"event"`
	OccurredAt string         `json:"occurred_at"`
	JobID      string         `json:"job_id,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
}

// TraceAck is what recording trace events answers.
type TraceAck struct {
	Accepted      int `json:"accepted"`
	Skipped       int `json:"skipped"`
	DroppedFields int `json:"dropped_fields"`
	LastPosition  int `json:"last_position"`
}

// Do makes a request with the agent's access token; a nil body is none.
func (a *Agent) Do(method, path string, body any) Response {
	r := Request{Method: method, Path: path, Bearer: a.AccessToken}
	if body != nil {
		r.Body = JSON(body)
	}
	return a.d.Ingest.Must(r)
}

// RefreshGrant returns the body that renews the agent's tokens.
func (a *Agent) RefreshGrant() map[string]string {
	return map[string]string{"grant_type": "refresh_token", "client_app_id": a.ClientAppID, "refresh_token": a.RefreshToken}
}

// Refresh renews the agent's tokens. The session stays.
func (a *Agent) Refresh(t *testing.T) {
	t.Helper()
	before := a.Tokens
	a.d.Token(a.RefreshGrant()).Decode(t, http.StatusOK, &a.Tokens)
	require.Equal(t, before.SessionID, a.SessionID)
	require.NotEqual(t, before.AccessToken, a.AccessToken)
	require.NotEqual(t, before.RefreshToken, a.RefreshToken)
}

// Revoke ends the agent's own session.
func (a *Agent) Revoke(t *testing.T) {
	t.Helper()
	require.Equal(t, http.StatusOK, a.Do(http.MethodPost, AuthPath+"/revoke", nil).Status)
}

// NewTurn returns a turn of a conversation; its input holds Canary.
func NewTurn(conversation, turn string) TurnRequest {
	return TurnRequest{
		ClientConversationID: conversation, ClientTurnID: turn, UserMessageID: "user-" + turn, UserInput: Text(1),
		PageContext: map[string]any{"page": Canary, "selected": []string{"a"}, "filter": nil}, Renderers: []string{"markdown"},
	}
}

// Turn asks for the run of a turn.
func (a *Agent) Turn(route string, turn TurnRequest) Response {
	return a.Do(http.MethodPost, AgentPath+"/workspaces/"+route+"/turns", turn)
}

// OpenTurn opens the run of a turn.
func (a *Agent) OpenTurn(t *testing.T, route string, turn TurnRequest) TurnContext {
	t.Helper()
	var opened TurnContext
	a.Turn(route, turn).Decode(t, http.StatusOK, &opened)
	require.Equal(t, route, opened.RouteKey)
	require.Equal(t, turn.UserInput, opened.UserInput)
	return opened
}

// NewCompletion returns a completion of a turn; its content holds Canary.
func NewCompletion(turn string) Completion {
	return Completion{
		AssistantMessageID: "answer-" + turn, Status: "completed", Content: Text(2), Model: "model-1", Runtime: "agent-host/1.4.0",
		Usage: map[string]any{"input_tokens": 812, "cached_input_tokens": 512, "output_tokens": 97, "total_tokens": 909, "tool_calls": 1, "cost_usd": 0.0042},
	}
}

// Complete asks to complete a run.
func (a *Agent) Complete(runID string, c Completion) Response {
	return a.Do(http.MethodPost, AgentPath+"/runs/"+runID+"/complete", c)
}

// MustComplete completes a run.
func (a *Agent) MustComplete(t *testing.T, runID string, c Completion) RunCompletion {
	t.Helper()
	var done RunCompletion
	a.Complete(runID, c).Decode(t, http.StatusOK, &done)
	require.Equal(t, runID, done.RunID)
	return done
}

// ToolCall returns the events of one tool call that went well.
func ToolCall(jobID, at string) []TraceEvent {
	return []TraceEvent{
		{
			EventID: "called-" + jobID, Event: "tool.called", OccurredAt: at, JobID: jobID,
			Metadata: map[string]any{"tool": "orders.search", "provider": "crm", "method": "GET", "path": "/v1/orders/{id}", "argument_count": 2},
		},
		{
			EventID: "completed-" + jobID, Event: "tool.completed", OccurredAt: at, JobID: jobID,
			Metadata: map[string]any{"tool": "orders.search", "ok": true, "duration_ms": 120, "resp_bytes": 5120},
		},
	}
}

// RecordTrace asks to record what happened in a run.
func (a *Agent) RecordTrace(runID string, events ...TraceEvent) Response {
	return a.Do(http.MethodPost, AgentPath+"/runs/"+runID+"/trace-events", map[string]any{"events": events})
}

// MustRecordTrace records what happened in a run.
func (a *Agent) MustRecordTrace(t *testing.T, runID string, events ...TraceEvent) TraceAck {
	t.Helper()
	var ack TraceAck
	a.RecordTrace(runID, events...).Decode(t, http.StatusOK, &ack)
	require.Equal(t, len(events), ack.Accepted+ack.Skipped)
	return ack
}

// Admin reads from the admin API as an administrator who may read everything.
func (d *Deployment) Admin(path string) Response {
	d.t.Helper()
	return d.Auditview.Must(Request{Method: http.MethodGet, Path: "/admin/api" + path, Bearer: Viewer})
}
