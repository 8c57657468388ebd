package kit

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ExecutionsPath is where orchestrators tell of their runs of many sub-agents.
const ExecutionsPath = "/runtime-api/v1/runs"

// Kinds of facts, as their paths name them.
const (
	Tasks     = "tasks"
	Approvals = "approvals"
	Grants    = "grants"
)

// Orchestrator is a client's backend that tells of one execution. Its methods with a
// context are for any goroutine, the others for the test's own.
type Orchestrator struct {
	Ingest      *Endpoint
	ClientAppID string
	Bearer      string // the client's own
	SwarmID     string
	// Header is sent with every call: the attribution.
	Header http.Header
}

// Opening is the body that opens an execution.
type Opening struct {
	ManagerDeploymentID string `json:"manager_deployment_id,omitempty"`
	DeploymentID        string `json:"deployment_id,omitempty"`
	CorrelationID       string `json:"correlation_id,omitempty"`
	RunID               string `json:"run_id,omitempty"`
}

// ExecutionEvent is one thing that happened in an execution.
type ExecutionEvent struct {
	EventID         string         `json:"event_id"`
	EventType       string         `json:"event_type"`
	OccurredAt      string         `json:"occurred_at"`
	TaskID          string         `json:"task_id,omitempty"`
	AgentInstanceID string         `json:"agent_instance_id,omitempty"`
	CorrelationID   string         `json:"correlation_id,omitempty"`
	Payload         map[string]any `json:"payload,omitempty"`
}

// CallbackAttempt is one attempt to deliver a callback.
type CallbackAttempt struct {
	AttemptID   string `json:"attempt_id"`
	EventID     string `json:"event_id"`
	EventType   string `json:"event_type"`
	URL         string `json:"url"`
	Status      any    `json:"status"`
	AttemptedAt string `json:"attempted_at"`
}

// ExecutionAck is what recording events or attempts answers.
type ExecutionAck struct {
	Accepted      int `json:"accepted"`
	Skipped       int `json:"skipped"`
	DroppedFields int `json:"dropped_fields"`
	LastPosition  int `json:"last_position"`
}

// FactAck is what putting a fact answers.
type FactAck struct {
	Changed       bool `json:"changed"`
	DroppedFields int  `json:"dropped_fields"`
}

// Orchestrator returns a client's backend that tells of the execution that it calls swarmID.
func (d *Deployment) Orchestrator(clientAppID, swarmID string) *Orchestrator {
	return &Orchestrator{Ingest: d.Ingest, ClientAppID: clientAppID, Bearer: d.Bearer("client " + clientAppID), SwarmID: swarmID}
}

// Path returns a path below the execution's; each part is escaped, so that a slash in an
// id stays in it.
func (o *Orchestrator) Path(parts ...string) string {
	return ExecutionsPath + escaped(append([]string{o.SwarmID}, parts...)...)
}

func escaped(parts ...string) string {
	var path strings.Builder
	for _, part := range parts {
		path.WriteString("/" + url.PathEscape(part))
	}
	return path.String()
}

// Request returns a call: PUT of the execution and its facts, POST of what is appended.
func (o *Orchestrator) Request(body any, parts ...string) Request {
	method := http.MethodPut
	if len(parts) == 1 {
		method = http.MethodPost
	}
	return Request{Method: method, Path: o.Path(parts...), Bearer: o.Bearer, Body: JSON(body), Header: o.Header}
}

// Send makes a call: no parts open the execution, one names what is appended ("events",
// "callback-attempts"), two a kind of facts and an id.
func (o *Orchestrator) Send(ctx context.Context, body any, parts ...string) (Response, error) {
	return o.Ingest.Do(ctx, o.Request(body, parts...))
}

// Must is Send for the test's own goroutine.
func (o *Orchestrator) Must(body any, parts ...string) Response {
	return o.Ingest.Must(o.Request(body, parts...))
}

// Open opens the execution, or opens it again.
func (o *Orchestrator) Open(t *testing.T, opening any) {
	t.Helper()
	answer := o.Must(opening)
	require.Contains(t, []int{http.StatusCreated, http.StatusOK}, answer.Status, "body: %s", answer.Body)
}

// Record records what happened.
func (o *Orchestrator) Record(t *testing.T, events ...ExecutionEvent) (ack ExecutionAck) {
	t.Helper()
	o.Must(map[string]any{"events": events}, "events").Decode(t, http.StatusOK, &ack)
	require.Equal(t, len(events), ack.Accepted+ack.Skipped)
	return ack
}

// Put says all that is known of a task, an approval or a grant.
func (o *Orchestrator) Put(t *testing.T, kind, id string, facts any) (ack FactAck) {
	t.Helper()
	o.Must(facts, kind, id).Decode(t, http.StatusOK, &ack)
	return ack
}

// Attempt records attempts to deliver callbacks.
func (o *Orchestrator) Attempt(t *testing.T, attempts ...CallbackAttempt) (ack ExecutionAck) {
	t.Helper()
	o.Must(map[string]any{"attempts": attempts}, "callback-attempts").Decode(t, http.StatusOK, &ack)
	require.Equal(t, len(attempts), ack.Accepted+ack.Skipped)
	return ack
}
