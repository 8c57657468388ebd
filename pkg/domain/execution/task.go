package execution

import "github.com/go-json-experiment/json/jsontext"

// TaskFields are what is said of a task, as it was sent: what is absent is nil.
type TaskFields struct {
	ParentTaskID    *string
	RootTaskID      *string
	ChildTaskIDs    []string
	DependsOn       []string
	Source          *string
	AgentRole       *string
	AssignedAgentID *string
	RetryCount      *int64
	CreatedAt       *string
	UpdatedAt       *string
	ModelID         *string
	InputTokens     *int64
	OutputTokens    *int64
	TotalTokens     *int64
	// ToolCalls is how many tool calls were sent or listed; where it is there, ToolCount
	// does not matter.
	ToolCalls *int64
	ToolCount *int64
}

// Task is all that is known of a task, in the form that is stored and sent on. What is
// unknown is absent. A task may name itself or be part of a cycle: facts are not judged.
type Task struct {
	ParentTaskID    string   `json:"parent_task_id,omitzero"`
	RootTaskID      string   `json:"root_task_id,omitzero"`
	ChildTaskIDs    []string `json:"child_task_ids,omitzero"`
	DependsOn       []string `json:"depends_on,omitzero"`
	Source          string   `json:"source,omitzero"` // runtime_bridge, planner or dynamic_handoff
	AgentRole       string   `json:"agent_role,omitzero"`
	AssignedAgentID string   `json:"assigned_agent_id,omitzero"`
	RetryCount      *int64   `json:"retry_count,omitzero"`
	CreatedAt       string   `json:"created_at,omitzero"` // RFC 3339 in UTC with the digits that were sent
	UpdatedAt       string   `json:"updated_at,omitzero"`
	Usage           *Usage   `json:"usage,omitzero"`
	ToolCount       *int64   `json:"tool_count,omitzero"`
	UserID          string   `json:"user_id,omitzero"` // of who said it last
	ChannelID       string   `json:"channel_id,omitzero"`
}

// Usage is what a task used.
type Usage struct {
	ModelID      string `json:"model_id,omitzero"`
	InputTokens  *int64 `json:"input_tokens,omitzero"`
	OutputTokens *int64 `json:"output_tokens,omitzero"`
	TotalTokens  *int64 `json:"total_tokens,omitzero"`
}

// NewTask validates what is said of a task, else InvalidRequest. The attribution fills in
// the role that the body leaves out, and adds user and channel.
func NewTask(f TaskFields, by Attribution) (Task, error) {
	var read form
	t := Task{
		ParentTaskID: read.name(f.ParentTaskID), RootTaskID: read.name(f.RootTaskID),
		ChildTaskIDs: read.names(f.ChildTaskIDs, MaxTaskIDs), DependsOn: read.names(f.DependsOn, MaxTaskIDs),
		Source: read.name(f.Source), AgentRole: or(read.name(f.AgentRole), by.Role), AssignedAgentID: read.name(f.AssignedAgentID),
		RetryCount: read.count(f.RetryCount), CreatedAt: read.moment(f.CreatedAt), UpdatedAt: read.moment(f.UpdatedAt),
		ToolCount: read.count(f.ToolCount), UserID: by.UserID, ChannelID: by.ChannelID,
	}
	switch t.Source {
	case "", "runtime_bridge", "planner", "dynamic_handoff":
	default:
		read.require(false)
	}
	if calls := read.count(f.ToolCalls); calls != nil {
		t.ToolCount = calls
	}
	usage := Usage{
		ModelID: read.name(f.ModelID), InputTokens: read.count(f.InputTokens),
		OutputTokens: read.count(f.OutputTokens), TotalTokens: read.count(f.TotalTokens),
	}
	if usage != (Usage{}) {
		t.Usage = &usage
	}
	if read.broken {
		return Task{}, errTask
	}
	return t, nil
}

// Over implements [Fact]. The whole task is replaced, but for its parent, root and source:
// they stay once they are set, whatever is said later. The order is that of arrival.
func (t Task) Over(stored jsontext.Value) (jsontext.Value, bool, error) {
	if stored != nil {
		before, err := read[Task](stored)
		if err != nil {
			return nil, false, err
		}
		t.ParentTaskID = or(before.ParentTaskID, t.ParentTaskID)
		t.RootTaskID = or(before.RootTaskID, t.RootTaskID)
		t.Source = or(before.Source, t.Source)
	}
	return write(t, stored)
}

// Final implements [Fact]: a task may always be told anew.
func (Task) Final() bool { return false }
