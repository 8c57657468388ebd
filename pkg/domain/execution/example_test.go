package execution_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/execution"
)

// Of a payload metadata is kept, and the names of what was dropped.
func ExampleNewBatch() {
	batch, err := execution.NewBatch([]execution.EventFields{{
		EventID: "ev-9", EventType: "task.failed", OccurredAt: "2026-06-08T11:00:09.50+02:00",
		Payload: jsontext.Value(`{"error_code": "E_TIMEOUT", "attempt": 2, "prompt": "Refund the customer", "output": {"text": "…"}}`),
	}}, execution.Attribution{InstanceID: "agent-7"})
	e := batch[0]
	fmt.Println(e.OccurredAt, e.AgentInstanceID, string(e.Payload), e.DroppedFields, err)
	// Output: 2026-06-08T09:00:09.50Z agent-7 {"attempt":2,"error_code":"E_TIMEOUT"} [output prompt] <nil>
}

// A task's parent stays once it is set; everything else is what was said last.
func ExampleTask_Over() {
	parent, other, role := "t-1", "t-2", "impl"
	first, _ := execution.NewTask(execution.TaskFields{ParentTaskID: &parent, AgentRole: &role}, execution.Attribution{})
	stored, changed, _ := first.Over(nil)
	fmt.Println(string(stored), changed)
	second, _ := execution.NewTask(execution.TaskFields{ParentTaskID: &other}, execution.Attribution{})
	stored, changed, _ = second.Over(stored)
	fmt.Println(string(stored), changed)
	// Output:
	// {"agent_role":"impl","parent_task_id":"t-1"} true
	// {"parent_task_id":"t-1"} true
}

// The path of a webhook is a secret: only where it leads is kept.
func ExampleParseEndpoint() {
	to, ok := execution.ParseEndpoint("https://hooks.example.com/services/T0/B0/zzz")
	fmt.Printf("%s %s %d %x… %v\n", to.Scheme, to.Host, to.Port, to.SHA256[:4], ok)
	// Output: https hooks.example.com 443 133d440e… true
}
