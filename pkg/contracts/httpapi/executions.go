package httpapi

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/trace"
)

// Schema names of the surface of executions.
const (
	SchemaExecution    = "verbatim.execution.v1"
	SchemaExecutionAck = "verbatim.execution-ack.v1"
)

// Attribution headers of the surface of executions.
const (
	HeaderAgentUserID     = "X-Agent-User-Id"
	HeaderAgentChannelID  = "X-Agent-Channel-Id"
	HeaderAgentRole       = "X-Agent-Role"
	HeaderAgentInstanceID = "X-Agent-Instance-Id"
	HeaderAgentTaskID     = "X-Agent-Task-Id"
)

// Bounded lists; see bounded.go.
type (
	executionEventList   []ExecutionEvent
	executionAttemptList []ExecutionAttempt
	taskIDList           []string
	allowedActionList    []string
	// toolCalls is how many tool calls there were, sent as a number or as the list of them.
	toolCalls int64
)

// UnmarshalJSONFrom reads at most 200 elements.
func (l *executionEventList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList((*[]ExecutionEvent)(l), dec, execution.MaxBatch)
}

// UnmarshalJSONFrom reads at most 200 elements.
func (l *executionAttemptList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList((*[]ExecutionAttempt)(l), dec, execution.MaxBatch)
}

// UnmarshalJSONFrom reads at most 10,000 elements.
func (l *taskIDList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList((*[]string)(l), dec, execution.MaxTaskIDs)
}

// UnmarshalJSONFrom reads at most 64 elements.
func (l *allowedActionList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList((*[]string)(l), dec, execution.MaxAllowedActions)
}

// UnmarshalJSONFrom counts a list without keeping anything of it.
func (n *toolCalls) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindBeginArray {
		return (*Sequence)(n).UnmarshalJSONFrom(dec)
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	calls, ok := trace.CountCalls(raw)
	if !ok {
		return ErrInvalid
	}
	*n = toolCalls(calls)
	return nil
}

// decodeExecution is Decode for bodies in which a null is an absent field. A null in a
// list is an element, which no list may hold.
func decodeExecution[T any](data []byte) (T, error) {
	var v, none T
	if jsontext.Value(data).Kind() != jsontext.KindBeginObject ||
		json.Unmarshal(data, &v, json.RejectUnknownMembers(true)) != nil {
		return none, ErrInvalid
	}
	return v, nil
}

// ExecutionOpening is the body that opens an execution: what is absent is nil.
type ExecutionOpening struct {
	ManagerDeploymentID *string `json:"manager_deployment_id"`
	DeploymentID        *string `json:"deployment_id"`
	CorrelationID       *string `json:"correlation_id"`
	RunID               *string `json:"run_id"`
}

// DecodeExecutionOpening reads an opening.
func DecodeExecutionOpening(data []byte) (ExecutionOpening, error) {
	return decodeExecution[ExecutionOpening](data)
}

// ExecutionEvents is the body that records what happened in an execution.
type ExecutionEvents struct {
	Events executionEventList `json:"events"`
}

// ExecutionEvent is one event as submitted: what is absent is nil.
type ExecutionEvent struct {
	EventID         string         `json:"event_id"`
	EventType       string         `json:"event_type"`
	OccurredAt      string         `json:"occurred_at"`
	TaskID          *string        `json:"task_id"`
	AgentInstanceID *string        `json:"agent_instance_id"`
	CorrelationID   *string        `json:"correlation_id"`
	Payload         jsontext.Value `json:"payload"`
}

// DecodeExecutionEvents reads events. A payload may hold everything that is JSON; the
// rules say what of it is kept.
func DecodeExecutionEvents(data []byte) (ExecutionEvents, error) {
	return decodeExecution[ExecutionEvents](data)
}

// ExecutionTask is the body that tells all about a task: what is absent is nil.
type ExecutionTask struct {
	ParentTaskID    *string     `json:"parent_task_id"`
	RootTaskID      *string     `json:"root_task_id"`
	ChildTaskIDs    *taskIDList `json:"child_task_ids"`
	DependsOn       *taskIDList `json:"depends_on"`
	Source          *string     `json:"source"`
	AgentRole       *string     `json:"agent_role"`
	AssignedAgentID *string     `json:"assigned_agent_id"`
	RetryCount      *Sequence   `json:"retry_count"`
	CreatedAt       *string     `json:"created_at"`
	UpdatedAt       *string     `json:"updated_at"`
	Usage           *TaskUsage  `json:"usage"`
	ToolCalls       *toolCalls  `json:"tool_calls"`
	ToolCount       *Sequence   `json:"tool_count"`
}

// TaskUsage is what a task used.
type TaskUsage struct {
	ModelID      *string   `json:"model_id"`
	InputTokens  *Sequence `json:"input_tokens"`
	OutputTokens *Sequence `json:"output_tokens"`
	TotalTokens  *Sequence `json:"total_tokens"`
}

// DecodeExecutionTask reads what is said of a task, as the rules take it.
func DecodeExecutionTask(data []byte) (execution.TaskFields, error) {
	t, err := decodeExecution[ExecutionTask](data)
	if err != nil {
		return execution.TaskFields{}, err
	}
	f := execution.TaskFields{
		ParentTaskID: t.ParentTaskID, RootTaskID: t.RootTaskID, ChildTaskIDs: listOf(t.ChildTaskIDs), DependsOn: listOf(t.DependsOn),
		Source: t.Source, AgentRole: t.AgentRole, AssignedAgentID: t.AssignedAgentID, RetryCount: (*int64)(t.RetryCount),
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, ToolCalls: (*int64)(t.ToolCalls), ToolCount: (*int64)(t.ToolCount),
	}
	if u := t.Usage; u != nil {
		f.ModelID, f.InputTokens = u.ModelID, (*int64)(u.InputTokens)
		f.OutputTokens, f.TotalTokens = (*int64)(u.OutputTokens), (*int64)(u.TotalTokens)
	}
	return f, nil
}

// ExecutionApproval is the body that tells all about an approval: what is absent is nil.
type ExecutionApproval struct {
	Operation     *string `json:"operation"`
	RiskLevel     *string `json:"risk_level"`
	Decision      *string `json:"decision"`
	CredentialRef *string `json:"credential_ref"`
	LeaseID       *string `json:"lease_id"`
	Scope         *string `json:"scope"`
	ExpiresAt     *string `json:"expires_at"`
	Reason        *string `json:"reason"`
	DecidedAt     *string `json:"decided_at"`
}

// DecodeExecutionApproval reads what is said of an approval.
func DecodeExecutionApproval(data []byte) (ExecutionApproval, error) {
	return decodeExecution[ExecutionApproval](data)
}

// ExecutionGrant is the body that tells all about a grant: what is absent is nil.
type ExecutionGrant struct {
	SecretRef      *string            `json:"secret_ref"`
	AllowedActions *allowedActionList `json:"allowed_actions"`
	Constraints    jsontext.Value     `json:"constraints"`
	ExpiresAt      *string            `json:"expires_at"`
	Status         *string            `json:"status"`
	CreatedBy      *string            `json:"created_by"`
	RevokedBy      *string            `json:"revoked_by"`
	CreatedAt      *string            `json:"created_at"`
	RevokedAt      *string            `json:"revoked_at"`
}

// DecodeExecutionGrant reads what is said of a grant, as the rules take it.
func DecodeExecutionGrant(data []byte) (execution.GrantFields, error) {
	g, err := decodeExecution[ExecutionGrant](data)
	if err != nil {
		return execution.GrantFields{}, err
	}
	return execution.GrantFields{
		SecretRef: g.SecretRef, AllowedActions: listOf(g.AllowedActions), Constraints: g.Constraints, ExpiresAt: g.ExpiresAt,
		Status: g.Status, CreatedBy: g.CreatedBy, RevokedBy: g.RevokedBy, CreatedAt: g.CreatedAt, RevokedAt: g.RevokedAt,
	}, nil
}

// ExecutionAttempts is the body that records attempts to deliver callbacks.
type ExecutionAttempts struct {
	Attempts executionAttemptList `json:"attempts"`
}

// ExecutionAttempt is one attempt as submitted.
type ExecutionAttempt struct {
	AttemptID   string         `json:"attempt_id"`
	EventID     string         `json:"event_id"`
	EventType   string         `json:"event_type"`
	URL         string         `json:"url"`
	Status      jsontext.Value `json:"status"`
	AttemptedAt string         `json:"attempted_at"`
}

// DecodeExecutionAttempts reads callback attempts.
func DecodeExecutionAttempts(data []byte) (ExecutionAttempts, error) {
	return decodeExecution[ExecutionAttempts](data)
}

// listOf returns the elements of an optional list, nil for none.
func listOf[L ~[]string](l *L) []string {
	if l == nil {
		return nil
	}
	return *l
}

// Execution answers an opening.
type Execution struct {
	Schema       string        `json:"schema"`
	SwarmID      string        `json:"swarm_id"`
	Lineage      trace.Lineage `json:"lineage"`
	RunID        *string       `json:"run_id"` // null for none
	LastPosition int           `json:"last_position"`
	CreatedAt    string        `json:"created_at"`
}

// NewExecution returns the answer about an execution; what its opening left out is null.
func NewExecution(o execution.Opening, lastPosition int, createdAt time.Time) Execution {
	known := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return Execution{
		Schema: SchemaExecution, SwarmID: o.SwarmID, RunID: known(string(o.RunID)), LastPosition: lastPosition,
		CreatedAt: FormatTime(createdAt), Lineage: trace.Lineage{
			ManagerDeploymentID: known(o.ManagerDeploymentID), DeploymentID: known(o.DeploymentID),
			SwarmID: known(o.SwarmID), CorrelationID: known(o.CorrelationID),
		},
	}
}

// ExecutionEventsAck answers events: how many are new, how many were stored before, how
// many fields of this request were dropped, and the position of the run's last event.
type ExecutionEventsAck struct {
	Schema        string `json:"schema"`
	SwarmID       string `json:"swarm_id"`
	Accepted      int    `json:"accepted"`
	Skipped       int    `json:"skipped"`
	DroppedFields int    `json:"dropped_fields"`
	LastPosition  int    `json:"last_position"`
}

// ExecutionFactAck answers what was said of a task, an approval or a grant.
type ExecutionFactAck struct {
	Schema        string `json:"schema"`
	SwarmID       string `json:"swarm_id"`
	Changed       bool   `json:"changed"`
	DroppedFields int    `json:"dropped_fields"`
}

// ExecutionAttemptsAck answers callback attempts; LastPosition is that of the run's last one.
type ExecutionAttemptsAck struct {
	Schema       string `json:"schema"`
	SwarmID      string `json:"swarm_id"`
	Accepted     int    `json:"accepted"`
	Skipped      int    `json:"skipped"`
	LastPosition int    `json:"last_position"`
}
