package lineage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/services/auditview/internal/lineage"
)

func p[T any](v T) *T { return &v }

func TestGraphNamesRootsOrphansAndCycles(t *testing.T) {
	t.Parallel()
	g := lineage.Build([]lineage.Task{
		{ID: "c", Facts: execution.Task{ParentTaskID: "b", DependsOn: []string{"a", "gone", "a"}}},
		{ID: "a", Facts: execution.Task{ChildTaskIDs: []string{"b", "later"}, DependsOn: []string{"b"}}},
		{ID: "b", Facts: execution.Task{ParentTaskID: "a"}},
		{ID: "d", Facts: execution.Task{ParentTaskID: "nobody"}},
		{ID: "e", Facts: execution.Task{ParentTaskID: "f"}},
		{ID: "f", Facts: execution.Task{ParentTaskID: "e"}},
		{ID: "g", Facts: execution.Task{DependsOn: []string{"g"}}},
		{ID: "h", Facts: execution.Task{DependsOn: []string{"i"}, ParentTaskID: "i"}},
		{ID: "i", Facts: execution.Task{DependsOn: []string{"h"}, ChildTaskIDs: []string{"h"}}},
	}, nil)
	require.Equal(t, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}, ids(g))
	require.Equal(t, []httpapi.TaskEdge{
		{Kind: "parent", From: "a", To: "b"},
		{Kind: "parent", From: "a", To: "later"},
		{Kind: "depends_on", From: "a", To: "b"},
		{Kind: "parent", From: "b", To: "c"},
		{Kind: "depends_on", From: "c", To: "a"},
		{Kind: "depends_on", From: "c", To: "gone"},
		{Kind: "parent", From: "nobody", To: "d"},
		{Kind: "parent", From: "f", To: "e"},
		{Kind: "parent", From: "e", To: "f"},
		{Kind: "depends_on", From: "g", To: "g"},
		{Kind: "parent", From: "i", To: "h"},
		{Kind: "depends_on", From: "h", To: "i"},
		{Kind: "depends_on", From: "i", To: "h"},
	}, g.Edges)
	require.Equal(t, []string{"a", "g", "i"}, g.Roots, "who has a parent that nobody knows is no root")
	require.Equal(t, []httpapi.OrphanTask{
		{TaskID: "c", MissingDependencies: []string{"gone"}},
		{TaskID: "d", MissingParent: p("nobody"), MissingDependencies: []string{}},
	}, g.Orphans)
	require.Equal(t, []httpapi.TaskCycle{ // a parent that waits for its child is none
		{Kind: "parent", TaskIDs: []string{"e", "f"}},
		{Kind: "depends_on", TaskIDs: []string{"g"}},
		{Kind: "depends_on", TaskIDs: []string{"h", "i"}},
	}, g.Cycles)
}

func ids(g httpapi.TaskGraph) []string {
	var ids []string
	for _, n := range g.Nodes {
		ids = append(ids, n.TaskID)
	}
	return ids
}

func TestGraphOfNothing(t *testing.T) {
	t.Parallel()
	out, err := json.Marshal(lineage.Build(nil, nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"nodes":[],"edges":[],"roots":[],"orphans":[],"cycles":[],"handoffs":[],"retries":[]}`, string(out))
}

// drawTasks returns any tasks, whose ids are few, and ids that no task has.
func drawTasks(r *rapid.T) []lineage.Task {
	id := rapid.StringMatching(`t-[1-9]`)
	known := rapid.SliceOfNDistinct(id, 0, 7, rapid.ID[string]).Draw(r, "tasks")
	tasks := make([]lineage.Task, len(known))
	for i := range known {
		tasks[i] = lineage.Task{ID: known[i], Facts: execution.Task{
			DependsOn: rapid.SliceOfN(id, 0, 3).Draw(r, "depends on"), ChildTaskIDs: rapid.SliceOfN(id, 0, 2).Draw(r, "children"),
		}}
		if rapid.Bool().Draw(r, "has a parent") {
			tasks[i].Facts.ParentTaskID = id.Draw(r, "parent")
		}
		if rapid.Bool().Draw(r, "was retried") {
			tasks[i].Facts.RetryCount = p(rapid.Int64Range(0, 3).Draw(r, "retries"))
		}
	}
	return tasks
}

func drawEvents(r *rapid.T) []lineage.Event {
	var events []lineage.Event
	for n := range rapid.IntRange(0, 12).Draw(r, "events") {
		e := lineage.Event{
			Position: int64(n + 1), OccurredAt: "2026-06-08T09:00:00Z",
			Type:    rapid.SampledFrom([]string{"handoff.requested", "handoff.accepted", "handoff.completed", "handoff.failed", "task.retried", "task.failed"}).Draw(r, "type"),
			Payload: rapid.SampledFrom([]string{`{}`, `{"handoff_id":"h-1"}`, `{"handoff_id":"h-2","to_agent":"a"}`, `{"attempt":2}`, `{"attempt":2.5,"handoff_id":3}`, `[`}).Draw(r, "payload"),
		}
		if rapid.Bool().Draw(r, "has a task") {
			e.TaskID = p(rapid.StringMatching(`t-[1-4]`).Draw(r, "task"))
		}
		events = append(events, e)
	}
	return events
}

// The same facts give the same graph, in whatever order they come, and are not changed.
func TestGraphIsAFunctionOfTheFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tasks, events := drawTasks(r), drawEvents(r)
		want := encode(r, lineage.Build(tasks, events))
		shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		shuffle.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
		shuffle.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		before := encode(r, tasks)
		require.Equal(r, want, encode(r, lineage.Build(tasks, events)))
		require.Equal(r, before, encode(r, tasks))
	})
}

// What the graph names is what looking at every pair of tasks finds.
func TestGraphAgainstEveryPair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tasks := drawTasks(r)
		g := lineage.Build(tasks, nil)
		known := map[string]bool{}
		for _, task := range tasks {
			known[task.ID] = true
		}
		require.Len(r, g.Nodes, len(tasks))
		hasParent := map[string]bool{}
		reach := map[string]map[[2]string]bool{httpapi.EdgeParent: {}, httpapi.EdgeDependsOn: {}}
		for i, e := range g.Edges {
			require.NotContains(r, g.Edges[:i], e)
			reach[e.Kind][[2]string{e.From, e.To}] = known[e.From] && known[e.To]
			hasParent[e.To] = hasParent[e.To] || e.Kind == httpapi.EdgeParent
		}
		for kind, leads := range reach {
			for via := range known {
				for from := range known {
					for to := range known {
						leads[[2]string{from, to}] = leads[[2]string{from, to}] || leads[[2]string{from, via}] && leads[[2]string{via, to}]
					}
				}
			}
			of := map[string]int{} // the cycle that a task is in, from 1
			for n, cycle := range g.Cycles {
				if cycle.Kind != kind {
					continue
				}
				require.True(r, slices.IsSorted(cycle.TaskIDs))
				for _, id := range cycle.TaskIDs {
					require.Zero(r, of[id])
					of[id] = n + 1
				}
			}
			for a := range known {
				require.Equal(r, leads[[2]string{a, a}], of[a] > 0)
				for b := range known {
					if a != b {
						require.Equal(r, leads[[2]string{a, b}] && leads[[2]string{b, a}], of[a] > 0 && of[a] == of[b])
					}
				}
			}
		}
		for _, task := range tasks {
			require.Equal(r, !hasParent[task.ID], slices.Contains(g.Roots, task.ID))
			missing := task.Facts.ParentTaskID != "" && !known[task.Facts.ParentTaskID]
			for _, id := range task.Facts.DependsOn {
				missing = missing || !known[id]
			}
			require.Equal(r, missing, slices.ContainsFunc(g.Orphans, func(o httpapi.OrphanTask) bool { return o.TaskID == task.ID }))
		}
	})
}

func encode(r *rapid.T, v any) string {
	out, err := json.Marshal(v)
	require.NoError(r, err)
	return string(out)
}

// chain returns tasks of which each depends on the one before; the first on the last.
func chain(n int) []lineage.Task {
	tasks := make([]lineage.Task, n)
	for i := range tasks {
		tasks[i] = lineage.Task{ID: fmt.Sprintf("t-%06d", i), Facts: execution.Task{
			ParentTaskID: fmt.Sprintf("t-%06d", i/2), DependsOn: []string{fmt.Sprintf("t-%06d", (i+n-1)%n)},
		}}
	}
	return tasks
}

// The longest chain and the largest cycle that there can be.
func TestGraphOfALargeExecution(t *testing.T) {
	t.Parallel()
	const n = 100_000
	g := lineage.Build(chain(n), nil)
	require.Len(t, g.Nodes, n)
	require.Len(t, g.Edges, 2*n)
	require.Len(t, g.Cycles, 2)
	require.Equal(t, []string{"t-000000"}, g.Cycles[0].TaskIDs)
	require.Len(t, g.Cycles[1].TaskIDs, n)
	require.Empty(t, g.Orphans)
	require.Empty(t, g.Roots)
}

// BenchmarkBuild gives the time for each task: it does not grow with their number.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tasks := chain(n)
			for b.Loop() {
				lineage.Build(tasks, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/task")
		})
	}
}
