package trace

import "verbatim.internal/pkg/domain/timestamp"

// Event is what the record of a stored event is made from.
type Event struct {
	Type            string
	OccurredAt      string // RFC 3339
	TaskID          *string
	AgentInstanceID *string
	ApprovalID      *string  // of the payload
	Decision        Decision // of the payload; "" where it says none
}

// Task is what the records of a task's events take from it. They share what it
// points to.
type Task struct {
	AgentRole *string
	Model     *Model // the model of its usage
	Tool      *Tool  // see [CountCalls]
}

// Assembler makes the records of one run. It keeps nothing between two events,
// and is safe for concurrent use if its functions are.
type Assembler struct {
	Lineage Lineage
	// Task returns the facts of a task: the zero Task where there are none.
	Task func(taskID string) Task
	// Decision returns the stored decision of an approval: "" where there is none.
	Decision func(approvalID string) Decision
}

// Assemble returns the record of the event that is stored at ordinal, from 1.
// Only a record that names an approval is given memory of its own. A time that
// is not RFC 3339, which no stored event has, stays as it is.
func (a *Assembler) Assemble(ordinal int64, e Event) Record {
	r := Record{
		AuditID:    AuditID(ordinal),
		OccurredAt: e.OccurredAt,
		Action:     e.Type,
		Actor:      Actor{AgentInstanceID: e.AgentInstanceID},
		TaskID:     e.TaskID,
		Result:     ResultOf(e.Type),
		Lineage:    a.Lineage,
		Redacted:   true,
	}
	if at, ok := timestamp.Normalize(e.OccurredAt); ok {
		r.OccurredAt = at
	}
	if e.TaskID != nil && a.Task != nil {
		task := a.Task(*e.TaskID)
		r.Actor.AgentRole, r.Model, r.Tool = task.AgentRole, task.Model, task.Tool
	}
	if e.ApprovalID != nil {
		r.Approval = a.approval(*e.ApprovalID, e)
	}
	return r
}

// approval takes the decision from the stored approval, else from the payload,
// else from the type.
func (a *Assembler) approval(id string, e Event) *Approval {
	var stored Decision
	if a.Decision != nil {
		stored = a.Decision(id)
	}
	for _, d := range [...]Decision{stored, e.Decision, decisionOf(e.Type)} {
		if d == Approved || d == Rejected {
			return &Approval{ApprovalID: id, Decision: new(d)}
		}
	}
	return &Approval{ApprovalID: id}
}

func decisionOf(eventType string) Decision {
	switch eventType {
	case typeApproved:
		return Approved
	case typeRejected:
		return Rejected
	default:
		return ""
	}
}

// Build returns the records of a whole run: one for each event, which are in
// the order of storage. Tasks are by their id, and the decisions by that of
// their approval.
func Build(events []Event, tasks map[string]Task, approvals map[string]Decision, lineage Lineage) []Record {
	a := Assembler{
		Lineage:  lineage,
		Task:     func(id string) Task { return tasks[id] },
		Decision: func(id string) Decision { return approvals[id] },
	}
	records := make([]Record, len(events))
	for i, e := range events {
		records[i] = a.Assemble(int64(i)+1, e)
	}
	return records
}
