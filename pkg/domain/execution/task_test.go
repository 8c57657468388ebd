package execution_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/refusal"
)

func taskFields() execution.TaskFields {
	return execution.TaskFields{
		ParentTaskID: ptr("t-1"), RootTaskID: ptr("t-0"), ChildTaskIDs: []string{"t-3", "t/4"}, DependsOn: []string{}, Source: ptr("planner"),
		AgentRole: ptr("impl"), AssignedAgentID: ptr("agent-7"), RetryCount: ptr(int64(0)), CreatedAt: ptr("2026-06-08T11:00:00+02:00"),
		UpdatedAt: ptr("2026-06-08T09:00:00.10Z"), ModelID: ptr("gpt-x"), InputTokens: ptr(int64(1)), OutputTokens: ptr(int64(0)),
		TotalTokens: ptr(int64(execution.MaxSafeInteger)), ToolCount: ptr(int64(3)),
	}
}

func put(t *testing.T, f execution.TaskFields, by execution.Attribution, stored jsontext.Value) (jsontext.Value, bool) {
	t.Helper()
	task, err := execution.NewTask(f, by)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	facts, changed, err := task.Over(stored)
	if err != nil || task.Final() {
		t.Fatalf("not put: %v", err)
	}
	return facts, changed
}

func TestATaskIsKeptWhole(t *testing.T) {
	t.Parallel()
	by := execution.Attribution{UserID: "ada", ChannelID: "42", Role: "review", InstanceID: "agent-9", TaskID: "t-9"}
	const whole = `{"agent_role":"impl","assigned_agent_id":"agent-7","channel_id":"42","child_task_ids":["t-3","t/4"],` +
		`"created_at":"2026-06-08T09:00:00Z","depends_on":[],"parent_task_id":"t-1","retry_count":0,"root_task_id":"t-0","source":"planner",` +
		`"tool_count":3,"updated_at":"2026-06-08T09:00:00.10Z","usage":{"input_tokens":1,"model_id":"gpt-x","output_tokens":0,"total_tokens":9007199254740991},"user_id":"ada"}`
	facts, changed := put(t, taskFields(), by, nil)
	if string(facts) != whole || !changed {
		t.Errorf("got %s", facts)
	}
	if facts, changed := put(t, taskFields(), by, facts); string(facts) != whole || changed {
		t.Errorf("the same again: %s, %v", facts, changed)
	}
	if facts, changed := put(t, execution.TaskFields{}, nobody, nil); string(facts) != `{}` || !changed {
		t.Errorf("nothing is known: %s, %v", facts, changed)
	}
	if facts, _ := put(t, execution.TaskFields{}, by, nil); string(facts) != `{"agent_role":"review","channel_id":"42","user_id":"ada"}` {
		t.Errorf("headers: %s", facts)
	}
	if facts, _ := put(t, execution.TaskFields{ToolCalls: ptr(int64(0)), ToolCount: ptr(int64(9))}, nobody, nil); string(facts) != `{"tool_count":0}` {
		t.Errorf("calls win over the count: %s", facts)
	}
}

func TestATaskIsReplacedButForWhatStays(t *testing.T) {
	t.Parallel()
	stored, _ := put(t, taskFields(), execution.Attribution{UserID: "ada"}, nil)
	facts, changed := put(t, execution.TaskFields{}, nobody, stored)
	if string(facts) != `{"parent_task_id":"t-1","root_task_id":"t-0","source":"planner"}` || !changed {
		t.Errorf("omitted is null: %s", facts)
	}
	other := execution.TaskFields{ParentTaskID: ptr("t-8"), RootTaskID: ptr("t-9"), Source: ptr("runtime_bridge"), RetryCount: ptr(int64(2))}
	if facts, changed := put(t, other, nobody, stored); string(facts) != `{"parent_task_id":"t-1","retry_count":2,"root_task_id":"t-0","source":"planner"}` || !changed {
		t.Errorf("once set, it stays: %s", facts)
	}
	bare, _ := put(t, execution.TaskFields{}, nobody, nil)
	if facts, _ := put(t, other, nobody, bare); string(facts) != `{"parent_task_id":"t-8","retry_count":2,"root_task_id":"t-9","source":"runtime_bridge"}` {
		t.Errorf("what was not set may be: %s", facts)
	}
}

func TestTasksAreRefused(t *testing.T) {
	t.Parallel()
	broken := map[string]func(*execution.TaskFields){
		"another source": func(f *execution.TaskFields) { f.Source = ptr("person") }, "an empty source": func(f *execution.TaskFields) { f.Source = ptr("") },
		"a time": func(f *execution.TaskFields) { f.CreatedAt = ptr("today") }, "no time": func(f *execution.TaskFields) { f.UpdatedAt = ptr("") },
		"a negative count": func(f *execution.TaskFields) { f.RetryCount = ptr(int64(-1)) }, "too many calls": func(f *execution.TaskFields) { f.ToolCalls = ptr(int64(1) << 53) },
		"negative tools": func(f *execution.TaskFields) { f.ToolCount = ptr(int64(-1)) }, "negative tokens": func(f *execution.TaskFields) { f.InputTokens = ptr(int64(-1)) },
		"too many tokens": func(f *execution.TaskFields) { f.TotalTokens = ptr(int64(1) << 53) }, "no tokens": func(f *execution.TaskFields) { f.OutputTokens = ptr(int64(-5)) },
		"too many children":     func(f *execution.TaskFields) { f.ChildTaskIDs = strings.Split(strings.Repeat("t ", 10_000)+"t", " ") },
		"too many dependencies": func(f *execution.TaskFields) { f.DependsOn = strings.Split(strings.Repeat("t ", 10_000)+"t", " ") },
	}
	for what, name := range unnamed() {
		broken["parent "+what] = func(f *execution.TaskFields) { f.ParentTaskID = &name }
		broken["root "+what] = func(f *execution.TaskFields) { f.RootTaskID = &name }
		broken["child "+what] = func(f *execution.TaskFields) { f.ChildTaskIDs = []string{"t", name} }
		broken["dependency "+what] = func(f *execution.TaskFields) { f.DependsOn = []string{name} }
		broken["source "+what] = func(f *execution.TaskFields) { f.Source = &name }
		broken["role "+what] = func(f *execution.TaskFields) { f.AgentRole = &name }
		broken["agent "+what] = func(f *execution.TaskFields) { f.AssignedAgentID = &name }
		broken["model "+what] = func(f *execution.TaskFields) { f.ModelID = &name }
	}
	for name, breaks := range broken {
		f := taskFields()
		breaks(&f)
		if _, err := execution.NewTask(f, nobody); refusal.CodeOf(err) != refusal.InvalidRequest {
			t.Errorf("%s: got %v", name, err)
		}
	}
	f := taskFields()
	f.ChildTaskIDs = strings.Split(strings.Repeat("t ", 9_999)+"t", " ")
	if _, err := execution.NewTask(f, nobody); err != nil {
		t.Errorf("10,000 children: %v", err)
	}
	if err := execution.MayAddTask(99_999); err != nil {
		t.Errorf("the last that may be: %v", err)
	}
	wantCode(t, execution.MayAddTask(100_000), refusal.RunLimit)
}

// A task's last word is its facts, but for the first parent, root and source that were said.
func TestTheLastWordCountsButForWhatStays(t *testing.T) {
	t.Parallel()
	name := rapid.Ptr(rapid.SampledFrom([]string{"a", "b", "c"}), true)
	count := rapid.Ptr(rapid.Int64Range(0, 3), true)
	source := rapid.Ptr(rapid.SampledFrom([]string{"runtime_bridge", "planner", "dynamic_handoff"}), true)
	rapid.Check(t, func(t *rapid.T) {
		var stored jsontext.Value
		var want execution.Task
		first := func(kept, said string) string {
			if kept != "" {
				return kept
			}
			return said
		}
		for range rapid.IntRange(1, 8).Draw(t, "words") {
			by := execution.Attribution{UserID: rapid.SampledFrom([]string{"", "ada"}).Draw(t, "user")}
			said, err := execution.NewTask(execution.TaskFields{
				ParentTaskID: name.Draw(t, "parent"), RootTaskID: name.Draw(t, "root"), Source: source.Draw(t, "source"),
				AgentRole: name.Draw(t, "role"), RetryCount: count.Draw(t, "retries"), ToolCalls: count.Draw(t, "calls"), ModelID: name.Draw(t, "model"),
			}, by)
			if err != nil {
				t.Fatal(err)
			}
			before := stored
			facts, changed, err := said.Over(stored)
			if err != nil || changed != (string(before) != string(facts)) {
				t.Fatalf("changed is %v: %s, %s, %v", changed, before, facts, err)
			}
			said.ParentTaskID, said.RootTaskID, said.Source = first(want.ParentTaskID, said.ParentTaskID), first(want.RootTaskID, said.RootTaskID), first(want.Source, said.Source)
			want, stored = said, facts
		}
		var got execution.Task
		if err := json.Unmarshal(stored, &got); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Fatalf("got %s, want %s", a, b)
		}
	})
}

func TestFactsThatAreNotOfTheirFormSayNothing(t *testing.T) {
	t.Parallel()
	for _, fact := range []execution.Fact{execution.Task{}, execution.Approval{}, execution.Grant{}} {
		_, _, err := fact.Over(jsontext.Value(`{"status":["hunter2"],"source":["hunter2"],"decision":["hunter2"]}`))
		if err == nil || strings.Contains(err.Error(), "hunter2") || refusal.CodeOf(err) != "" {
			t.Errorf("%T: got %v", fact, err)
		}
	}
}
