package postgres_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/historytest"
)

func TestSnapshotHealsAParkedStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := ready(t, 1, 4)
	b.apply(t, a.Messages...)
	want := b.content(t)
	b.clear(t)

	broken := slices.Clone(a.Messages)
	broken[2] = historytest.Broken(broken[2])
	b.apply(t, broken...)
	require.Equal(t, int64(3), b.parked(t)[0].Count)

	parts := a.Snapshot(3)
	require.Greater(t, len(parts), 2)
	b.apply(t, parts[:len(parts)-1]...)
	require.Equal(t, int64(3), b.parked(t)[0].Count, "until the last part, the stream waits")
	b.apply(t, parts[len(parts)-1])
	require.Equal(t, want, b.content(t))

	a.Append("goes on")
	b.apply(t, a.Messages[5:]...)
	require.Equal(t, int64(6), b.version(t, a.ConversationID()))
}

// ingest came back from a backup: its stream has a lower version and another history.
func TestSnapshotOfALowerVersionReplacesTheStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	older := ready(t, 1, 1).Append("another history")
	b.apply(t, older.Snapshot(100)...)
	want := b.content(t)
	b.clear(t)

	run, _ := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 1)
	newer := ready(t, 1, 5).Link(run)
	b.apply(t, newer.Messages...)
	further := b.content(t)
	b.apply(t, older.Snapshot(2)...)
	require.Equal(t, further, b.content(t), "a late snapshot takes nothing back")
	b.apply(t, older.Rebuild(2)...)
	require.Equal(t, want, b.content(t))

	require.Empty(t, b.apply(t, older.Append("after it").Messages[3:]...).Gaps)
	require.Equal(t, int64(4), b.version(t, older.ConversationID()))
}

func TestUnfinishedSnapshotIsNotVisible(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := ready(t, 1, 4)
	b.apply(t, a.Messages[:2]...)
	parts := a.Snapshot(7)
	b.apply(t, parts[:len(parts)-1]...)

	archive, _, events, err := b.store.Detail(t.Context(), a.ConversationID(), 0, 200, app.MaxPageText)
	require.NoError(t, err)
	require.Equal(t, 4, archive.LastSequence)
	require.Len(t, events, 4)

	// The relay was cut and sends the stream's messages instead: they find their events.
	require.Empty(t, b.apply(t, a.Messages...).Gaps)
	require.Empty(t, b.parked(t))
	require.Equal(t, int64(5), b.version(t, a.ConversationID()))
}

func TestSnapshotWithoutItsFirstPartIsParked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := ready(t, 1, 4)
	parts := a.Snapshot(3)
	b.apply(t, parts[1:]...)
	require.Contains(t, b.parked(t)[0].Error, "incomplete")
	require.Equal(t, int64(0), b.version(t, a.ConversationID()))
	b.apply(t, parts...)
	require.Empty(t, b.parked(t))
	require.Equal(t, int64(5), b.version(t, a.ConversationID()))
}

func TestPartsBehindABrokenPartWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := ready(t, 1, 4)
	b.apply(t, a.Messages...)
	want := b.content(t)
	parts := a.Snapshot(3)
	broken := slices.Clone(parts)
	broken[1] = historytest.Broken(broken[1])
	b.apply(t, broken...)
	require.Equal(t, int64(len(parts)-1), b.parked(t)[0].Count)
	for range 2 { // a rebuild may be repeated
		b.apply(t, parts...)
		require.Empty(t, b.parked(t))
		require.Equal(t, want, b.content(t))
	}
}

func TestRunLinkMayComeBeforeItsRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run, recorded := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 1)
	a := ready(t, 1, 0).Link(run)
	b.apply(t, a.Messages...)
	_, _, _, err := b.store.Run(t.Context(), run.ThreadID, run.RunID)
	require.ErrorIs(t, err, app.ErrRunNotFound)
	b.apply(t, recorded)
	got, _, _, err := b.store.Run(t.Context(), run.ThreadID, run.RunID)
	require.NoError(t, err)
	require.Equal(t, a.ConversationID(), *got.ConversationID)
}

// A publisher that timed out sends again while the first delivery still works.
func TestConcurrentDeliveriesOfTheSameBatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var forward []cloudevent.Event
	for n := range 6 {
		forward = append(forward, ready(t, n, 5).Messages...)
	}
	b.apply(t, forward...)
	want := b.content(t)
	b.clear(t)

	var archives [][]cloudevent.Event
	for n := range 6 {
		archives = append(archives, ready(t, n, 5).Messages)
	}
	var backward []cloudevent.Event
	for _, messages := range slices.Backward(archives) {
		backward = append(backward, messages...)
	}
	var wg sync.WaitGroup
	failures := make(chan error, 16)
	for i := range 16 {
		wg.Go(func() {
			batch := forward
			if i%2 == 0 {
				batch = backward
			}
			_, err := b.projector.Apply(t.Context(), decode(batch...))
			failures <- err
		})
	}
	wg.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	require.Equal(t, want, b.content(t))
}

// The number of statements does not depend on the size of the batch.
func TestBatchCostsAConstantNumberOfStatements(t *testing.T) {
	t.Parallel()
	b := setup(t)
	statements := func(archives, turns int, offset int) int {
		var batch []cloudevent.Event
		for n := range archives {
			batch = append(batch, ready(t, offset+n, turns).Messages...)
			batch = append(batch, historytest.OpenRun(t, offset+n).Trace(turns).Complete("failed").Trace(1).Messages...)
			batch = append(batch, historytest.OpenRun(t, offset+50+n).Trace(turns).Complete("completed").Snapshot(2)...)
			batch = append(batch, busy(t, offset+n, turns).Messages...)
			batch = append(batch, busy(t, offset+50+n, turns).Snapshot(2)...)
			batch = append(batch, busy(t, offset+25+n, turns).Rebuild(2)...)
			batch = append(batch, historytest.ChangeMessage(t, historytest.NewChange(offset+n+1), 0))
			batch = append(batch, historytest.ChangeMessage(t, historytest.NewChange(offset+n+51), 1))
		}
		counter := &statementCounter{}
		counted := b.traced(t, counter)
		_, err := counted.Apply(t.Context(), decode(batch...))
		require.NoError(t, err)
		return counter.n
	}
	small := statements(2, 2, 0)
	require.Equal(t, small, statements(12, 10, 100))
	require.Less(t, small, 45)
}
