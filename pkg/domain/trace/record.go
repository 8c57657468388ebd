package trace

import (
	"errors"
	"strconv"
	"strings"
)

// Record is one step of a run: the audit record, FROZEN v1. The order of the
// fields is the order of the keys.
type Record struct {
	AuditID    AuditID   `json:"audit_id"`
	OccurredAt string    `json:"occurred_at"` // RFC 3339 in UTC with Z
	Action     string    `json:"action"`      // the type of the event
	Actor      Actor     `json:"actor"`
	TaskID     *string   `json:"task_id"`
	Model      *Model    `json:"model"`
	Tool       *Tool     `json:"tool"`
	Approval   *Approval `json:"approval"`
	Result     Result    `json:"result"`
	Lineage    Lineage   `json:"lineage"`
	Redacted   bool      `json:"redacted"` // always true
}

// Actor is who acted.
type Actor struct {
	AgentRole       *string `json:"agent_role"`
	AgentInstanceID *string `json:"agent_instance_id"`
}

// Model is what a task ran on.
type Model struct {
	ModelID string `json:"model_id"`
}

// Tool is how many tool calls a task made.
type Tool struct {
	Count int64 `json:"count"`
}

// Approval is the approval that an event names, and what was decided; a nil
// decision is none yet.
type Approval struct {
	ApprovalID string    `json:"approval_id"`
	Decision   *Decision `json:"decision"`
}

// Lineage is where a run belongs.
type Lineage struct {
	ManagerDeploymentID *string `json:"manager_deployment_id"`
	DeploymentID        *string `json:"deployment_id"`
	SwarmID             *string `json:"swarm_id"`
	CorrelationID       *string `json:"correlation_id"`
}

// Decision is what was decided on an approval.
type Decision string

// The decisions.
const (
	Approved Decision = "approved"
	Rejected Decision = "rejected"
)

// Result is what an event means for the work it belongs to.
type Result string

// The results.
const (
	Success Result = "success"
	Failed  Result = "failed"
	Blocked Result = "blocked"
	Stopped Result = "stopped"
	Info    Result = "info"
)

const (
	typeApproved = "approval.approved"
	typeRejected = "approval.rejected"
)

// ResultOf returns the result of an event, by its type alone.
func ResultOf(eventType string) Result {
	if eventType == typeRejected {
		return Blocked
	}
	switch eventType[strings.LastIndexByte(eventType, '.')+1:] {
	case "completed":
		return Success
	case "failed":
		return Failed
	case "blocked":
		return Blocked
	case "stopped":
		return Stopped
	default:
		return Info
	}
}

// AuditID is the ordinal of a record in its run, from 1. As text it is aud_ and
// at least six digits.
type AuditID int64

const auditPrefix = "aud_"

var errAuditID = errors.New("trace: an audit id is aud_ and the ordinal in at least six digits")

// String returns the id as a record spells it.
func (id AuditID) String() string {
	return string(id.append(make([]byte, 0, len("aud_000000"))))
}

func (id AuditID) append(dst []byte) []byte {
	dst = append(dst, auditPrefix...)
	for bound := AuditID(100_000); bound > 1 && bound > id; bound /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(id), 10)
}

// AppendText implements [encoding.TextAppender].
func (id AuditID) AppendText(dst []byte) ([]byte, error) { return id.append(dst), nil }

// MarshalText implements [encoding.TextMarshaler].
func (id AuditID) MarshalText() ([]byte, error) { return id.append(nil), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It takes only what
// String returns.
func (id *AuditID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(strings.TrimPrefix(string(text), auditPrefix), 10, 64)
	if err != nil || n < 1 || AuditID(n).String() != string(text) {
		return errAuditID
	}
	*id = AuditID(n)
	return nil
}
