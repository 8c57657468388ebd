package trace_test

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/trace"
)

// vector is a run as an orchestrator sends it, and what must come of it.
type vector struct {
	Name      string                  `json:"name"`
	Lineage   trace.Lineage           `json:"lineage"`
	Tasks     map[string]sentTask     `json:"tasks"`
	Approvals map[string]sentApproval `json:"approvals"`
	Events    []sentEvent             `json:"events"`
	Records   []jsontext.Value        `json:"records"`
	Replay    []string                `json:"replay"`
}

type sentTask struct {
	AgentRole *string `json:"agent_role"`
	Usage     *struct {
		ModelID *string `json:"model_id"`
	} `json:"usage"`
	ToolCalls jsontext.Value `json:"tool_calls"`
	ToolCount *int64         `json:"tool_count"`
}

type sentApproval struct {
	Decision trace.Decision `json:"decision"`
}

type sentEvent struct {
	Type            string  `json:"event_type"`
	OccurredAt      string  `json:"occurred_at"`
	TaskID          *string `json:"task_id"`
	AgentInstanceID *string `json:"agent_instance_id"`
	Payload         struct {
		ApprovalID *string        `json:"approval_id"`
		Decision   trace.Decision `json:"decision"`
	} `json:"payload"`
}

func (s sentTask) task(t *testing.T) trace.Task {
	t.Helper()
	task := trace.Task{AgentRole: s.AgentRole}
	if s.Usage != nil && s.Usage.ModelID != nil {
		task.Model = &trace.Model{ModelID: *s.Usage.ModelID}
	}
	if s.ToolCount != nil {
		task.Tool = &trace.Tool{Count: *s.ToolCount}
	}
	if s.ToolCalls != nil {
		n, ok := trace.CountCalls(s.ToolCalls)
		if !ok {
			t.Fatalf("no tool calls: %s", s.ToolCalls)
		}
		task.Tool = &trace.Tool{Count: n}
	}
	return task
}

func (v vector) build(t *testing.T) []trace.Record {
	t.Helper()
	tasks, approvals := map[string]trace.Task{}, map[string]trace.Decision{}
	for id, sent := range v.Tasks {
		tasks[id] = sent.task(t)
	}
	for id, sent := range v.Approvals {
		approvals[id] = sent.Decision
	}
	events := make([]trace.Event, len(v.Events))
	for i, e := range v.Events {
		events[i] = trace.Event{
			Type: e.Type, OccurredAt: e.OccurredAt, TaskID: e.TaskID, AgentInstanceID: e.AgentInstanceID,
			ApprovalID: e.Payload.ApprovalID, Decision: e.Payload.Decision,
		}
	}
	return trace.Build(events, tasks, approvals, v.Lineage)
}

func vectors(t *testing.T) []vector {
	t.Helper()
	raw, err := os.ReadFile("testdata/audit-trace.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []vector `json:"vectors"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatal("the file has no vectors")
	}
	return file.Vectors
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			records := v.build(t)
			if len(records) != len(v.Records) {
				t.Fatalf("got %d records, want %d", len(records), len(v.Records))
			}
			again := v.build(t)
			for i, r := range records {
				got := trace.AppendJSON(nil, r)
				if want := canon(t, v.Records[i]); !bytes.Equal(canon(t, got), want) {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if keys := keysOf(t, got); !slices.Equal(keys, frozenKeys(r)) {
					t.Errorf("%s has the keys %q", got, keys)
				}
				if b := trace.AppendJSON(nil, again[i]); !bytes.Equal(b, got) {
					t.Errorf("%s became %s", got, b)
				}
				sameAsLibrary(t, r, got)
			}
			if lines := trace.Replay(records); !slices.Equal(lines, v.Replay) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(v.Replay, "\n"))
			}
		})
	}
}

// fatal is what testing and rapid have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// sameAsLibrary compares the bytes of r with those of the JSON library, and the
// record they are read as with r.
func sameAsLibrary(t fatal, r trace.Record, got []byte) {
	t.Helper()
	want, err := json.Marshal(r)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got  %s\nwant %s, %v", got, want, err)
	}
	var back trace.Record
	if err := json.Unmarshal(got, &back, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if b := trace.AppendJSON(nil, back); !bytes.Equal(b, got) {
		t.Fatalf("%s was read as %s", got, b)
	}
}

// frozenKeys is the order of section 5 of the contract, of what r has.
func frozenKeys(r trace.Record) []string {
	keys := []string{"audit_id", "occurred_at", "action", "actor", "actor.agent_role", "actor.agent_instance_id", "task_id"}
	for _, part := range []struct {
		name string
		has  bool
		keys []string
	}{
		{"model", r.Model != nil, []string{"model.model_id"}},
		{"tool", r.Tool != nil, []string{"tool.count"}},
		{"approval", r.Approval != nil, []string{"approval.approval_id", "approval.decision"}},
	} {
		keys = append(keys, part.name)
		if part.has {
			keys = append(keys, part.keys...)
		}
	}
	return append(keys, "result", "lineage", "lineage.manager_deployment_id", "lineage.deployment_id",
		"lineage.swarm_id", "lineage.correlation_id", "redacted")
}

// keysOf returns the names in raw in their order, those of nested objects with
// the name of the object before them.
func keysOf(t *testing.T, raw jsontext.Value) []string {
	t.Helper()
	var keys []string
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	for dec.PeekKind() != jsontext.KindInvalid {
		if _, err := dec.ReadToken(); err != nil {
			t.Fatal(err)
		}
		if kind, n := dec.StackIndex(dec.StackDepth()); kind == jsontext.KindBeginObject && n%2 == 1 {
			keys = append(keys, strings.ReplaceAll(string(dec.StackPointer())[1:], "/", "."))
		}
	}
	return keys
}

func canon(t *testing.T, raw []byte) []byte {
	t.Helper()
	b, err := canonical.JSON(jsontext.Value(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return b
}

func TestVectorsCoverEveryResult(t *testing.T) {
	t.Parallel()
	seen := map[trace.Result]bool{}
	for _, v := range vectors(t) {
		for _, r := range v.build(t) {
			seen[r.Result] = true
		}
	}
	if got := slices.Sorted(maps.Keys(seen)); len(got) != 5 {
		t.Errorf("only %q", got)
	}
}
