package trace_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/domain/trace"
)

// runSize is how many events a run may have.
const runSize = 1_000_000

// delivery is a run of 1,000 tasks, one event in 16 of which is about an
// approval, in as many events as are enough to repeat.
func delivery() (trace.Assembler, []trace.Event) {
	tasks, approvals := map[string]trace.Task{}, map[string]trace.Decision{}
	taskIDs, agents := make([]string, 1000), make([]string, 50)
	for i := range taskIDs {
		taskIDs[i] = fmt.Sprintf("swarm-1-task-%04d", i)
		tasks[taskIDs[i]] = trace.Task{
			AgentRole: new(fmt.Sprintf("role-%d", i%5)), Model: &trace.Model{ModelID: "gpt-x"}, Tool: &trace.Tool{Count: int64(i % 7)},
		}
	}
	for i := range agents {
		agents[i] = fmt.Sprintf("agent-%d", i)
	}
	types := []string{"task.created", "task.running", "task.heartbeat", "task.completed", "task.failed", "handoff.completed"}
	events := make([]trace.Event, 4096)
	for i := range events {
		events[i] = trace.Event{
			Type: types[i%len(types)], OccurredAt: fmt.Sprintf("2026-06-08T09:%02d:%02d.%06dZ", i/60%60, i%60, i),
			TaskID: &taskIDs[i%len(taskIDs)], AgentInstanceID: &agents[i%len(agents)],
		}
		if i%16 == 0 {
			id := fmt.Sprintf("approval-%d", i)
			events[i].Type, events[i].ApprovalID = "approval.requested", &id
			approvals[id] = trace.Approved
		}
	}
	return trace.Assembler{
		Lineage: trace.Lineage{
			ManagerDeploymentID: new("manager-deployment-1"), DeploymentID: new("deployment-1"),
			SwarmID: new("swarm-1"), CorrelationID: new("correlation-1"),
		},
		Task:     func(id string) trace.Task { return tasks[id] },
		Decision: func(id string) trace.Decision { return approvals[id] },
	}, events
}

// BenchmarkRun streams the longest run there may be. Its allocations are those
// of the approvals: they do not add up to what is written.
func BenchmarkRun(b *testing.B) {
	a, events := delivery()
	b.ReportAllocs()
	for b.Loop() {
		line := make([]byte, 0, 1024)
		for i := range runSize {
			line = trace.AppendJSON(line[:0], a.Assemble(int64(i)+1, events[i%len(events)]))
			if _, err := io.Discard.Write(line); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*runSize/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkRunByTheLibrary is the plain cost of encoding the same records.
func BenchmarkRunByTheLibrary(b *testing.B) {
	a, events := delivery()
	records := make([]trace.Record, len(events))
	for i, e := range events {
		records[i] = a.Assemble(int64(i)+1, e)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range runSize {
			r := &records[i%len(records)]
			r.AuditID = trace.AuditID(i + 1)
			if err := json.MarshalWrite(io.Discard, r); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*runSize/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkAssembler_Assemble(b *testing.B) {
	a, events := delivery()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		a.Assemble(int64(i)+1, events[i%len(events)])
	}
}

func BenchmarkAppendLine(b *testing.B) {
	a, events := delivery()
	r := a.Assemble(1, events[0])
	line := trace.AppendLine(nil, r)
	b.ReportAllocs()
	for b.Loop() {
		line = trace.AppendLine(line[:0], r)
	}
}
