package runtrace_test

import (
	"fmt"
	"time"

	"verbatim.internal/services/auditview/internal/runtrace"
)

// A run that called one tool, as an administrator sees it.
func ExampleBuild() {
	opened := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	completed := opened.Add(2500 * time.Millisecond)
	job, model := "50000001-e89b-42d3-a456-426614174000", "gpt-x"
	trace := runtrace.Build(
		runtrace.Run{
			ClientAppID: "crm", RouteKey: "customers", ClientTurnID: "turn-1",
			CreatedAt: opened, Status: "completed", Model: &model, CompletedAt: &completed,
		},
		[]runtrace.Event{
			{Position: 1, Event: "tool.called", OccurredAt: "2026-03-04T05:06:08Z", JobID: &job, Metadata: `{"tool":"orders.search","provider":"crm"}`},
			{Position: 2, Event: "tool.completed", OccurredAt: "2026-03-04T05:06:08.12Z", JobID: &job, Metadata: `{"duration_ms":120,"ok":true}`},
		})
	for _, e := range trace.Trace.Events {
		fmt.Printf("%s %s %s: %s\n", e.TS, e.Severity, e.Title, e.Summary)
	}
	i := trace.Invocations[0]
	fmt.Printf("%s %s in %v ms, attempts: %d\n", *i.Tool, i.Status, *i.DurationMS, i.Attempts)
	// Output:
	// 2026-03-04T05:06:07.000Z info Run opened: crm, customers, turn turn-1
	// 2026-03-04T05:06:08Z info Tool called: orders.search via crm
	// 2026-03-04T05:06:08.12Z info Tool completed: 120 ms, ok
	// 2026-03-04T05:06:09.500Z info Run completed: gpt-x, 2500 ms
	// orders.search completed in 120 ms, attempts: 1
}
