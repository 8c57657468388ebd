package readmodel_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/services/auditview/internal/historytest"
	"verbatim.internal/services/auditview/internal/readmodel"
)

func decode(events ...cloudevent.Event) []readmodel.Message {
	messages := make([]readmodel.Message, len(events))
	for i, e := range events {
		messages[i] = readmodel.Decode(e)
	}
	return messages
}

func archive(t *testing.T, turns int) *historytest.Archive {
	t.Helper()
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0))
	for range turns {
		a.Append("text")
	}
	return a
}

func TestSeveralMessagesOfAStreamFoldIntoOneChange(t *testing.T) {
	t.Parallel()
	a := archive(t, 3)
	plan := readmodel.MakePlan(nil, decode(a.Messages...), false)
	require.Equal(t, readmodel.Summary{Applied: 4}, plan.Summary)
	c := plan.Changes
	require.Len(t, c.Created, 1)
	require.Equal(t, 9, c.Created[0].State.LastSequence)
	require.Empty(t, c.States)
	require.Len(t, c.Events, 9)
	require.Equal(t, []readmodel.StreamVersion{{Stream: readmodel.Stream{Kind: "archive", ID: a.ConversationID()}, Version: 4}}, c.Versions)

	heads := map[readmodel.Stream]readmodel.Head{{Kind: "archive", ID: a.ConversationID()}: {Applied: 1}}
	plan = readmodel.MakePlan(heads, decode(a.Messages...), false)
	require.Equal(t, readmodel.Summary{Applied: 3, Skipped: 1}, plan.Summary)
	require.Empty(t, plan.Changes.Created)
	require.Len(t, plan.Changes.States, 1)
	require.Equal(t, 0, plan.Changes.States[0].Before)
	require.Equal(t, 9, plan.Changes.States[0].State.LastSequence)
}

// Each message is applied, skipped, parked or refused; what is refused is a gap of its
// stream; and versions only grow but by a snapshot.
func TestEachMessageHasOneFate(t *testing.T) {
	t.Parallel()
	a := archive(t, 6)
	run := historytest.OpenRun(t, 1).Trace(3).Trace(1).Complete("completed").Trace(2).Trace(2).Trace(1)
	x := historytest.OpenExecution(t, 1, "").Happen("task.created").Task(1).Happen("task.running", "task.failed").Task(1).Approve(1, "").Attempt(2)
	pools := map[readmodel.Stream][]cloudevent.Event{
		{Kind: "archive", ID: a.ConversationID()}: append(a.Messages, a.Snapshot(4)...),
		{Kind: "run", ID: run.ID()}:               slices.Concat(run.Messages, run.Snapshot(4), run.Rebuild(2)),
		{Kind: "execution", ID: x.ID()}:           slices.Concat(x.Messages, x.Late(), x.Snapshot(2), x.Rebuild(3)),
	}
	for stream, pool := range pools {
		t.Run(stream.Kind, func(t *testing.T) {
			t.Parallel()
			eachHasOneFate(t, stream, pool)
		})
	}
}

func eachHasOneFate(t *testing.T, stream readmodel.Stream, pool []cloudevent.Event) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		var batch []cloudevent.Event
		for range rapid.IntRange(0, 20).Draw(r, "messages") {
			e := rapid.SampledFrom(pool).Draw(r, "message")
			if rapid.IntRange(0, 5).Draw(r, "broken") == 0 {
				e = historytest.Broken(e)
			}
			batch = append(batch, e)
		}
		head := readmodel.Head{Applied: int64(rapid.IntRange(0, 7).Draw(r, "applied"))}
		if rapid.Bool().Draw(r, "parked") {
			head.ParkedTo = head.Applied + 1
		}
		plan := readmodel.MakePlan(map[readmodel.Stream]readmodel.Head{stream: head}, decode(batch...), false)
		s := plan.Summary
		require.Equal(r, len(batch), s.Applied+s.Skipped+s.Parked+s.Refused)
		if len(plan.Gaps) > 0 {
			require.Positive(r, s.Refused)
		}
		for _, v := range plan.Changes.Versions {
			require.True(r, v.Version > head.Applied || len(plan.Changes.Replaced)+len(plan.Changes.ReplacedRuns)+len(plan.Changes.Executions.Replaced) > 0)
		}
		require.Equal(r, plan, readmodel.MakePlan(map[readmodel.Stream]readmodel.Head{stream: head}, decode(batch...), false))
	})
}

func TestMessagesOfARunFoldIntoOneChange(t *testing.T) {
	t.Parallel()
	run := historytest.OpenRun(t, 1).Trace(2).Complete("completed").Trace(3)
	stream := readmodel.Stream{Kind: "run", ID: run.ID()}
	plan := readmodel.MakePlan(nil, decode(run.Messages...), false)
	require.Equal(t, readmodel.Summary{Applied: 4}, plan.Summary)
	c := plan.Changes
	require.Len(t, c.Recorded, 1)
	require.Empty(t, c.Runs)
	require.Len(t, c.Completed, 1)
	require.Equal(t, []readmodel.TraceChange{{RunID: run.ID(), Before: 0, Last: 5}}, c.Traced)
	require.Len(t, c.TraceEvents, 5)
	require.Equal(t, []readmodel.StreamVersion{{Stream: stream, Version: 4}}, c.Versions)

	heads := map[readmodel.Stream]readmodel.Head{stream: {Applied: 2}}
	c = readmodel.MakePlan(heads, decode(run.Messages...), false).Changes
	require.Empty(t, c.Recorded)
	require.Equal(t, []readmodel.TraceChange{{RunID: run.ID(), Before: 2, Last: 5}}, c.Traced)
}

// What comes after a snapshot in its batch is part of what the snapshot writes.
func TestASnapshotOfARunTakesInWhatFollowsIt(t *testing.T) {
	t.Parallel()
	run := historytest.OpenRun(t, 1).Trace(2)
	parts := run.Snapshot(2)
	run.Trace(1).Complete("failed")
	batch := append([]cloudevent.Event{run.Messages[3]}, append(parts, run.Messages[2:]...)...)
	plan := readmodel.MakePlan(nil, decode(batch...), false)
	require.Empty(t, plan.Gaps)
	c := plan.Changes
	require.Len(t, c.ReplacedRuns, 1)
	require.Equal(t, []int{2, 3}, []int{c.ReplacedRuns[0].KeepEvents, c.ReplacedRuns[0].LastPosition})
	require.Equal(t, "failed", c.ReplacedRuns[0].Completion.Status)
	require.Len(t, c.RestoredTrace, 3)
	require.Empty(t, slices.Concat(c.Recorded, c.Runs))
	require.Empty(t, c.Completed)
	require.Empty(t, c.Traced)
	require.Empty(t, c.TraceEvents)
}

func TestWhatARunCannotHaveIsParked(t *testing.T) {
	t.Parallel()
	run := historytest.OpenRun(t, 1).Trace(4).Complete("failed")
	again := func(e cloudevent.Event, version int64, part int) cloudevent.Event {
		return cloudevent.New(e.StreamKind, e.StreamID, version, part, e.Type, e.Time, e.Data)
	}
	parts := run.Snapshot(2)
	for name, batch := range map[string][]cloudevent.Event{
		"a second completion":                 {run.Messages[0], run.Messages[1], run.Messages[2], again(run.Messages[2], 4, 0)},
		"a trace that begins again":           {run.Messages[0], run.Messages[1], again(run.Messages[1], 3, 0)},
		"a first part that is a later one":    {again(parts[1], 3, 1)},
		"a later part that is the first one":  {parts[0], again(parts[0], 3, 2)},
		"a later part without trace events":   {parts[0], again(historytest.OpenRun(t, 1).Snapshot(1)[0], 3, 2)},
		"a change of the registry, version 2": {again(historytest.ChangeMessage(t, historytest.NewChange(1), 1), 2, 1)},
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

func TestAChangeOfTheRegistryIsAppliedOnce(t *testing.T) {
	t.Parallel()
	e := historytest.ChangeMessage(t, historytest.NewChange(1), 0)
	plan := readmodel.MakePlan(nil, decode(e, e), false)
	require.Equal(t, readmodel.Summary{Applied: 1, Skipped: 1}, plan.Summary)
	require.Len(t, plan.Changes.Registry, 1)
	plan = readmodel.MakePlan(nil, decode(e, historytest.ChangeMessage(t, historytest.NewChange(1), 1)), false)
	require.Empty(t, plan.Changes.Registry)
	require.Len(t, plan.Changes.RestoredRegistry, 1)
}

func TestDecodeNeedsNumberedPartsOfSnapshotsOnly(t *testing.T) {
	t.Parallel()
	a := archive(t, 1)
	e := a.Messages[1]
	e.ID += "/1"
	require.Error(t, readmodel.Decode(e).Err)
	e = a.Snapshot(100)[0]
	e.ID = cloudevent.ID(e.StreamKind, e.StreamID, e.StreamVersion, 0)
	require.Error(t, readmodel.Decode(e).Err)
}

func TestRecoveredShowsNoValue(t *testing.T) {
	t.Parallel()
	require.NotContains(t, readmodel.Recovered("a private matter").Error(), "private")
	defer func() {
		require.Contains(t, readmodel.Recovered(recover()).Error(), "index out of range")
	}()
	var none []int
	none[len(none)]++
}

// Whatever the data is, a message either has a body or says why not, without quoting it.
func FuzzDecode(f *testing.F) {
	for _, eventType := range []string{archivev1.TypeCreated, archivev1.TypeMemberConfirmed, archivev1.TypeEventsAppended, archivev1.TypeSnapshot, "x.y"} {
		f.Add(archivev1.StreamKind, eventType, []byte(`{}`), int64(1), 0)
	}
	id := historytest.RunID(1)
	run := historytest.OpenRun(f, 1).Trace(2).Complete("completed")
	change := historytest.ChangeMessage(f, historytest.NewChange(1), 0)
	x := historytest.OpenExecution(f, 1, "").Happen("task.failed").Task(1).Approve(1, "approved").Grant(1, "active").Attempt(1)
	for _, e := range slices.Concat(run.Messages, run.Snapshot(2), []cloudevent.Event{change}, x.Messages, x.Snapshot(2)) {
		f.Add(e.StreamKind, e.Type, []byte(e.Data), e.StreamVersion, e.Part())
	}
	f.Fuzz(func(t *testing.T, kind, eventType string, data []byte, version int64, part int) {
		e := cloudevent.New(kind, id, version, part, eventType, historytest.Start, data)
		if e.Validate() != nil {
			return
		}
		m := readmodel.Decode(e)
		require.NotEqual(t, m.Body == nil, m.Err == nil)
		plan := readmodel.MakePlan(nil, []readmodel.Message{m}, false)
		s := plan.Summary
		require.Equal(t, 1, s.Applied+s.Skipped+s.Parked+s.Refused)
	})
}
