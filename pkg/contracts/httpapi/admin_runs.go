package httpapi

import "github.com/go-json-experiment/json/jsontext"

// Schema names of what administrators read about runs and about the registry.
const (
	SchemaThreads         = "verbatim.threads.v1"
	SchemaThread          = "verbatim.thread.v1"
	SchemaRegistryChanges = "verbatim.registry-changes.v1"
)

// Kinds of traces.
const (
	TraceAgentRun = "agent_client_run"
	TraceToolJob  = "tool_job"
)

// Where an event of a trace comes from.
const (
	SourceHost   = "host"   // it says so
	SourceIngest = "ingest" // ingest saw it
)

// Severities of a trace's events.
const (
	SeverityInfo    = "info"
	SeverityWarning = "warning"
	SeverityError   = "error"
)

// ThreadList is a page of threads, the greatest thread id first.
type ThreadList struct {
	Schema     string   `json:"schema"`
	Items      []Thread `json:"items"`
	HasMore    bool     `json:"has_more"`
	NextBefore *int64   `json:"next_before"` // null on the last page
}

// Thread is the conversation thread of a (session, route, client conversation).
type Thread struct {
	ThreadID             int64  `json:"thread_id"`
	SessionID            string `json:"session_id"`
	ClientAppID          string `json:"client_app_id"`
	RouteKey             string `json:"route_key"`
	ClientConversationID string `json:"client_conversation_id"`
	RunCount             int64  `json:"run_count"`
	FirstRunAt           string `json:"first_run_at"`
	LastRunAt            string `json:"last_run_at"`
}

// ThreadDetail is a thread with a page of its runs, the first run first.
type ThreadDetail struct {
	Schema     string      `json:"schema"`
	Thread     Thread      `json:"thread"`
	Runs       []ThreadRun `json:"runs"`
	HasMore    bool        `json:"has_more"`
	NextOffset *int64      `json:"next_offset"` // null on the last page
}

// ThreadRun is a run in the list of a thread. ConversationAuditID is there when an archive
// links to it.
type ThreadRun struct {
	RunID               string  `json:"run_id"`
	ClientTurnID        string  `json:"client_turn_id"`
	Status              string  `json:"status"`
	Model               *string `json:"model"`
	Runtime             *string `json:"runtime"`
	CreatedAt           string  `json:"created_at"`
	CompletedAt         *string `json:"completed_at"`
	ConversationAuditID *string `json:"conversation_audit_id,omitzero"`
}

// RunTrace is an authorized run and what happened in it.
type RunTrace struct {
	Kind        string       `json:"kind"`
	Run         RunView      `json:"run"`
	Trace       TraceView    `json:"trace"`
	Invocations []Invocation `json:"invocations"`
}

// RunView is what administrators see of a run. ConversationAuditID is there when an archive
// links to it, Executions when orchestrators say that theirs belong to it: the first 100.
type RunView struct {
	RunID                string         `json:"run_id"`
	SessionID            string         `json:"session_id"`
	ClientAppID          string         `json:"client_app_id"`
	RouteKey             string         `json:"route_key"`
	ThreadID             int64          `json:"thread_id"`
	ClientConversationID string         `json:"client_conversation_id"`
	ClientTurnID         string         `json:"client_turn_id"`
	CreatedAt            string         `json:"created_at"`
	Status               string         `json:"status"`
	Model                *string        `json:"model"`
	Runtime              *string        `json:"runtime"`
	Usage                jsontext.Value `json:"usage"` // an object, or null
	CompletedAt          *string        `json:"completed_at"`
	Governance           Governance     `json:"governance"`
	ConversationAuditID  *string        `json:"conversation_audit_id,omitzero"`
	Executions           []RunExecution `json:"executions,omitzero"`
}

// Governance counts a trace's events about approvals, and the fields that were dropped
// from all of its events at the door.
type Governance struct {
	ApprovalsRequested int `json:"approvals_requested"`
	ApprovalsApproved  int `json:"approvals_approved"`
	ApprovalsRejected  int `json:"approvals_rejected"`
	DroppedFields      int `json:"dropped_fields"`
}

// JobTrace is a tool job and what happened in it. Its only invocation is the job's.
type JobTrace struct {
	Kind        string       `json:"kind"`
	Job         JobView      `json:"job"`
	Trace       TraceView    `json:"trace"`
	Invocations []Invocation `json:"invocations"`
}

// JobView is what administrators see of a tool job and the run that it belongs to.
// ConversationAuditID and ClientTurnID are there when an archive links to the run.
type JobView struct {
	JobID               string  `json:"job_id"`
	RunID               string  `json:"run_id"`
	ThreadID            *int64  `json:"thread_id"` // null for a run without a thread
	SessionID           string  `json:"session_id"`
	ClientAppID         string  `json:"client_app_id"`
	RouteKey            string  `json:"route_key"`
	Tool                *string `json:"tool"`
	Provider            *string `json:"provider"`
	Status              string  `json:"status"`
	Attempts            int64   `json:"attempts"`
	StartedAt           string  `json:"started_at"`
	FinishedAt          *string `json:"finished_at"`
	ConversationAuditID *string `json:"conversation_audit_id,omitzero"`
	ClientTurnID        *string `json:"client_turn_id,omitzero"`
}

// TraceView is what happened in a run or in a job, in order.
type TraceView struct {
	Summary TraceSummary     `json:"summary"`
	Events  []TraceEventView `json:"events"`
}

// TraceSummary counts what a trace shows. ToolInvocations are the jobs, and the tools that
// were called without one; Approvals are told apart by their id, else by their job.
// DurationMS is there when the run or the job has ended.
type TraceSummary struct {
	EventCount      int      `json:"event_count"`
	ToolInvocations int      `json:"tool_invocations"`
	Approvals       int      `json:"approvals"`
	WarningCount    int      `json:"warning_count"`
	ErrorCount      int      `json:"error_count"`
	DurationMS      *float64 `json:"duration_ms,omitzero"`
}

// TraceEventView is one thing that happened: metadata only.
type TraceEventView struct {
	// TS is RFC 3339 in UTC with 0 to 9 fractional digits.
	TS    string `json:"ts"`
	Event string `json:"event"`
	// Stage is the first part of Event.
	Stage    string `json:"stage"`
	Severity string `json:"severity"`
	// Title and Summary say for a person what Event and Detail say.
	Title     string         `json:"title"`
	Summary   string         `json:"summary"`
	Detail    jsontext.Value `json:"detail"`
	Source    string         `json:"source"`
	ToolJobID *string        `json:"tool_job_id,omitzero"`
}

// Invocation is what the events of one tool job say together. What none of them says is
// null.
type Invocation struct {
	JobID         string   `json:"job_id"`
	Tool          *string  `json:"tool"`
	Provider      *string  `json:"provider"`
	Scope         *string  `json:"scope"`
	Method        *string  `json:"method"`
	Path          *string  `json:"path"`
	Status        string   `json:"status"`
	OK            *bool    `json:"ok"`
	Attempts      int64    `json:"attempts"`
	StartedAt     string   `json:"started_at"`
	FinishedAt    *string  `json:"finished_at"`
	DurationMS    *float64 `json:"duration_ms"`
	ApprovalID    *string  `json:"approval_id"`
	ApprovalState *string  `json:"approval_state"`
	ArgumentCount *int64   `json:"argument_count"`
	ArgsBytes     *int64   `json:"args_bytes"`
	RespBytes     *int64   `json:"resp_bytes"`
}

// RegistryChangeList is a page of changes of the registry, the latest first.
type RegistryChangeList struct {
	Schema     string           `json:"schema"`
	Items      []RegistryChange `json:"items"`
	HasMore    bool             `json:"has_more"`
	NextBefore *int64           `json:"next_before"` // null on the last page
}

// RegistryChange is one change of one entry of the registry: who, when and what.
type RegistryChange struct {
	ChangeID string `json:"change_id"`
	Number   int64  `json:"number"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Action   string `json:"action"`
	// Fields name what was changed; Changes give those values that may be shown.
	Fields     []string              `json:"fields"`
	Changes    []RegistryFieldChange `json:"changes"`
	Actor      RegistryActor         `json:"actor"`
	RecordedAt string                `json:"recorded_at"`
}

// RegistryFieldChange is a field's value before and after. An absent value is null.
type RegistryFieldChange struct {
	Field string         `json:"field"`
	From  jsontext.Value `json:"from"`
	To    jsontext.Value `json:"to"`
}

// RegistryActor is who made a change; operators and the system itself have no name.
type RegistryActor struct {
	Kind string  `json:"kind"`
	Name *string `json:"name,omitzero"`
}
