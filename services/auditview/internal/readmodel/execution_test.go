package readmodel_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/services/auditview/internal/historytest"
	"verbatim.internal/services/auditview/internal/readmodel"
)

func TestMessagesOfAnExecutionFoldIntoOneChange(t *testing.T) {
	t.Parallel()
	x := historytest.OpenExecution(t, 1, "").Happen("task.created", "task.failed", "timeline.updated").
		Task(1).Approve(1, "").Task(1).Approve(1, "approved").Grant(1, "active").Attempt(2).Happen("task.claimed").Attempt(1)
	stream := readmodel.Stream{Kind: "execution", ID: x.ID()}
	for name, messages := range map[string][]cloudevent.Event{"at once": x.Messages, "late": x.Late()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := readmodel.MakePlan(nil, decode(messages...), false)
			require.Equal(t, readmodel.Summary{Applied: 10}, plan.Summary)
			c := plan.Changes.Executions
			require.Len(t, c.Opened, 1)
			require.Equal(t, x.Opened(), c.Opened[0].Execution)
			require.Equal(t, []any{4, trace.Failed, int64(10)}, []any{c.Opened[0].LastPosition, c.Opened[0].Result, c.Opened[0].Version})
			require.Empty(t, slices.Concat(c.ClearedTasks, c.ClearedApprovals, c.ClearedGrants))
			require.Empty(t, c.Extended)
			require.Equal(t, []int{1, 1, 1, 4, 3}, []int{len(c.Tasks), len(c.Approvals), len(c.Grants), len(c.Events), len(c.Attempts)})
			require.Equal(t, []int64{5, 6}, []int64{c.Tasks[0].Version, c.Approvals[0].Version})
			require.Equal(t, []readmodel.StreamVersion{{Stream: stream, Version: 10}}, plan.Changes.Versions)
			require.ElementsMatch(t, []readmodel.Attribution{
				{Axis: "user", Value: "opener", ExecutionID: x.ID()},
				{Axis: "channel", Value: "console", ExecutionID: x.ID()},
				{Axis: "user", Value: "user-1@example.com", ExecutionID: x.ID()},
				{Axis: "channel", Value: "41", ExecutionID: x.ID()},
			}, c.Attributions)

			heads := map[readmodel.Stream]readmodel.Head{stream: {Applied: 2}}
			c = readmodel.MakePlan(heads, decode(messages...), false).Changes.Executions
			require.Empty(t, c.Opened)
			require.Len(t, c.Extended, 1)
			require.Equal(t, []any{3, 4, trace.Info}, []any{c.Extended[0].Events.Before, c.Extended[0].Events.Last, c.Extended[0].Events.Result})

			c = readmodel.MakePlan(heads, decode(messages[2:4]...), false).Changes.Executions
			require.Equal(t, []readmodel.ExecutionProgress{{ExecutionID: x.ID(), Version: 4}}, c.Extended, "no events")
		})
	}
}

// What comes after a snapshot in its batch is part of what the snapshot writes.
func TestASnapshotOfAnExecutionTakesInWhatFollowsIt(t *testing.T) {
	t.Parallel()
	x := historytest.OpenExecution(t, 2, "").Happen("task.created", "task.completed").Task(1).Attempt(1)
	parts := x.Rebuild(2)
	x.Happen("task.blocked").Task(1).Task(2).Attempt(2)
	batch := slices.Concat(x.Messages[7:], parts, x.Messages[4:])
	plan := readmodel.MakePlan(nil, decode(batch...), false)
	require.Empty(t, plan.Gaps)
	c := plan.Changes.Executions
	require.Len(t, c.Replaced, 1)
	r := c.Replaced[0]
	require.Equal(t, []int{2, 3, 1, 3}, []int{r.KeepEvents, r.LastPosition, r.KeepAttempts, r.Counts.Attempts})
	require.Equal(t, []any{trace.Blocked, int64(8), true}, []any{r.Result, r.Version, r.Replace})
	require.Equal(t, []int{3, 3, 2}, []int{len(c.RestoredEvents), len(c.RestoredAttempts), len(c.Tasks)})
	require.Equal(t, []readmodel.FactRange{{ExecutionID: x.ID()}}, c.ClearedTasks)
	require.Empty(t, slices.Concat(c.Events))
	require.Empty(t, slices.Concat(c.Attempts))
	require.Empty(t, c.Opened)
	require.Empty(t, c.Extended)
}

// A snapshot that is read while the execution goes on has facts of later versions, which no
// message in between takes back.
func TestFactsAheadOfASnapshotStay(t *testing.T) {
	t.Parallel()
	x := historytest.OpenExecution(t, 1, "").Task(1).Task(2)
	then := x.Fork()
	x.Task(1).Task(3).Task(1)
	parts := then.SnapshotAhead(x, 2, false)
	for _, following := range [][]cloudevent.Event{x.Messages[3:], x.Late()[3:]} {
		c := readmodel.MakePlan(nil, decode(append(slices.Clone(parts), following...)...), false).Changes.Executions
		require.Len(t, c.Tasks, 3)
		require.Equal(t, []int64{6, 3, 5}, []int64{c.Tasks[0].Version, c.Tasks[1].Version, c.Tasks[2].Version})
	}
}

// A page of an operator's snapshot says what is not there, too.
func TestAnOperatorsPageForgetsWhatIsNotInIt(t *testing.T) {
	t.Parallel()
	lost := historytest.OpenExecution(t, 1, "").Happen("task.created").PutTask("a", execution.Task{}).PutTask("c", execution.Task{}).PutTask("e", execution.Task{})
	kept := historytest.OpenExecution(t, 1, "").Happen("task.created").PutTask("b", execution.Task{}).PutTask("c", execution.Task{AgentRole: "x"})
	c := readmodel.MakePlan(nil, decode(append(slices.Clone(lost.Messages), kept.Rebuild(2)...)...), false).Changes.Executions
	require.Equal(t, []readmodel.FactRange{{ExecutionID: kept.ID(), UpTo: "b"}, {ExecutionID: kept.ID(), After: "b"}}, c.ClearedTasks)
	require.Len(t, c.Tasks, 2)
	require.JSONEq(t, `{"agent_role":"x"}`, string(c.Tasks[1].Facts))

	c = readmodel.MakePlan(nil, decode(append(slices.Clone(lost.Messages), kept.Snapshot(2)...)...), false).Changes.Executions
	require.Empty(t, c.ClearedTasks, "only an operator's word does that; this one is older")
	require.Len(t, c.Tasks, 3)
}

func TestWhatAnExecutionCannotHaveIsParked(t *testing.T) {
	t.Parallel()
	x := historytest.OpenExecution(t, 2, "").Happen("task.created", "task.failed").Attempt(2).Happen("task.retried")
	again := func(e cloudevent.Event, version int64, part int) cloudevent.Event {
		return cloudevent.New(e.StreamKind, e.StreamID, version, part, e.Type, e.Time, e.Data)
	}
	parts := x.Snapshot(2)
	require.Len(t, parts, 3)
	for name, batch := range map[string][]cloudevent.Event{
		"opened again":                       {x.Messages[0], again(x.Messages[0], 2, 0)},
		"events that begin again":            {x.Messages[0], x.Messages[1], again(x.Messages[1], 3, 0)},
		"attempts that begin again":          {x.Messages[0], x.Messages[1], x.Messages[2], again(x.Messages[2], 4, 0)},
		"a first part that is a later one":   {again(parts[1], 4, 1)},
		"a later part that is the first one": {parts[0], again(parts[0], 4, 2)},
		"a first part without its events":    {again(parts[2], 4, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := readmodel.MakePlan(nil, decode(batch...), false)
			require.Equal(t, len(batch)-1, plan.Summary.Applied)
			require.Len(t, plan.Changes.Parked, 1)
			require.ErrorIs(t, plan.Changes.Parked[0].Err, readmodel.ErrInconsistent)
		})
	}
}

func TestDataOfAnotherExecutionIsParked(t *testing.T) {
	t.Parallel()
	x := historytest.OpenExecution(t, 1, "").Happen("task.created").Task(1).Approve(1, "").Grant(1, "active").Attempt(1)
	other := historytest.OpenExecution(t, 2, "")
	for _, e := range append(slices.Clone(x.Messages), x.Snapshot(100)...) {
		e.StreamID = other.ID()
		e.ID = cloudevent.ID(e.StreamKind, e.StreamID, e.StreamVersion, e.Part())
		require.ErrorIs(t, readmodel.Decode(e).Err, readmodel.ErrWrongStream, e.Type)
	}
	e := x.Messages[1]
	e.Type = executionv1.TypeSnapshot
	require.ErrorIs(t, readmodel.Decode(e).Err, executionv1.ErrData)
}
