package executionv1_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/executionv1"
)

func refuses[M executionv1.Message](t *testing.T, name string, valid func() M, changes map[string]func(*M)) {
	t.Helper()
	for what, change := range changes {
		t.Run(name+"/"+what, func(t *testing.T) {
			t.Parallel()
			m := valid()
			require.NoError(t, m.Validate())
			change(&m)
			var field *executionv1.FieldError
			_, err := executionv1.Marshal(m)
			require.ErrorAs(t, err, &field)
			require.NotContains(t, err.Error(), "prose")
		})
	}
}

func TestExecutionsAreRefused(t *testing.T) {
	t.Parallel()
	refuses(t, "opened", opened, map[string]func(*executionv1.Execution){
		"no id":                      func(m *executionv1.Execution) { m.ExecutionID = "" },
		"a client that is no key":    func(m *executionv1.Execution) { m.ClientAppID = "X" },
		"no swarm":                   func(m *executionv1.Execution) { m.SwarmID = "" },
		"a swarm of prose":           func(m *executionv1.Execution) { m.SwarmID = "some prose" },
		"a deployment of prose":      func(m *executionv1.Execution) { m.DeploymentID = "some prose" },
		"a manager of 129 bytes":     func(m *executionv1.Execution) { m.ManagerDeploymentID = strings.Repeat("x", 129) },
		"a correlation with a quote": func(m *executionv1.Execution) { m.CorrelationID = `"` },
		"a run that is no UUID":      func(m *executionv1.Execution) { m.RunID = "run-1" },
		"a user with a space":        func(m *executionv1.Execution) { m.UserID = "a b" },
		"a blank channel":            func(m *executionv1.Execution) { m.ChannelID = " " },
		"a time with nanoseconds":    func(m *executionv1.Execution) { m.CreatedAt = at.Add(1) },
		"a time in another zone":     func(m *executionv1.Execution) { m.CreatedAt = at.In(time.FixedZone("", 3600)) },
		"no time":                    func(m *executionv1.Execution) { m.CreatedAt = time.Time{} },
	})
}

func TestEventsAreRefused(t *testing.T) {
	t.Parallel()
	refuses(t, "events", recorded, map[string]func(*executionv1.EventsRecorded){
		"no id":                     func(m *executionv1.EventsRecorded) { m.ExecutionID = "" },
		"no event":                  func(m *executionv1.EventsRecorded) { m.Events = nil },
		"a gap":                     func(m *executionv1.EventsRecorded) { m.Events[1].Position = 9 },
		"another order":             func(m *executionv1.EventsRecorded) { slices.Reverse(m.Events) },
		"position 0":                func(m *executionv1.EventsRecorded) { m.Events[0].Position, m.Events[1].Position = 0, 1 },
		"position 1000001":          func(m *executionv1.EventsRecorded) { m.Events[0].Position, m.Events[1].Position = 1e6, 1e6+1 },
		"an event without an id":    func(m *executionv1.EventsRecorded) { m.Events[0].EventID = "" },
		"a type that is one word":   func(m *executionv1.EventsRecorded) { m.Events[0].EventType = "completed" },
		"a type of 129 bytes":       func(m *executionv1.EventsRecorded) { m.Events[0].EventType = "task." + strings.Repeat("x", 124) },
		"a time with an offset":     func(m *executionv1.EventsRecorded) { m.Events[0].OccurredAt = "2026-03-04T05:06:07+01:00" },
		"a second 60":               func(m *executionv1.EventsRecorded) { m.Events[0].OccurredAt = "2026-06-30T23:59:60Z" },
		"a task of prose":           func(m *executionv1.EventsRecorded) { m.Events[0].TaskID = "some prose" },
		"an instance of prose":      func(m *executionv1.EventsRecorded) { m.Events[0].AgentInstanceID = "some prose" },
		"a role of prose":           func(m *executionv1.EventsRecorded) { m.Events[0].AgentRole = "some prose" },
		"a user of prose":           func(m *executionv1.EventsRecorded) { m.Events[0].UserID = "some prose" },
		"a channel of prose":        func(m *executionv1.EventsRecorded) { m.Events[0].ChannelID = "some prose" },
		"no payload":                func(m *executionv1.EventsRecorded) { m.Events[0].Payload = nil },
		"a payload that is a list":  func(m *executionv1.EventsRecorded) { m.Events[0].Payload = jsontext.Value(`[]`) },
		"a payload with spaces":     func(m *executionv1.EventsRecorded) { m.Events[0].Payload = jsontext.Value(`{"ok": true}`) },
		"a payload out of order":    func(m *executionv1.EventsRecorded) { m.Events[0].Payload = jsontext.Value(`{"b":1,"a":2}`) },
		"a payload with an object":  func(m *executionv1.EventsRecorded) { m.Events[0].Payload = jsontext.Value(`{"a":{}}`) },
		"a payload with a list":     func(m *executionv1.EventsRecorded) { m.Events[0].Payload = jsontext.Value(`{"a":["x"]}`) },
		"a payload with a null":     func(m *executionv1.EventsRecorded) { m.Events[0].Payload = jsontext.Value(`{"a":null}`) },
		"a payload of prose":        func(m *executionv1.EventsRecorded) { m.Events[0].Payload = jsontext.Value(`{"status":"some prose"}`) },
		"a payload named in prose":  func(m *executionv1.EventsRecorded) { m.Events[0].Payload = jsontext.Value(`{"some prose":1}`) },
		"a payload that is no JSON": func(m *executionv1.EventsRecorded) { m.Events[0].Payload = jsontext.Value(`{"a"}`) },
		"unsorted names":            func(m *executionv1.EventsRecorded) { slices.Reverse(m.Events[0].DroppedFields) },
		"a name of prose":           func(m *executionv1.EventsRecorded) { m.Events[0].DroppedFields[1] = "some prose" },
		"too few dropped":           func(m *executionv1.EventsRecorded) { m.Events[0].DroppedCount = 1 },
		"fewer than none dropped":   func(m *executionv1.EventsRecorded) { m.Events[1].DroppedCount = -1 },
		"more than can be counted":  func(m *executionv1.EventsRecorded) { m.Events[1].DroppedCount = 1 << 31 },
		"an event without a time":   func(m *executionv1.EventsRecorded) { m.Events[1].RecordedAt = time.Time{} },
	})
}

func TestFactsAreRefused(t *testing.T) {
	t.Parallel()
	tasks := map[string]func(*executionv1.TaskRecorded){
		"no id":         func(m *executionv1.TaskRecorded) { m.ExecutionID = "" },
		"no task's id":  func(m *executionv1.TaskRecorded) { m.Task.TaskID = "" },
		"version 0":     func(m *executionv1.TaskRecorded) { m.Task.Version = 0 },
		"without facts": func(m *executionv1.TaskRecorded) { m.Task.Facts = nil },
		"without time":  func(m *executionv1.TaskRecorded) { m.Task.RecordedAt = time.Time{} },
	}
	for name, facts := range map[string]string{
		"an unknown member": `{"prompt":"x"}`, "another type": `{"tool_count":"x"}`, "a fraction": `{"retry_count":0.5}`,
		"a null": `{"agent_role":null}`, "prose": `{"agent_role":"some prose"}`, "prose in a list": `{"depends_on":["some prose"]}`,
		"prose below": `{"usage":{"model_id":"some prose"}}`, "white space": `{ }`, "a list": `[]`, "no JSON": `{`, "no object": `"x"`,
		"too much": `{"depends_on":["` + strings.Repeat(`x","`, 1<<20) + `x"]}`, "another order": `{"source":"planner","agent_role":"x"}`,
	} {
		tasks[name] = func(m *executionv1.TaskRecorded) { m.Task.Facts = jsontext.Value(facts) }
	}
	refuses(t, "task", func() executionv1.TaskRecorded {
		return executionv1.TaskRecorded{ExecutionID: executionID, Task: task("t-1")}
	}, tasks)
	refuses(t, "approval", func() executionv1.ApprovalRecorded {
		return executionv1.ApprovalRecorded{ExecutionID: executionID, Approval: approval()}
	}, map[string]func(*executionv1.ApprovalRecorded){
		"no id":            func(m *executionv1.ApprovalRecorded) { m.ExecutionID = "" },
		"no approval's id": func(m *executionv1.ApprovalRecorded) { m.Approval.ApprovalID = "" },
		"prose":            func(m *executionv1.ApprovalRecorded) { m.Approval.Facts = jsontext.Value(`{"scope":"some prose"}`) },
		"a reason below": func(m *executionv1.ApprovalRecorded) {
			m.Approval.Facts = jsontext.Value(`{"decided_by":{"reason":"prose"}}`)
		},
		"a reason in members": func(m *executionv1.ApprovalRecorded) {
			m.Approval.Facts = jsontext.Value(`{"reason":{"a":"some prose"}}`)
		},
		"a reason of null": func(m *executionv1.ApprovalRecorded) { m.Approval.Facts = jsontext.Value(`{"reason":["prose"]}`) },
	})
	refuses(t, "grant", func() executionv1.GrantRecorded {
		return executionv1.GrantRecorded{ExecutionID: executionID, Grant: grant()}
	}, map[string]func(*executionv1.GrantRecorded){
		"no id":         func(m *executionv1.GrantRecorded) { m.ExecutionID = "" },
		"no grant's id": func(m *executionv1.GrantRecorded) { m.Grant.GrantID = "" },
		"prose": func(m *executionv1.GrantRecorded) {
			m.Grant.Facts = jsontext.Value(`{"constraints":{"where":"some prose"}}`)
		},
		"constraints within others": func(m *executionv1.GrantRecorded) { m.Grant.Facts = jsontext.Value(`{"constraints":{"a":{"b":1}}}`) },
	})
	refuses(t, "callbacks", func() executionv1.CallbacksRecorded {
		return executionv1.CallbacksRecorded{ExecutionID: executionID, Attempts: attempts()}
	}, map[string]func(*executionv1.CallbacksRecorded){
		"no id":           func(m *executionv1.CallbacksRecorded) { m.ExecutionID = "" },
		"no attempt":      func(m *executionv1.CallbacksRecorded) { m.Attempts = nil },
		"a gap":           func(m *executionv1.CallbacksRecorded) { m.Attempts[1].Position = 3 },
		"position 0":      func(m *executionv1.CallbacksRecorded) { m.Attempts[0].Position, m.Attempts[1].Position = 0, 1 },
		"position 2^31":   func(m *executionv1.CallbacksRecorded) { m.Attempts = m.Attempts[:1]; m.Attempts[0].Position = 1 << 31 },
		"no attempt's id": func(m *executionv1.CallbacksRecorded) { m.Attempts[0].AttemptID = "" },
		"a path":          func(m *executionv1.CallbacksRecorded) { m.Attempts[0].Facts = jsontext.Value(`{"path":"/hook"}`) },
		"a status of prose": func(m *executionv1.CallbacksRecorded) {
			m.Attempts[0].Facts = jsontext.Value(attempt(`"h"`, `"some prose"`))
		},
		"without a time": func(m *executionv1.CallbacksRecorded) { m.Attempts[1].RecordedAt = time.Time{} },
	})
}

func TestSnapshotsAreRefused(t *testing.T) {
	t.Parallel()
	refuses(t, "snapshot", snapshot, map[string]func(*executionv1.Snapshot){
		"a wrong execution":               func(m *executionv1.Snapshot) { m.Execution.SwarmID = "" },
		"a position before the first":     func(m *executionv1.Snapshot) { m.LastPosition = -1 },
		"a position beyond the limit":     func(m *executionv1.Snapshot) { m.LastPosition = 1_000_001 },
		"events beyond the last":          func(m *executionv1.Snapshot) { m.LastPosition = 7 },
		"a gap":                           func(m *executionv1.Snapshot) { m.Events[1].Position = 9 },
		"fewer than no grants":            func(m *executionv1.Snapshot) { m.Counts.Grants = -1 },
		"another result":                  func(m *executionv1.Snapshot) { m.Result = "ok" },
		"no time":                         func(m *executionv1.Snapshot) { m.LatestAt = time.Time{} },
		"tasks in another order":          func(m *executionv1.Snapshot) { slices.Reverse(m.Tasks.Items) },
		"a task twice":                    func(m *executionv1.Snapshot) { m.Tasks.Items[1] = m.Tasks.Items[0] },
		"a task before its page":          func(m *executionv1.Snapshot) { m.Tasks.After = "t-1" },
		"a task behind its page":          func(m *executionv1.Snapshot) { m.Tasks.UpTo = "t-1" },
		"a page that ends as it begins":   func(m *executionv1.Snapshot) { *m.Tasks = executionv1.Page[executionv1.Task]{After: "t", UpTo: "t"} },
		"a page after prose":              func(m *executionv1.Snapshot) { m.Tasks.After = "some prose" },
		"a task's facts":                  func(m *executionv1.Snapshot) { m.Tasks.Items[0].Facts = nil },
		"an approval's facts":             func(m *executionv1.Snapshot) { m.Approvals.Items[0].Facts = nil },
		"a grant's facts":                 func(m *executionv1.Snapshot) { m.Grants.Items[0].Facts = nil },
		"attempts that are not all there": func(m *executionv1.Snapshot) { m.Counts.Attempts = 3 },
		"an attempt's facts":              func(m *executionv1.Snapshot) { m.Attempts[0].Facts = nil },
	})
}
