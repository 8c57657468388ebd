package executionv1

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/trace"
)

// Execution is one orchestrated run as it was opened, for good: whose it is and where it
// belongs. What was not said is "".
type Execution struct {
	ExecutionID         string `json:"execution_id"`
	ClientAppID         string `json:"client_app_id"`
	SwarmID             string `json:"swarm_id"`
	ManagerDeploymentID string `json:"manager_deployment_id,omitzero"`
	DeploymentID        string `json:"deployment_id,omitzero"`
	CorrelationID       string `json:"correlation_id,omitzero"`
	// RunID is the authorization run that it belongs to.
	RunID string `json:"run_id,omitzero"`
	// UserID and ChannelID are whom the opening call was attributed to.
	UserID    string    `json:"user_id,omitzero"`
	ChannelID string    `json:"channel_id,omitzero"`
	CreatedAt time.Time `json:"created_at"`
}

// EventsRecorded says what happened in an execution: events, in order and without a gap.
type EventsRecorded struct {
	ExecutionID string  `json:"execution_id"`
	Events      []Event `json:"events"`
}

// Event is one thing that happened: metadata only. What is unknown is "".
type Event struct {
	// Position numbers the events of an execution, from 1 to execution.MaxEvents.
	Position  int    `json:"position"`
	EventID   string `json:"event_id"`
	EventType string `json:"event_type"`
	// OccurredAt is RFC 3339 in UTC with the fractional digits that were sent.
	OccurredAt      string `json:"occurred_at"`
	TaskID          string `json:"task_id,omitzero"`
	AgentInstanceID string `json:"agent_instance_id,omitzero"`
	AgentRole       string `json:"agent_role,omitzero"`
	UserID          string `json:"user_id,omitzero"`
	ChannelID       string `json:"channel_id,omitzero"`
	// Payload is a JSON object of scalars, in canonical form.
	Payload jsontext.Value `json:"payload"`
	// DroppedFields are the sorted names of fields that were dropped at the door;
	// DroppedCount counts those whose names were not kept, too.
	DroppedFields []string  `json:"dropped_fields,omitzero"`
	DroppedCount  int       `json:"dropped_count,omitzero"`
	RecordedAt    time.Time `json:"recorded_at"`
}

// TaskRecorded says all about a task.
type TaskRecorded struct {
	ExecutionID string `json:"execution_id"`
	Task        *Task  `json:"task,omitzero"` // nil: replaced meanwhile
}

// ApprovalRecorded says all about an approval.
type ApprovalRecorded struct {
	ExecutionID string    `json:"execution_id"`
	Approval    *Approval `json:"approval,omitzero"` // nil: replaced meanwhile
}

// GrantRecorded says all about a grant.
type GrantRecorded struct {
	ExecutionID string `json:"execution_id"`
	Grant       *Grant `json:"grant,omitzero"` // nil: replaced meanwhile
}

// Task is the last word about a task, and the stream's version that brought it.
type Task struct {
	TaskID     string         `json:"task_id"`
	Version    int64          `json:"version"`
	Facts      jsontext.Value `json:"facts"` // an execution.Task
	RecordedAt time.Time      `json:"recorded_at"`
}

// Approval is the last word about an approval, and the stream's version that brought it.
type Approval struct {
	ApprovalID string         `json:"approval_id"`
	Version    int64          `json:"version"`
	Facts      jsontext.Value `json:"facts"` // an execution.Approval
	RecordedAt time.Time      `json:"recorded_at"`
}

// Grant is the last word about a grant, and the stream's version that brought it.
type Grant struct {
	GrantID    string         `json:"grant_id"`
	Version    int64          `json:"version"`
	Facts      jsontext.Value `json:"facts"` // an execution.Grant
	RecordedAt time.Time      `json:"recorded_at"`
}

// CallbacksRecorded says which callbacks were tried: attempts, in order and without a gap.
type CallbacksRecorded struct {
	ExecutionID string            `json:"execution_id"`
	Attempts    []CallbackAttempt `json:"attempts"`
}

// CallbackAttempt is one attempt to deliver a callback.
type CallbackAttempt struct {
	// Position numbers the attempts of an execution from 1.
	Position   int            `json:"position"`
	AttemptID  string         `json:"attempt_id"`
	Facts      jsontext.Value `json:"facts"` // an execution.AttemptFacts
	RecordedAt time.Time      `json:"recorded_at"`
}

// Snapshot is one part of an execution's whole content. Every part repeats Execution and
// LastPosition. The events and the attempts of all parts, in order, are the execution's;
// the pages of one kind follow each other, and the last of them has no end. Only the last
// part has Last, and only its Result, LatestAt and Counts are the execution's: elsewhere
// they are of the parts so far.
type Snapshot struct {
	Execution    Execution `json:"execution"`
	LastPosition int       `json:"last_position"` // of the execution's last event
	Counts       Counts    `json:"counts"`
	// Result is that of the last event that is not of trace.Info, else trace.Info.
	Result trace.Result `json:"result"`
	// LatestAt is when the last event was recorded, or when the execution was opened.
	LatestAt  time.Time         `json:"latest_at"`
	Events    []Event           `json:"events,omitzero"`
	Tasks     *Page[Task]       `json:"tasks,omitzero"`
	Approvals *Page[Approval]   `json:"approvals,omitzero"`
	Grants    *Page[Grant]      `json:"grants,omitzero"`
	Attempts  []CallbackAttempt `json:"attempts,omitzero"`
	Last      bool              `json:"last"`
	// Replace is an operator's word that the sender is right even when the receiver is
	// further: the sender came back from a backup.
	Replace bool `json:"replace"`
}

// Counts are how many of a kind the parts of a snapshot carried so far.
type Counts struct {
	Tasks     int `json:"tasks"`
	Approvals int `json:"approvals"`
	Grants    int `json:"grants"`
	Attempts  int `json:"attempts"`
}

// Page is everything of one kind whose id is greater than After ("" for the beginning) and
// at most UpTo ("" for the end), by id in the order of bytes. What is not among Items does
// not exist.
type Page[F any] struct {
	After string `json:"after,omitzero"`
	UpTo  string `json:"up_to,omitzero"`
	Items []F    `json:"items"`
}
