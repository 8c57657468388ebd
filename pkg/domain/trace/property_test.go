package trace_test

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/trace"
)

// run is what is stored of a run.
type run struct {
	lineage   trace.Lineage
	events    []trace.Event
	tasks     map[string]trace.Task
	approvals map[string]trace.Decision
}

var (
	taskIDs     = []string{"t-1", "t-2", "t-3", "t-4"}
	approvalIDs = []string{"ap-1", "ap-2", "ap-3"}
	decisions   = rapid.SampledFrom([]trace.Decision{"", trace.Approved, trace.Rejected})
	identifiers = rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,15}`)
	types       = rapid.OneOf(
		rapid.SampledFrom([]string{"task.completed", "approval.requested", "approval.approved", "approval.rejected"}),
		rapid.StringMatching(`[a-z][a-z0-9_]{0,5}(\.[a-z][a-z0-9_]{0,5}){1,3}`),
	)
	times = rapid.StringMatching(`20[0-9]{2}-0[1-9]-[12][0-9]T[01][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]0[0-9]:[0-5][0-9])`)

	someTask = rapid.Custom(func(t *rapid.T) trace.Task {
		task := trace.Task{AgentRole: rapid.Ptr(identifiers, true).Draw(t, "role")}
		if rapid.Bool().Draw(t, "has a model") {
			task.Model = &trace.Model{ModelID: identifiers.Draw(t, "model")}
		}
		if rapid.Bool().Draw(t, "has tools") {
			task.Tool = &trace.Tool{Count: rapid.Int64Range(0, 1<<53-1).Draw(t, "tools")}
		}
		return task
	})
	someEvent = rapid.Custom(func(t *rapid.T) trace.Event {
		return trace.Event{
			Type: types.Draw(t, "type"), OccurredAt: times.Draw(t, "time"),
			TaskID:          rapid.Ptr(rapid.SampledFrom(taskIDs), true).Draw(t, "task"),
			AgentInstanceID: rapid.Ptr(identifiers, true).Draw(t, "instance"),
			ApprovalID:      rapid.Ptr(rapid.SampledFrom(approvalIDs), true).Draw(t, "approval"),
			Decision:        decisions.Draw(t, "decision"),
		}
	})
	someRun = rapid.Custom(func(t *rapid.T) run {
		id := rapid.Ptr(identifiers, true)
		return run{
			lineage: trace.Lineage{
				ManagerDeploymentID: id.Draw(t, "manager"), DeploymentID: id.Draw(t, "deployment"),
				SwarmID: id.Draw(t, "swarm"), CorrelationID: id.Draw(t, "correlation"),
			},
			events:    rapid.SliceOfN(someEvent, 0, 40).Draw(t, "events"),
			tasks:     rapid.MapOf(rapid.SampledFrom(taskIDs), someTask).Draw(t, "tasks"),
			approvals: rapid.MapOf(rapid.SampledFrom(approvalIDs), decisions).Draw(t, "approvals"),
		}
	})
)

func (r run) assembler() *trace.Assembler {
	return &trace.Assembler{
		Lineage:  r.lineage,
		Task:     func(id string) trace.Task { return r.tasks[id] },
		Decision: func(id string) trace.Decision { return r.approvals[id] },
	}
}

func (r run) build() []trace.Record { return trace.Build(r.events, r.tasks, r.approvals, r.lineage) }

// lines returns the records of r as they are streamed, a record a line.
func (r run) lines() [][]byte {
	var lines [][]byte
	for _, record := range r.build() {
		lines = append(lines, trace.AppendJSON(nil, record))
	}
	return lines
}

func (r run) stream() []byte { return bytes.Join(r.lines(), []byte("\n")) }

// Whatever the pages were, and whoever read them after any restart, the trace is the same.
func TestBatchesChangeNoByte(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := someRun.Draw(t, "run")
		var paged [][]byte
		for from := 0; from < len(r.events); {
			to := min(len(r.events), from+rapid.IntRange(1, 10).Draw(t, "batch"))
			replica := r.assembler()
			for i := from; i < to; i++ {
				paged = append(paged, trace.AppendJSON(nil, replica.Assemble(int64(i)+1, r.events[i])))
			}
			from = to
		}
		if want := r.stream(); !bytes.Equal(bytes.Join(paged, []byte("\n")), want) {
			t.Fatalf("got  %s\nwant %s", bytes.Join(paged, []byte("\n")), want)
		}
	})
}

func TestTheSameFactsGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := someRun.Draw(t, "run")
		first := r.stream()
		again := r
		again.tasks, again.approvals = map[string]trace.Task{}, map[string]trace.Decision{}
		// Facts that arrive in another order, some of them to be replaced.
		for _, id := range rapid.Permutation(slices.Sorted(maps.Keys(r.tasks))).Draw(t, "order of tasks") {
			again.tasks[id] = someTask.Draw(t, "earlier task")
		}
		for _, id := range rapid.Permutation(slices.Sorted(maps.Keys(r.tasks))).Draw(t, "order of later tasks") {
			again.tasks[id] = r.tasks[id]
		}
		for _, id := range rapid.Permutation(slices.Sorted(maps.Keys(r.approvals))).Draw(t, "order of approvals") {
			again.approvals[id] = r.approvals[id]
		}
		if second := again.stream(); !bytes.Equal(first, second) {
			t.Fatalf("got  %s\nthen %s", first, second)
		}
	})
}

// A fact that comes after the events changes the records of its own task only, and of those only what it tells of.
func TestALateTaskChangesItsRecordsOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := someRun.Draw(t, "run")
		after := before
		after.tasks = maps.Clone(before.tasks)
		late, task := rapid.SampledFrom(taskIDs).Draw(t, "late"), someTask.Draw(t, "late task")
		after.tasks[late] = task
		differs := !reflect.DeepEqual(before.tasks[late], task)
		then, now := before.build(), after.build()
		for i, e := range before.events {
			if e.TaskID == nil || *e.TaskID != late {
				same(t, then[i], now[i])
				continue
			}
			if changed := !bytes.Equal(trace.AppendJSON(nil, then[i]), trace.AppendJSON(nil, now[i])); changed != differs {
				t.Fatalf("changed: %t; differs: %t", changed, differs)
			}
			then[i].Actor.AgentRole, then[i].Model, then[i].Tool = task.AgentRole, task.Model, task.Tool
			same(t, then[i], now[i])
		}
	})
}

func TestALateDecisionChangesItsRecordsOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := someRun.Draw(t, "run")
		after := before
		after.approvals = maps.Clone(before.approvals)
		late := rapid.SampledFrom(approvalIDs).Draw(t, "late")
		decision := rapid.SampledFrom([]trace.Decision{trace.Approved, trace.Rejected}).Draw(t, "decision")
		after.approvals[late] = decision
		then, now := before.build(), after.build()
		for i, e := range before.events {
			if e.ApprovalID != nil && *e.ApprovalID == late {
				then[i].Approval = &trace.Approval{ApprovalID: late, Decision: &decision}
			}
			same(t, then[i], now[i])
		}
	})
}

func same(t *rapid.T, a, b trace.Record) {
	t.Helper()
	if x, y := trace.AppendJSON(nil, a), trace.AppendJSON(nil, b); !bytes.Equal(x, y) {
		t.Fatalf("%s became %s", x, y)
	}
}

// More events never touch a record that is there; a line is of its record alone.
func TestARunOnlyGrows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := someRun.Draw(t, "run")
		shorter := r
		shorter.events = r.events[:rapid.IntRange(0, len(r.events)).Draw(t, "length")]
		if got, whole := shorter.stream(), r.stream(); !bytes.HasPrefix(whole, got) {
			t.Fatalf("%s does not begin with %s", whole, got)
		}
		records := r.build()
		for i, line := range trace.Replay(records) {
			if want := trace.Line(records[i]); line != want {
				t.Fatalf("got %s, want %s", line, want)
			}
		}
	})
}

// The appender is the JSON library's encoding, for every record whose texts are UTF-8.
func TestAppendJSONIsTheLibrarysEncoding(t *testing.T) {
	t.Parallel()
	texts := rapid.String()
	optional := rapid.Ptr(texts, true)
	rapid.Check(t, func(t *rapid.T) {
		r := trace.Record{
			AuditID:    trace.AuditID(rapid.Int64Min(1).Draw(t, "ordinal")),
			OccurredAt: texts.Draw(t, "time"), Action: texts.Draw(t, "action"),
			Actor:  trace.Actor{AgentRole: optional.Draw(t, "role"), AgentInstanceID: optional.Draw(t, "instance")},
			TaskID: optional.Draw(t, "task"),
			Result: trace.Result(texts.Draw(t, "result")),
			Lineage: trace.Lineage{
				ManagerDeploymentID: optional.Draw(t, "manager"), DeploymentID: optional.Draw(t, "deployment"),
				SwarmID: optional.Draw(t, "swarm"), CorrelationID: optional.Draw(t, "correlation"),
			},
			Redacted: rapid.Bool().Draw(t, "redacted"),
		}
		if model := optional.Draw(t, "model"); model != nil {
			r.Model = &trace.Model{ModelID: *model}
		}
		if count := rapid.Ptr(rapid.Int64(), true).Draw(t, "tools"); count != nil {
			r.Tool = &trace.Tool{Count: *count}
		}
		if id := optional.Draw(t, "approval"); id != nil {
			r.Approval = &trace.Approval{ApprovalID: *id, Decision: rapid.Ptr(rapid.SampledFrom([]trace.Decision{trace.Approved, "x<"}), true).Draw(t, "decision")}
		}
		sameAsLibrary(t, r, trace.AppendJSON(nil, r))
	})
}
