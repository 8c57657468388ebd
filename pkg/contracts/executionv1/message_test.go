package executionv1_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/domain/trace"
)

var update = flag.Bool("update", false, "write the golden files")

const executionID = "623e4567-e89b-42d3-a456-426614174001"

var at = time.Date(2026, 3, 4, 5, 6, 7, 890123000, time.UTC)

func opened() executionv1.Execution {
	return executionv1.Execution{
		ExecutionID: executionID, ClientAppID: "crm-demo", SwarmID: "swarm/7", ManagerDeploymentID: "md-1", DeploymentID: "d-1",
		CorrelationID: "c:1", RunID: "223e4567-e89b-42d3-a456-426614174001", UserID: "ada@example.com", ChannelID: "42", CreatedAt: at,
	}
}

func bare() executionv1.Execution {
	return executionv1.Execution{ExecutionID: executionID, ClientAppID: "crm-demo", SwarmID: "s", CreatedAt: at}
}

func events() []executionv1.Event {
	return []executionv1.Event{
		{
			Position: 7, EventID: "e/7", EventType: "task.completed", OccurredAt: "2026-03-04T05:06:07.120Z", TaskID: "t-1",
			AgentInstanceID: "agent-7", AgentRole: "impl", UserID: "ada", ChannelID: "42",
			Payload:       jsontext.Value(`{"attempt":2,"ok":true,"secret_ref":"azkv://vault/` + strings.Repeat("n", 127) + `"}`),
			DroppedFields: []string{"output", "prompt"}, DroppedCount: 3, RecordedAt: at,
		},
		{
			Position: 8, EventID: "e-8", EventType: "timeline.updated", OccurredAt: "2026-03-04T05:06:08Z",
			Payload: jsontext.Value(`{}`), RecordedAt: at,
		},
	}
}

func recorded() executionv1.EventsRecorded {
	return executionv1.EventsRecorded{ExecutionID: executionID, Events: events()}
}

func task(id string) *executionv1.Task {
	return &executionv1.Task{
		TaskID: id, Version: 3, RecordedAt: at,
		Facts: jsontext.Value(`{"agent_role":"impl","depends_on":["t-0","t:0/1"],"parent_task_id":"t-0","source":"planner",` +
			`"tool_count":0,"updated_at":"2026-03-04T05:06:07.5Z","usage":{"input_tokens":9007199254740991,"model_id":"gpt-x"},"user_id":"ada"}`),
	}
}

func approval() *executionv1.Approval {
	return &executionv1.Approval{
		ApprovalID: "ap-1", Version: 4, RecordedAt: at,
		Facts: jsontext.Value(`{"credential_ref":"azkv://vault/db","decided_by":{"channel_id":"42","user_id":"ada"},"decision":"approved","reason":"Geprüft: all good."}`),
	}
}

func grant() *executionv1.Grant {
	return &executionv1.Grant{
		GrantID: "g-1", Version: 5, RecordedAt: at,
		Facts: jsontext.Value(`{"allowed_actions":["read"],"constraints":{"max_uses":3,"once":true},"secret_ref":"azkv://vault/db","status":"active"}`),
	}
}

func attempts() []executionv1.CallbackAttempt {
	return []executionv1.CallbackAttempt{
		{Position: 1, AttemptID: "at-1", RecordedAt: at, Facts: jsontext.Value(attempt(`"[2001:db8::1]"`, `503`))},
		{Position: 2, AttemptID: "at-2", RecordedAt: at, Facts: jsontext.Value(attempt(`"hooks.example.com"`, `"timeout"`))},
	}
}

func attempt(host, status string) string {
	return `{"attempted_at":"2026-03-04T05:06:07Z","event_id":"e/7","event_type":"task.completed","host":` + host + `,"port":443,` +
		`"scheme":"https","status":` + status + `,"url_sha256":"` + strings.Repeat("0f", 32) + `"}`
}

func snapshot() executionv1.Snapshot {
	return executionv1.Snapshot{
		Execution: opened(), LastPosition: 8, Counts: executionv1.Counts{Tasks: 2, Approvals: 1, Grants: 1, Attempts: 2},
		Result: trace.Success, LatestAt: at, Events: events(),
		Tasks:     &executionv1.Page[executionv1.Task]{After: "t", UpTo: "t-2", Items: []executionv1.Task{*task("t-1"), *task("t-2")}},
		Approvals: &executionv1.Page[executionv1.Approval]{Items: []executionv1.Approval{*approval()}},
		Grants:    &executionv1.Page[executionv1.Grant]{Items: []executionv1.Grant{*grant()}},
		Attempts:  attempts(), Last: true,
	}
}

func TestMessagesHaveStableBytes(t *testing.T) {
	t.Parallel()
	golden(t, "opened", opened())
	golden(t, "opened_bare", bare())
	golden(t, "events_recorded", recorded())
	golden(t, "task_recorded", executionv1.TaskRecorded{ExecutionID: executionID, Task: task("t-1")})
	golden(t, "task_replaced", executionv1.TaskRecorded{ExecutionID: executionID})
	golden(t, "approval_recorded", executionv1.ApprovalRecorded{ExecutionID: executionID, Approval: approval()})
	golden(t, "grant_recorded", executionv1.GrantRecorded{ExecutionID: executionID, Grant: grant()})
	golden(t, "callbacks_recorded", executionv1.CallbacksRecorded{ExecutionID: executionID, Attempts: attempts()})
	golden(t, "snapshot", snapshot())
	golden(t, "snapshot_bare", executionv1.Snapshot{Execution: bare(), Result: trace.Info, LatestAt: at, Last: true, Replace: true})
}

func golden[M executionv1.Message](t *testing.T, name string, m M) {
	t.Helper()
	data, err := executionv1.Marshal(m)
	require.NoError(t, err)
	path := filepath.Join("testdata", name+".json")
	if *update {
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(data))

	back, err := executionv1.Unmarshal[M](want)
	require.NoError(t, err)
	require.Equal(t, m, back)
}

func TestTypesAreTheContracts(t *testing.T) {
	t.Parallel()
	require.Equal(t, "execution", executionv1.StreamKind)
	require.Equal(t, []string{
		"verbatim.execution.opened.v1", "verbatim.execution.events_recorded.v1", "verbatim.execution.task_recorded.v1",
		"verbatim.execution.approval_recorded.v1", "verbatim.execution.grant_recorded.v1",
		"verbatim.execution.callbacks_recorded.v1", "verbatim.execution.snapshot.v1",
	}, []string{
		opened().Type(), recorded().Type(), executionv1.TaskRecorded{}.Type(), executionv1.ApprovalRecorded{}.Type(),
		executionv1.GrantRecorded{}.Type(), executionv1.CallbacksRecorded{}.Type(), snapshot().Type(),
	})
}

func TestUnmarshalIsStrict(t *testing.T) {
	t.Parallel()
	data, err := executionv1.Marshal(recorded())
	require.NoError(t, err)
	for name, change := range map[string]func(string) string{
		"unknown member": func(s string) string {
			return strings.Replace(s, `{"execution_id"`, `{"secret":"text","execution_id"`, 1)
		},
		"duplicate member": func(s string) string { return strings.Replace(s, `"event_id":`, `"event_id":"x","event_id":`, 1) },
		"duplicate name":   func(s string) string { return strings.Replace(s, `{"attempt"`, `{"ok":true,"attempt"`, 1) },
		"other case":       func(s string) string { return strings.Replace(s, `"event_id"`, `"Event_id"`, 1) },
		"trailing data":    func(s string) string { return s + "{}" },
		"a list":           func(s string) string { return "[" + s + "]" },
		"invalid UTF-8":    func(s string) string { return strings.Replace(s, "azkv", "\xff", 1) },
		"cut off":          func(s string) string { return s[:len(s)-1] },
		"another message":  func(string) string { return `{"execution_id":"` + executionID + `","text":""}` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := executionv1.Unmarshal[executionv1.EventsRecorded](jsontext.Value(change(string(data))))
			require.ErrorIs(t, err, executionv1.ErrData)
			require.NotContains(t, err.Error(), "text")
		})
	}
}

func TestWhatIsAtItsLimitIsAccepted(t *testing.T) {
	t.Parallel()
	m := recorded()
	m.Events[0].Position, m.Events[1].Position = 999_999, 1_000_000
	m.Events[1].EventType = "task." + strings.Repeat("x", 123)
	m.Events[1].EventID = strings.Repeat("x", 128)
	require.NoError(t, m.Validate())
	ids := strings.Repeat(`"`+strings.Repeat("i", 128)+`",`, 10_000)
	most := task("t-1")
	most.Facts = jsontext.Value(`{"child_task_ids":[` + ids[:len(ids)-1] + `],"depends_on":[` + ids[:len(ids)-1] + `]}`)
	require.NoError(t, executionv1.TaskRecorded{ExecutionID: executionID, Task: most}.Validate())
}

func FuzzUnmarshal(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		comesBack[executionv1.Execution](t, data)
		comesBack[executionv1.EventsRecorded](t, data)
		comesBack[executionv1.TaskRecorded](t, data)
		comesBack[executionv1.ApprovalRecorded](t, data)
		comesBack[executionv1.GrantRecorded](t, data)
		comesBack[executionv1.CallbacksRecorded](t, data)
		comesBack[executionv1.Snapshot](t, data)
	})
}

// comesBack holds that what Unmarshal accepts, Marshal writes so that it reads the same.
// A list that is null is written as an empty one, so bytes are compared.
func comesBack[M executionv1.Message](t *testing.T, data []byte) {
	t.Helper()
	m, err := executionv1.Unmarshal[M](data)
	if err != nil {
		return
	}
	once, err := executionv1.Marshal(m)
	require.NoError(t, err)
	back, err := executionv1.Unmarshal[M](once)
	require.NoError(t, err)
	twice, err := executionv1.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(once), string(twice))
}
