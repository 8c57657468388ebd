// Package lineage assembles the task graph of an execution from what is stored of its
// tasks and events: who is whose parent, what depends on what, what was handed over and
// what began again.
//
// It is pure, takes time and memory in proportion to what it is given, and gives the same
// graph for the same facts in whatever order they come. Facts are not judged: what is
// missing and what runs in circles is named, and nothing is invented.
package lineage

import (
	"cmp"
	"slices"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/execution"
)

// Task is a stored task.
type Task struct {
	ID    string // each once
	Facts execution.Task
}

// Build assembles the graph of all tasks and of the events that tell of hand-overs and
// retries. Other events are passed over. It changes nothing that it is given.
func Build(tasks []Task, events []Event) httpapi.TaskGraph {
	tasks = slices.SortedFunc(slices.Values(tasks), func(a, b Task) int { return cmp.Compare(a.ID, b.ID) })
	g := newGraph(tasks)
	graph := httpapi.TaskGraph{
		Nodes: make([]httpapi.TaskNode, len(tasks)), Edges: g.list,
		Roots: []string{}, Orphans: []httpapi.OrphanTask{}, Cycles: []httpapi.TaskCycle{},
	}
	for i, t := range tasks {
		graph.Nodes[i] = node(t)
		if !g.hasParent[i] {
			graph.Roots = append(graph.Roots, t.ID)
		}
		if orphan, is := g.orphan(t); is {
			graph.Orphans = append(graph.Orphans, orphan)
		}
	}
	for _, kind := range [...]string{httpapi.EdgeParent, httpapi.EdgeDependsOn} {
		for _, cycle := range cycles(g.next[kind]) {
			named := httpapi.TaskCycle{Kind: kind, TaskIDs: make([]string, len(cycle))}
			for i, n := range cycle {
				named.TaskIDs[i] = tasks[n].ID
			}
			graph.Cycles = append(graph.Cycles, named)
		}
	}
	events = slices.SortedFunc(slices.Values(events), func(a, b Event) int { return cmp.Compare(a.Position, b.Position) })
	graph.Handoffs = handoffs(events)
	graph.Retries = retries(tasks, events)
	return graph
}

// graph is the edges between tasks, each once, and between those that are known also by
// their places in the order of ids.
type graph struct {
	place     map[string]int
	list      []httpapi.TaskEdge
	hasParent []bool
	next      map[string][][]int // by the kind of edge
}

func newGraph(tasks []Task) graph {
	g := graph{
		place: make(map[string]int, len(tasks)), list: []httpapi.TaskEdge{}, hasParent: make([]bool, len(tasks)),
		next: map[string][][]int{httpapi.EdgeParent: make([][]int, len(tasks)), httpapi.EdgeDependsOn: make([][]int, len(tasks))},
	}
	for i, t := range tasks {
		g.place[t.ID] = i
	}
	seen := make(map[httpapi.TaskEdge]bool, len(tasks))
	add := func(kind, from, to string) {
		e := httpapi.TaskEdge{Kind: kind, From: from, To: to}
		if seen[e] {
			return
		}
		seen[e] = true
		g.list = append(g.list, e)
		tail, knownTail := g.place[from]
		head, knownHead := g.place[to]
		if knownHead && kind == httpapi.EdgeParent {
			g.hasParent[head] = true
		}
		if knownTail && knownHead {
			g.next[kind][tail] = append(g.next[kind][tail], head)
		}
	}
	for _, t := range tasks {
		if t.Facts.ParentTaskID != "" {
			add(httpapi.EdgeParent, t.Facts.ParentTaskID, t.ID)
		}
		for _, child := range t.Facts.ChildTaskIDs {
			add(httpapi.EdgeParent, t.ID, child)
		}
		for _, dependency := range t.Facts.DependsOn {
			add(httpapi.EdgeDependsOn, t.ID, dependency)
		}
	}
	return g
}

// orphan names what a task refers to and nobody knows.
func (g *graph) orphan(t Task) (orphan httpapi.OrphanTask, is bool) {
	orphan = httpapi.OrphanTask{TaskID: t.ID, MissingDependencies: []string{}}
	if parent := t.Facts.ParentTaskID; parent != "" && !g.knows(parent) {
		orphan.MissingParent = &parent
	}
	for _, dependency := range t.Facts.DependsOn {
		if !g.knows(dependency) {
			orphan.MissingDependencies = append(orphan.MissingDependencies, dependency)
		}
	}
	return orphan, orphan.MissingParent != nil || len(orphan.MissingDependencies) > 0
}

func (g *graph) knows(id string) bool {
	_, known := g.place[id]
	return known
}

func node(t Task) httpapi.TaskNode {
	f := t.Facts
	n := httpapi.TaskNode{
		TaskID: t.ID, ParentTaskID: known(f.ParentTaskID), RootTaskID: known(f.RootTaskID), ChildTaskIDs: f.ChildTaskIDs,
		DependsOn: f.DependsOn, Source: known(f.Source), AgentRole: known(f.AgentRole), AssignedAgentID: known(f.AssignedAgentID),
		RetryCount: f.RetryCount, CreatedAt: known(f.CreatedAt), UpdatedAt: known(f.UpdatedAt), ToolCount: f.ToolCount,
		UserID: known(f.UserID), ChannelID: known(f.ChannelID),
	}
	if u := f.Usage; u != nil {
		n.Usage = &httpapi.TaskUsageView{
			ModelID: known(u.ModelID), InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, TotalTokens: u.TotalTokens,
		}
	}
	return n
}

// known returns nil for what is absent.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
