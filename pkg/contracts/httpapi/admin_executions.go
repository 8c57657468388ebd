package httpapi

import (
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/trace"
)

// Schema names of what administrators read about executions. The paths call them runs.
const (
	SchemaRuns            = "verbatim.runs.v1"
	SchemaRunCandidates   = "verbatim.run-candidates.v1"
	SchemaAuditTrace      = "verbatim.audit-trace.v1"
	SchemaRunEvents       = "verbatim.run-events.v1"
	SchemaRunLineage      = "verbatim.run-lineage.v1"
	SchemaRunApprovals    = "verbatim.run-approvals.v1"
	SchemaRunGrants       = "verbatim.run-grants.v1"
	SchemaRunDiagnostics  = "verbatim.run-diagnostics.v1"
	SchemaUsage           = "verbatim.usage.v1"
	ContentTypeAuditTrace = "application/x-ndjson" // a record a line
)

// ExecutionList is a page of executions, the latest stored event first.
type ExecutionList struct {
	Schema     string          `json:"schema"`
	Items      []ExecutionView `json:"items"`
	HasMore    bool            `json:"has_more"`
	NextCursor *string         `json:"next_cursor"` // null on the last page
}

// ExecutionView is the header of an execution. ThreadID is null without an authorization
// run in a thread; ConversationAuditID is there when an archive links to that run.
type ExecutionView struct {
	ClientAppID         string        `json:"client_app_id"`
	SwarmID             string        `json:"swarm_id"`
	Lineage             trace.Lineage `json:"lineage"`
	RunID               *string       `json:"run_id"`
	ThreadID            *int64        `json:"thread_id"`
	ConversationAuditID *string       `json:"conversation_audit_id,omitzero"`
	Result              trace.Result  `json:"result"`
	EventCount          int64         `json:"event_count"`
	CreatedAt           string        `json:"created_at"`
	// LatestAt is when the latest event was stored, CreatedAt without one.
	LatestAt string `json:"latest_at"`
}

// ExecutionCandidates answers an id that several executions have: the latest 100 of them.
type ExecutionCandidates struct {
	Schema     string               `json:"schema"`
	Candidates []ExecutionCandidate `json:"candidates"`
}

// ExecutionCandidate is an execution that an id may mean.
type ExecutionCandidate struct {
	ClientAppID string        `json:"client_app_id"`
	SwarmID     string        `json:"swarm_id"`
	Lineage     trace.Lineage `json:"lineage"`
	RunID       *string       `json:"run_id"`
	CreatedAt   string        `json:"created_at"`
	LatestAt    string        `json:"latest_at"`
}

// RunExecution is an execution that an authorization run says it belongs to.
type RunExecution struct {
	ClientAppID string       `json:"client_app_id"`
	SwarmID     string       `json:"swarm_id"`
	Result      trace.Result `json:"result"`
}

// ReplayPage is a page of an execution's audit trace as lines for a person.
type ReplayPage struct {
	Lines      []string `json:"lines"`
	NextCursor *int64   `json:"next_cursor"` // null on the last page
}

// ExecutionEventList is a page of stored events, by position.
type ExecutionEventList struct {
	Schema     string               `json:"schema"`
	Lineage    trace.Lineage        `json:"lineage"`
	Events     []ExecutionEventView `json:"events"`
	NextCursor *int64               `json:"next_cursor"` // null on the last page
}

// ExecutionEventView is a stored event: metadata only.
type ExecutionEventView struct {
	Position        int64   `json:"position"` // the ordinal of its audit record
	EventID         string  `json:"event_id"`
	EventType       string  `json:"event_type"`
	OccurredAt      string  `json:"occurred_at"`
	TaskID          *string `json:"task_id"`
	AgentInstanceID *string `json:"agent_instance_id"`
	AgentRole       *string `json:"agent_role"` // by the attribution headers
	UserID          *string `json:"user_id"`
	ChannelID       *string `json:"channel_id"`
	// Payload is an object of scalars.
	Payload jsontext.Value `json:"payload"`
	// DroppedFields are the names, never values, of what was not kept; DroppedCount also
	// counts what has no name that may be shown.
	DroppedFields []string `json:"dropped_fields"`
	DroppedCount  int      `json:"dropped_count"`
	RecordedAt    string   `json:"recorded_at"`
}

// ApprovalList is a page of the approvals of an execution, by their ids.
type ApprovalList struct {
	Schema     string         `json:"schema"`
	Lineage    trace.Lineage  `json:"lineage"`
	Approvals  []ApprovalView `json:"approvals"`
	NextCursor *string        `json:"next_cursor"` // null on the last page
}

// ApprovalView is what is known of an approval. The credential is a reference.
type ApprovalView struct {
	ApprovalID    string       `json:"approval_id"`
	Operation     *string      `json:"operation"`
	RiskLevel     *string      `json:"risk_level"`
	Decision      *string      `json:"decision"` // null: undecided
	CredentialRef *string      `json:"credential_ref"`
	LeaseID       *string      `json:"lease_id"`
	Scope         *string      `json:"scope"`
	ExpiresAt     *string      `json:"expires_at"`
	Reason        *string      `json:"reason"` // redacted
	DecidedAt     *string      `json:"decided_at"`
	DecidedBy     *DeciderView `json:"decided_by"`
}

// DeciderView is whom a decision was attributed to.
type DeciderView struct {
	UserID    *string `json:"user_id"`
	ChannelID *string `json:"channel_id"`
}

// GrantList is a page of the grants of an execution, by their ids.
type GrantList struct {
	Schema     string        `json:"schema"`
	Lineage    trace.Lineage `json:"lineage"`
	Grants     []GrantView   `json:"grants"`
	NextCursor *string       `json:"next_cursor"` // null on the last page
}

// GrantView is what is known of a grant: a reference to a secret and what may be done
// with it.
type GrantView struct {
	GrantID        string   `json:"grant_id"`
	SecretRef      *string  `json:"secret_ref"`
	AllowedActions []string `json:"allowed_actions"`
	// Constraints is an object of scalars.
	Constraints jsontext.Value `json:"constraints"`
	ExpiresAt   *string        `json:"expires_at"`
	Status      *string        `json:"status"`
	CreatedBy   *string        `json:"created_by"`
	RevokedBy   *string        `json:"revoked_by"`
	CreatedAt   *string        `json:"created_at"`
	RevokedAt   *string        `json:"revoked_at"`
}

// Diagnostics is a page of the callback attempts of an execution, in the order of their
// storage, with the events that they were for. Totals are over all of its attempts.
type Diagnostics struct {
	Schema     string            `json:"schema"`
	Lineage    trace.Lineage     `json:"lineage"`
	Attempts   []AttemptView     `json:"attempts"`
	Events     []EventDelivery   `json:"events"` // of the page's attempts, by event id
	Totals     DiagnosticsTotals `json:"totals"`
	NextCursor *int64            `json:"next_cursor"` // null on the last page
}

// AttemptView is one attempt to deliver a callback. Of its URL there is where it leads and
// by which it can be recognised.
type AttemptView struct {
	Position    int64          `json:"position"`
	AttemptID   string         `json:"attempt_id"`
	EventID     string         `json:"event_id"`
	EventType   string         `json:"event_type"`
	Scheme      string         `json:"scheme"`
	Host        string         `json:"host"`
	Port        int            `json:"port"`
	URLSHA256   string         `json:"url_sha256"`
	Status      jsontext.Value `json:"status"` // a string or a number
	Delivered   bool           `json:"delivered"`
	AttemptedAt string         `json:"attempted_at"`
}

// EventDelivery is what all attempts for one event came to. It was delivered when one of
// them was.
type EventDelivery struct {
	EventID    string         `json:"event_id"`
	Attempts   int64          `json:"attempts"`
	LastStatus jsontext.Value `json:"last_status"`
	Delivered  bool           `json:"delivered"`
}

// DiagnosticsTotals counts attempts and the events that they were for. FailureRate is
// FailedAttempts of Attempts, null without any.
type DiagnosticsTotals struct {
	Attempts       int64    `json:"attempts"`
	FailedAttempts int64    `json:"failed_attempts"`
	FailureRate    *float64 `json:"failure_rate"`
	Events         int64    `json:"events"`
	Delivered      int64    `json:"delivered"`
	Undelivered    int64    `json:"undelivered"`
}

// UsageReport is a page of what tasks used, by one axis over a time, by key; what has
// no key comes last.
type UsageReport struct {
	Schema     string     `json:"schema"`
	By         string     `json:"by"`
	Since      *string    `json:"since"`
	Until      *string    `json:"until"`
	Items      []UsageSum `json:"items"`
	HasMore    bool       `json:"has_more"`
	NextCursor *string    `json:"next_cursor"` // null on the last page
}

// UsageSum is the sum of what tasks said that they used. Numbers are integers of any size.
type UsageSum struct {
	Key          *string        `json:"key"` // null: of tasks that name none
	Tasks        int64          `json:"tasks"`
	InputTokens  jsontext.Value `json:"input_tokens"`
	OutputTokens jsontext.Value `json:"output_tokens"`
	TotalTokens  jsontext.Value `json:"total_tokens"`
	ToolCalls    jsontext.Value `json:"tool_calls"`
}
