package httpapi

import "verbatim.internal/pkg/domain/trace"

// Kinds of edges and cycles of a task graph.
const (
	EdgeParent    = "parent"
	EdgeDependsOn = "depends_on"
)

// ExecutionLineage is the task graph of an execution.
type ExecutionLineage struct {
	Schema string        `json:"schema"`
	Run    ExecutionView `json:"run"`
	TaskGraph
}

// TaskGraph is what the tasks of an execution say of each other, and what happened between
// them. Everything is in the order of ids, but for what events tell, which is in theirs.
type TaskGraph struct {
	Nodes []TaskNode `json:"nodes"`
	Edges []TaskEdge `json:"edges"`
	// Roots are the tasks without a parent.
	Roots []string `json:"roots"`
	// Orphans are the tasks whose parent or dependency is no task of the execution.
	Orphans  []OrphanTask  `json:"orphans"`
	Cycles   []TaskCycle   `json:"cycles"`
	Handoffs []TaskHandoff `json:"handoffs"`
	Retries  []TaskRetries `json:"retries"`
}

// TaskNode is all that is known of a task. What is unknown is null; an unknown list is
// empty.
type TaskNode struct {
	TaskID          string         `json:"task_id"`
	ParentTaskID    *string        `json:"parent_task_id"`
	RootTaskID      *string        `json:"root_task_id"`
	ChildTaskIDs    []string       `json:"child_task_ids"`
	DependsOn       []string       `json:"depends_on"`
	Source          *string        `json:"source"`
	AgentRole       *string        `json:"agent_role"`
	AssignedAgentID *string        `json:"assigned_agent_id"`
	RetryCount      *int64         `json:"retry_count"`
	CreatedAt       *string        `json:"created_at"`
	UpdatedAt       *string        `json:"updated_at"`
	Usage           *TaskUsageView `json:"usage"`
	ToolCount       *int64         `json:"tool_count"`
	UserID          *string        `json:"user_id"`
	ChannelID       *string        `json:"channel_id"`
}

// TaskUsageView is what a task used.
type TaskUsageView struct {
	ModelID      *string `json:"model_id"`
	InputTokens  *int64  `json:"input_tokens"`
	OutputTokens *int64  `json:"output_tokens"`
	TotalTokens  *int64  `json:"total_tokens"`
}

// TaskEdge leads from a parent to its child, or from a task to one that it depends on.
// Either end may be unknown to the execution.
type TaskEdge struct {
	Kind string `json:"kind"` // parent or depends_on
	From string `json:"from"`
	To   string `json:"to"`
}

// OrphanTask names what a task refers to and the execution does not have.
type OrphanTask struct {
	TaskID              string   `json:"task_id"`
	MissingParent       *string  `json:"missing_parent"`
	MissingDependencies []string `json:"missing_dependencies"`
}

// TaskCycle are the tasks that lead to each other by edges of one kind: all of them, or
// one that leads to itself.
type TaskCycle struct {
	Kind    string   `json:"kind"` // parent or depends_on
	TaskIDs []string `json:"task_ids"`
}

// TaskHandoff is work that was handed over: what the events of one hand-over say together.
type TaskHandoff struct {
	HandoffID  *string `json:"handoff_id"`
	TaskID     *string `json:"task_id"`
	FromAgent  *string `json:"from_agent"`
	ToAgent    *string `json:"to_agent"`
	TargetRole *string `json:"target_role"`
	// Status is the last part of the last event's type: requested, completed.
	Status string       `json:"status"`
	Result trace.Result `json:"result"`
	// Requested is null where no event asked for it, Latest where none followed.
	Requested *TaskMoment `json:"requested"`
	Latest    *TaskMoment `json:"latest"`
}

// TaskRetries are how often a task began again: as the task says, and the events that tell
// of it.
type TaskRetries struct {
	TaskID     string      `json:"task_id"`
	RetryCount *int64      `json:"retry_count"`
	Events     []TaskRetry `json:"events"`
}

// TaskRetry is an event that says that a task begins again.
type TaskRetry struct {
	TaskMoment
	Attempt *int64 `json:"attempt"`
}

// TaskMoment is an event, by the ordinal of its audit record.
type TaskMoment struct {
	Position        int64   `json:"position"`
	OccurredAt      string  `json:"occurred_at"`
	AgentInstanceID *string `json:"agent_instance_id"`
}
