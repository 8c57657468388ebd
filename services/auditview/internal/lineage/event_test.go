package lineage_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/services/auditview/internal/lineage"
)

// happened returns events at positions 1, 2, 3 …, given as a type, a task ("" for none)
// and a payload.
func happened(said ...[3]string) []lineage.Event {
	events := make([]lineage.Event, len(said))
	for i, s := range said {
		events[i] = lineage.Event{
			Position: int64(i + 1), Type: s[0], OccurredAt: fmt.Sprintf("2026-06-08T09:00:0%dZ", i), Payload: s[2], AgentInstanceID: p("agent-" + s[0][:1]),
		}
		if s[1] != "" {
			events[i].TaskID = &s[1]
		}
	}
	return events
}

// told says hand-overs as their status and the positions of their events.
func told(handoffs []httpapi.TaskHandoff) []string {
	var lines []string
	for _, h := range handoffs {
		line := h.Status + " " + string(h.Result)
		for _, m := range []*httpapi.TaskMoment{h.Requested, h.Latest} {
			if m == nil {
				line += " -"
			} else {
				line += fmt.Sprintf(" %d", m.Position)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestHandoffs(t *testing.T) {
	t.Parallel()
	const first, second = `{"handoff_id":"h-1"}`, `{"handoff_id":"h-2"}`
	for name, c := range map[string]struct {
		events []lineage.Event
		want   []string
	}{
		"by the task, the oldest first": {happened(
			[3]string{"handoff.requested", "t-1", `{}`}, [3]string{"handoff.requested", "t-1", `{}`}, [3]string{"handoff.completed", "t-1", `{}`},
			[3]string{"handoff.failed", "t-1", `{}`}, [3]string{"handoff.completed", "t-1", `{}`},
		), []string{"completed success 1 3", "failed failed 2 4", "completed success - 5"}},
		"by their ids, whatever the task": {happened(
			[3]string{"handoff.requested", "t-1", first}, [3]string{"handoff.requested", "t-1", second}, [3]string{"handoff.completed", "t-2", second},
			[3]string{"handoff.accepted", "", first},
		), []string{"accepted info 1 4", "completed success 2 3"}},
		"one without an id closes the oldest of its task": {happened(
			[3]string{"handoff.requested", "t-1", first}, [3]string{"handoff.accepted", "t-1", `{}`}, [3]string{"handoff.completed", "t-1", `{}`},
			[3]string{"handoff.requested", "t-1", first},
		), []string{"completed success 1 3", "requested info 4 -"}},
		"the request comes late": {happened(
			[3]string{"handoff.completed", "t-1", first}, [3]string{"handoff.requested", "t-1", first}, [3]string{"handoff.completed", "", second},
		), []string{"completed success 2 1", "completed success - 3"}},
		"of no task": {happened(
			[3]string{"handoff.requested", "", `{}`}, [3]string{"handoff.completed", "", `{}`}, [3]string{"task.completed", "t-1", `{}`},
		), []string{"requested info 1 -", "completed success - 2"}},
	} {
		require.Equal(t, c.want, told(lineage.Build(nil, c.events).Handoffs), name)
	}
	g := lineage.Build(nil, happened(
		[3]string{"handoff.requested", "t-1", `{"from_agent":"a","to_agent":"b","handoff_id":"h-1"}`},
		[3]string{"handoff.completed", "t-2", `{"from_agent":"c","target_role":"review","handoff_id":"h-1"}`},
	))
	require.Equal(t, []httpapi.TaskHandoff{{
		HandoffID: p("h-1"), TaskID: p("t-1"), FromAgent: p("a"), ToAgent: p("b"), TargetRole: p("review"), Status: "completed", Result: "success",
		Requested: &httpapi.TaskMoment{Position: 1, OccurredAt: "2026-06-08T09:00:00Z", AgentInstanceID: p("agent-h")},
		Latest:    &httpapi.TaskMoment{Position: 2, OccurredAt: "2026-06-08T09:00:01Z", AgentInstanceID: p("agent-h")},
	}}, g.Handoffs)
}

func TestRetries(t *testing.T) {
	t.Parallel()
	g := lineage.Build([]lineage.Task{
		{ID: "b", Facts: execution.Task{RetryCount: p(int64(2))}},
		{ID: "a"},
		{ID: "c", Facts: execution.Task{RetryCount: p(int64(0))}},
	}, happened(
		[3]string{"task.retried", "z", `{"attempt":2}`}, [3]string{"task.retried", "a", `{"attempt":"two"}`}, [3]string{"task.retried", "", `{}`},
		[3]string{"task.retried", "a", `{"attempt":3}`},
	))
	at := func(position int64, attempt *int64) httpapi.TaskRetry {
		return httpapi.TaskRetry{TaskMoment: httpapi.TaskMoment{
			Position: position, OccurredAt: fmt.Sprintf("2026-06-08T09:00:0%dZ", position-1), AgentInstanceID: p("agent-t"),
		}, Attempt: attempt}
	}
	require.Equal(t, []httpapi.TaskRetries{
		{TaskID: "a", Events: []httpapi.TaskRetry{at(2, nil), at(4, p(int64(3)))}},
		{TaskID: "b", RetryCount: p(int64(2))},
		{TaskID: "z", Events: []httpapi.TaskRetry{at(1, p(int64(2)))}},
	}, g.Retries)
}

// Every event about a hand-over is told of by at most one, and none is invented.
func TestHandoffsTellOfEveryEventOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		events := drawEvents(r)
		requested := map[int64]bool{}
		for _, e := range events {
			if e.Type == "handoff.requested" {
				requested[e.Position] = true
			}
		}
		seen := map[int64]bool{}
		for _, h := range lineage.Build(nil, events).Handoffs {
			require.True(r, h.Requested != nil || h.Latest != nil)
			if h.Requested != nil {
				require.True(r, requested[h.Requested.Position] && !seen[h.Requested.Position])
				seen[h.Requested.Position] = true
			}
			if h.Latest != nil {
				require.True(r, !requested[h.Latest.Position] && !seen[h.Latest.Position])
				seen[h.Latest.Position] = true
			}
		}
		for position := range requested {
			require.True(r, seen[position], "every request is a hand-over")
		}
	})
}
