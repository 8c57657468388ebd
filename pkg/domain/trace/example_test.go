package trace_test

import (
	"fmt"

	"verbatim.internal/pkg/domain/trace"
)

// A model the task never told of stays null; nothing is made up.
func ExampleBuild() {
	records := trace.Build(
		[]trace.Event{{Type: "task.completed", OccurredAt: "2026-06-08T17:00:03+08:00", TaskID: new("t-2"), AgentInstanceID: new("agent-7")}},
		map[string]trace.Task{"t-2": {AgentRole: new("impl"), Tool: &trace.Tool{Count: 2}}},
		nil,
		trace.Lineage{SwarmID: new("swarm-1")},
	)
	for _, r := range records {
		fmt.Printf("%s\n", trace.AppendJSON(nil, r))
	}
	// Output:
	// {"audit_id":"aud_000001","occurred_at":"2026-06-08T09:00:03Z","action":"task.completed","actor":{"agent_role":"impl","agent_instance_id":"agent-7"},"task_id":"t-2","model":null,"tool":{"count":2},"approval":null,"result":"success","lineage":{"manager_deployment_id":null,"deployment_id":null,"swarm_id":"swarm-1","correlation_id":null},"redacted":true}
}

func ExampleReplay() {
	records := trace.Build(
		[]trace.Event{
			{Type: "approval.requested", OccurredAt: "2026-06-08T09:00:02Z", ApprovalID: new("ap-2")},
			{Type: "task.completed", OccurredAt: "2026-06-08T09:00:03Z", TaskID: new("t-2"), AgentInstanceID: new("agent-7"), ApprovalID: new("ap-1")},
		},
		map[string]trace.Task{"t-2": {AgentRole: new("impl"), Model: &trace.Model{ModelID: "gpt-x"}, Tool: &trace.Tool{Count: 2}}},
		map[string]trace.Decision{"ap-1": trace.Approved},
		trace.Lineage{SwarmID: new("swarm-1")},
	)
	for _, line := range trace.Replay(records) {
		fmt.Println(line)
	}
	// Output:
	// aud_000001 2026-06-08T09:00:02Z -/- approval.requested approval=ap-2:- -> info
	// aud_000002 2026-06-08T09:00:03Z impl/agent-7 task.completed task=t-2 model=gpt-x tools=2 approval=ap-1:approved -> success
}

// The last page costs what the first does: an event needs only its own ordinal.
func ExampleAssembler_Assemble() {
	a := trace.Assembler{
		Lineage:  trace.Lineage{SwarmID: new("swarm-1")},
		Decision: func(string) trace.Decision { return trace.Rejected },
	}
	r := a.Assemble(1_000_000, trace.Event{
		Type: "approval.requested", OccurredAt: "2026-06-08T09:00:03Z", ApprovalID: new("ap-1"),
	})
	fmt.Println(trace.Line(r))
	// Output:
	// aud_1000000 2026-06-08T09:00:03Z -/- approval.requested approval=ap-1:rejected -> info
}
