package historytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/trace"
)

// ExecutionID returns the id of an execution.
func ExecutionID(n int) string { return ID(executionIDs, n) }

// Execution is one execution's history. Its methods append the message of what they do.
type Execution struct {
	tb        testing.TB
	clock     time.Time
	version   int64
	header    executionv1.Execution
	events    []executionv1.Event
	attempts  []executionv1.CallbackAttempt
	tasks     map[string]executionv1.Task
	approvals map[string]executionv1.Approval
	grants    map[string]executionv1.Grant
	late      []func(x *Execution) cloudevent.Event
	// Messages are the messages so far, in order, each as it was sent at once.
	Messages []cloudevent.Event
}

// OpenExecution opens the n-th execution, of an authorization run or of none ("").
func OpenExecution(tb testing.TB, n int, runID string) *Execution {
	tb.Helper()
	x := &Execution{
		tb: tb, clock: Start.Add(time.Duration(n) * time.Minute),
		tasks: map[string]executionv1.Task{}, approvals: map[string]executionv1.Approval{}, grants: map[string]executionv1.Grant{},
	}
	x.header = executionv1.Execution{
		ExecutionID: ExecutionID(n), ClientAppID: "client-0", SwarmID: fmt.Sprintf("swarm/%d", n), RunID: runID, CreatedAt: x.clock,
	}
	if n%2 == 1 {
		x.header.ManagerDeploymentID, x.header.DeploymentID = "manager-1", fmt.Sprintf("deployment:%d", n)
		x.header.CorrelationID, x.header.UserID, x.header.ChannelID = "correlation-1", "opener", "console"
	}
	sendExecution(x, func(x *Execution) executionv1.Execution { return x.header })
	return x
}

// ID returns the execution's id.
func (x *Execution) ID() string { return x.header.ExecutionID }

// Opened returns the execution as it was opened.
func (x *Execution) Opened() executionv1.Execution { return x.header }

// Version returns the version of its stream.
func (x *Execution) Version() int64 { return x.version }

// Happen adds an event of each type. Most belong to one of four tasks; those about
// approvals name one of two.
func (x *Execution) Happen(types ...string) *Execution {
	x.tb.Helper()
	x.tick()
	var events []executionv1.Event
	for _, eventType := range types {
		n := len(x.events) + len(events) + 1
		e := executionv1.Event{
			Position: n, EventID: fmt.Sprintf("event-%d", n), EventType: eventType, RecordedAt: x.clock,
			OccurredAt: x.clock.Add(-time.Duration(n) * time.Second).Format("2006-01-02T15:04:05.000000000Z"), Payload: jsontext.Value(`{}`),
		}
		if n%5 != 0 {
			e.TaskID, e.AgentInstanceID, e.AgentRole = TaskID(n), fmt.Sprintf("agent-%d", n%3), "impl"
			e.Payload = jsontext.Value(fmt.Sprintf(`{"attempt":%d,"status":"running"}`, n))
		}
		if n%3 == 0 {
			e.UserID, e.ChannelID = fmt.Sprintf("user-%d@example.com", n%2), fmt.Sprint(40+n%2)
			e.DroppedFields, e.DroppedCount = []string{"output", "prompt"}, n
		}
		if strings.HasPrefix(eventType, "approval.") {
			e.Payload = jsontext.Value(fmt.Sprintf(`{"approval_id":"%s"}`, ApprovalID(n)))
		}
		events = append(events, e)
	}
	x.events = append(x.events, events...)
	sendExecution(x, func(*Execution) executionv1.EventsRecorded {
		return executionv1.EventsRecorded{ExecutionID: x.ID(), Events: events}
	})
	return x
}

// TaskID returns the id of one of four tasks.
func TaskID(n int) string { return fmt.Sprintf("task/%d", n%4) }

// ApprovalID returns the id of one of two approvals.
func ApprovalID(n int) string { return fmt.Sprintf("approval-%d", n%2) }

// Task says all about one of four tasks anew; how much of it is there depends on n.
func (x *Execution) Task(n int) *Execution {
	x.tb.Helper()
	calls, tokens := int64(n), int64(1000+n)
	t := execution.Task{ParentTaskID: TaskID(n + 1), AgentRole: fmt.Sprintf("role-%d", n%3), DependsOn: []string{TaskID(n + 2)}}
	if n%3 > 0 {
		t.ToolCount, t.Usage = &calls, &execution.Usage{ModelID: fmt.Sprintf("model-%d", n%2), InputTokens: &tokens}
		t.UserID, t.ChannelID, t.UpdatedAt = fmt.Sprintf("worker-%d", n%3), "cli", "2026-03-04T05:06:07.1234567Z"
	}
	return x.PutTask(TaskID(n), t)
}

// PutTask says all about a task.
func (x *Execution) PutTask(id string, task execution.Task) *Execution {
	x.tb.Helper()
	put(x, func(x *Execution) map[string]executionv1.Task { return x.tasks }, id, task, func(w word) (executionv1.Task, int64) {
		return executionv1.Task{TaskID: id, Version: w.version, Facts: w.facts, RecordedAt: w.at}, w.version
	}, func(t executionv1.Task) int64 { return t.Version }, func(t *executionv1.Task) executionv1.TaskRecorded {
		return executionv1.TaskRecorded{ExecutionID: x.ID(), Task: t}
	})
	return x
}

// Approve says all about one of two approvals: its decision, or "" while there is none.
func (x *Execution) Approve(n int, decision string) *Execution {
	x.tb.Helper()
	id := ApprovalID(n)
	put(x, func(x *Execution) map[string]executionv1.Approval { return x.approvals }, id, execution.Approval{Operation: "git.push", Decision: decision, Reason: fmt.Sprintf("Read & checked, %d times.", n)},
		func(w word) (executionv1.Approval, int64) {
			return executionv1.Approval{ApprovalID: id, Version: w.version, Facts: w.facts, RecordedAt: w.at}, w.version
		}, func(a executionv1.Approval) int64 { return a.Version }, func(a *executionv1.Approval) executionv1.ApprovalRecorded {
			return executionv1.ApprovalRecorded{ExecutionID: x.ID(), Approval: a}
		})
	return x
}

// Grant says all about one of two grants.
func (x *Execution) Grant(n int, status string) *Execution {
	x.tb.Helper()
	id := fmt.Sprintf("grant-%d", n%2)
	grant := execution.Grant{ //nolint:gosec // G101: a reference to a secret, and none
		SecretRef: "azkv://vault/db", Status: status,
		Constraints: jsontext.Value(fmt.Sprintf(`{"uses":%d}`, n)),
	}
	put(x, func(x *Execution) map[string]executionv1.Grant { return x.grants }, id, grant,
		func(w word) (executionv1.Grant, int64) {
			return executionv1.Grant{GrantID: id, Version: w.version, Facts: w.facts, RecordedAt: w.at}, w.version
		}, func(g executionv1.Grant) int64 { return g.Version }, func(g *executionv1.Grant) executionv1.GrantRecorded {
			return executionv1.GrantRecorded{ExecutionID: x.ID(), Grant: g}
		})
	return x
}

// word is what is said of a fact.
type word struct {
	version int64
	facts   jsontext.Value
	at      time.Time
}

// put says a word, and remembers how its message would be sent later.
func put[F any, M executionv1.Message](x *Execution, stored func(*Execution) map[string]F, id string, facts any,
	as func(word) (F, int64), versionOf func(F) int64, message func(*F) M,
) {
	x.tb.Helper()
	x.tick()
	text, err := canonical.JSON(facts)
	require.NoError(x.tb, err)
	fact, version := as(word{x.version + 1, text, x.clock})
	stored(x)[id] = fact
	sendExecution(x, func(x *Execution) M {
		if versionOf(stored(x)[id]) > version {
			return message(nil)
		}
		return message(&fact)
	})
}

// Attempt adds callback attempts, for one event after the other.
func (x *Execution) Attempt(n int) *Execution {
	x.tb.Helper()
	x.tick()
	var attempts []executionv1.CallbackAttempt
	for range n {
		position := len(x.attempts) + len(attempts) + 1
		facts, err := canonical.JSON(execution.AttemptFacts{
			EventID: fmt.Sprintf("event-%d", position/2), EventType: "task.completed", Scheme: "https", Host: "hooks.example.com", Port: 443,
			URLSHA256: strings.Repeat("0f", 32), Status: jsontext.Value(fmt.Sprint(200 + 303*(position%2))), AttemptedAt: "2026-03-04T05:06:07Z",
		})
		require.NoError(x.tb, err)
		attempts = append(attempts, executionv1.CallbackAttempt{
			Position: position, AttemptID: fmt.Sprintf("attempt-%d", position), Facts: facts, RecordedAt: x.clock,
		})
	}
	x.attempts = append(x.attempts, attempts...)
	sendExecution(x, func(*Execution) executionv1.CallbacksRecorded {
		return executionv1.CallbacksRecorded{ExecutionID: x.ID(), Attempts: attempts}
	})
	return x
}

// Late returns the messages as they are sent only now: without what was replaced since.
func (x *Execution) Late() []cloudevent.Event {
	messages := make([]cloudevent.Event, len(x.late))
	for i, send := range x.late {
		messages[i] = send(x)
	}
	return messages
}

// Records returns the records that are built from the history's facts, as JSON.
func (x *Execution) Records() []string {
	x.tb.Helper()
	tasks, decisions := map[string]trace.Task{}, map[string]trace.Decision{}
	for id, t := range x.tasks {
		var f execution.Task
		read(x.tb, t.Facts, &f)
		task := trace.Task{AgentRole: known(f.AgentRole)}
		if f.Usage != nil && f.Usage.ModelID != "" {
			task.Model = &trace.Model{ModelID: f.Usage.ModelID}
		}
		if f.ToolCount != nil {
			task.Tool = &trace.Tool{Count: *f.ToolCount}
		}
		tasks[id] = task
	}
	for id, a := range x.approvals {
		var f execution.Approval
		read(x.tb, a.Facts, &f)
		decisions[id] = trace.Decision(f.Decision)
	}
	events := make([]trace.Event, len(x.events))
	for i, e := range x.events {
		var payload struct {
			ApprovalID *string `json:"approval_id"`
		}
		read(x.tb, e.Payload, &payload)
		events[i] = trace.Event{
			Type: e.EventType, OccurredAt: e.OccurredAt, TaskID: known(e.TaskID), AgentInstanceID: known(e.AgentInstanceID), ApprovalID: payload.ApprovalID,
		}
	}
	return Lines(trace.Build(events, tasks, decisions, trace.Lineage{
		ManagerDeploymentID: known(x.header.ManagerDeploymentID), DeploymentID: known(x.header.DeploymentID),
		SwarmID: known(x.header.SwarmID), CorrelationID: known(x.header.CorrelationID),
	}))
}

// Lines spells records as JSON.
func Lines(records []trace.Record) []string {
	lines := make([]string, len(records))
	for i, r := range records {
		lines[i] = string(trace.AppendJSON(nil, r))
	}
	return lines
}

// Result returns what the execution came to.
func (x *Execution) Result() trace.Result {
	for _, e := range slices.Backward(x.events) {
		if result := trace.ResultOf(e.EventType); result != trace.Info {
			return result
		}
	}
	return trace.Info
}

func (x *Execution) tick() { x.clock = x.clock.Add(1234567 * time.Microsecond) }

func sortedValues[F any](facts map[string]F) []F {
	values := make([]F, 0, len(facts))
	for _, id := range slices.Sorted(maps.Keys(facts)) {
		values = append(values, facts[id])
	}
	return values
}
