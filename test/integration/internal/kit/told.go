package kit

import (
	"verbatim.internal/pkg/domain/trace"
)

// TaskFacts are what is told of a task, as far as records show it.
type TaskFacts struct {
	AgentRole string     `json:"agent_role,omitempty"`
	Usage     *TaskUsage `json:"usage,omitempty"`
	ToolCount *int64     `json:"tool_count,omitempty"`
}

// TaskUsage is what a task used.
type TaskUsage struct {
	ModelID string `json:"model_id,omitempty"`
}

// Told is all that an execution was told, from which its audit trace follows.
type Told struct {
	SwarmID   string
	Opening   Opening
	Events    []ExecutionEvent // in the order of their storage
	Tasks     map[string]TaskFacts
	Decisions map[string]trace.Decision // by the approval's id
}

// Records returns the records of the trace, each in its bytes.
func (x Told) Records() (records []string) {
	tasks := make(map[string]trace.Task, len(x.Tasks))
	for id, told := range x.Tasks {
		task := trace.Task{AgentRole: known(told.AgentRole)}
		if told.Usage != nil && told.Usage.ModelID != "" {
			task.Model = &trace.Model{ModelID: told.Usage.ModelID}
		}
		if told.ToolCount != nil {
			task.Tool = &trace.Tool{Count: *told.ToolCount}
		}
		tasks[id] = task
	}
	events := make([]trace.Event, len(x.Events))
	for i, e := range x.Events {
		events[i] = trace.Event{Type: e.EventType, OccurredAt: e.OccurredAt, TaskID: known(e.TaskID), AgentInstanceID: known(e.AgentInstanceID)}
		if id, ok := e.Payload["approval_id"].(string); ok {
			events[i].ApprovalID = &id
		}
		if decision, ok := e.Payload["decision"].(string); ok {
			events[i].Decision = trace.Decision(decision)
		}
	}
	lineage := trace.Lineage{
		ManagerDeploymentID: known(x.Opening.ManagerDeploymentID), DeploymentID: known(x.Opening.DeploymentID),
		SwarmID: &x.SwarmID, CorrelationID: known(x.Opening.CorrelationID),
	}
	for _, r := range trace.Build(events, tasks, x.Decisions, lineage) {
		records = append(records, string(trace.AppendJSON(nil, r)))
	}
	return records
}

// known returns nil for what is absent.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
