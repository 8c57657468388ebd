package lineage

import (
	"cmp"
	"slices"
)

// cycles returns the groups of nodes that lead to each other, and the single nodes that
// lead to themselves: the strongly connected components that hold a cycle, by Tarjan's
// algorithm without recursion, because a chain of tasks may be as long as an execution.
// Each group is in ascending order, and the groups are in the order of their first nodes.
func cycles(next [][]int) [][]int {
	s := search{next: next, order: make([]int, len(next)), low: make([]int, len(next)), onStack: make([]bool, len(next))}
	for n := range next {
		if s.order[n] == 0 {
			s.visit(n)
		}
	}
	slices.SortFunc(s.found, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return s.found
}

type search struct {
	next    [][]int
	order   []int // when a node was first seen, from 1; 0: not yet
	low     []int // the earliest node on the stack that a node leads to
	stack   []int
	onStack []bool
	seen    int
	found   [][]int
}

// step is a node that is being looked at and how many of its edges were.
type step struct{ node, edge int }

func (s *search) visit(root int) {
	path := []step{s.enter(root)}
	for len(path) > 0 {
		top := &path[len(path)-1]
		if top.edge < len(s.next[top.node]) {
			to := s.next[top.node][top.edge]
			top.edge++
			switch {
			case s.order[to] == 0:
				path = append(path, s.enter(to))
			case s.onStack[to]:
				s.low[top.node] = min(s.low[top.node], s.order[to])
			}
			continue
		}
		n := top.node
		path = path[:len(path)-1]
		if len(path) > 0 {
			before := path[len(path)-1].node
			s.low[before] = min(s.low[before], s.low[n])
		}
		if s.low[n] == s.order[n] {
			s.leave(n)
		}
	}
}

func (s *search) enter(n int) step {
	s.seen++
	s.order[n], s.low[n] = s.seen, s.seen
	s.stack, s.onStack[n] = append(s.stack, n), true
	return step{node: n}
}

// leave takes the component off the stack whose first node is n.
func (s *search) leave(n int) {
	begin := len(s.stack) - 1
	for s.stack[begin] != n {
		begin--
	}
	component := s.stack[begin:]
	for _, member := range component {
		s.onStack[member] = false
	}
	if len(component) > 1 || slices.Contains(s.next[n], n) {
		s.found = append(s.found, slices.Sorted(slices.Values(component)))
	}
	s.stack = s.stack[:begin]
}
