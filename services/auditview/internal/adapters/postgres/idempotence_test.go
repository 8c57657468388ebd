package postgres_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/services/auditview/internal/historytest"
)

// drawHistory returns a history of some archives, runs, executions and changes of the
// registry: its streams, each in order, and for each the parts of a snapshot of its end.
func drawHistory(t *testing.T, r *rapid.T) (streams [][]cloudevent.Event, snapshots [][]cloudevent.Event) {
	t.Helper()
	eventsPerPart := func() int { return rapid.IntRange(1, 8).Draw(r, "events a part") }
	runs := 0
	for n := range rapid.IntRange(1, 4).Draw(r, "archives") {
		var sessions []string
		for i := range rapid.IntRange(1, 3).Draw(r, "members") {
			sessions = append(sessions, historytest.SessionID(i))
		}
		a := historytest.NewArchive(t, n, rapid.Bool().Draw(r, "v2"), sessions...)
		for range rapid.IntRange(0, 6).Draw(r, "steps") {
			switch {
			case !a.Ready():
				a.Confirm()
			case rapid.IntRange(0, 3).Draw(r, "step") == 0:
				run := drawRun(t, r, runs, sessions[0], fmt.Sprintf("conv-%d", n))
				runs++
				streams, snapshots = append(streams, run.Messages), append(snapshots, run.Snapshot(eventsPerPart()))
				a.Link(run.Run())
			default:
				a.Append(rapid.SliceOfN(rapid.StringMatching(`[a-z"\\ <&\n\x{1F469}\x{200D}\x{0301}]{1,20}`), 1, 5).Draw(r, "texts")...)
			}
		}
		streams, snapshots = append(streams, a.Messages), append(snapshots, a.Snapshot(eventsPerPart()))
	}
	for n := range rapid.IntRange(0, 3).Draw(r, "changes") {
		c := historytest.NewChange(n + 1)
		streams = append(streams, []cloudevent.Event{historytest.ChangeMessage(t, c, 0)})
		snapshots = append(snapshots, []cloudevent.Event{historytest.ChangeMessage(t, c, 1)})
	}
	for n := range rapid.IntRange(0, 2).Draw(r, "executions") {
		x := drawExecution(t, r, n)
		streams = append(streams, drawMessages(r, x))
		snapshots = append(snapshots, x.SnapshotAhead(x, eventsPerPart(), rapid.Bool().Draw(r, "replace")))
	}
	return streams, snapshots
}

// drawRun returns a run with some trace, which may go on after its completion.
func drawRun(t *testing.T, r *rapid.T, n int, session, conversation string) *historytest.Run {
	t.Helper()
	run, recorded := historytest.NewRun(t, n, session, conversation, 1)
	history := historytest.ContinueRun(t, run, recorded)
	for range rapid.IntRange(0, 5).Draw(r, "steps of the run") {
		if !history.Completed() && rapid.IntRange(0, 3).Draw(r, "ends") == 0 {
			history.Complete(rapid.SampledFrom([]string{"completed", "failed", "cancelled"}).Draw(r, "status"))
		} else {
			history.Trace(rapid.IntRange(1, 6).Draw(r, "trace events"))
		}
	}
	return history
}

// However a history is cut into batches, interleaved between streams, sent again or
// replaced by snapshots: the read model has the same bytes as when each message came once.
func TestProjectionIsIdempotent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(r *rapid.T) {
		streams, snapshots := drawHistory(t, r)
		b.clear(r)
		for _, stream := range streams {
			for _, e := range stream {
				b.apply(r, e)
			}
		}
		want := b.content(r)
		b.clear(r)

		next := make([]int, len(streams))
		for done := 0; done < len(streams); {
			var batch []cloudevent.Event
			for range rapid.IntRange(1, 12).Draw(r, "batch") {
				s := rapid.IntRange(0, len(streams)-1).Draw(r, "stream")
				// Deliver the next message of the stream, or go back and repeat from an earlier one.
				from := max(0, next[s]-rapid.IntRange(0, 2).Draw(r, "again"))
				for i := from; i <= next[s] && i < len(streams[s]); i++ {
					batch = append(batch, streams[s][i])
				}
				if next[s] < len(streams[s]) {
					if next[s]++; next[s] == len(streams[s]) {
						done++
					}
				}
			}
			require.Empty(r, b.apply(r, batch...).Gaps)
		}
		require.Equal(r, want, b.content(r))

		// Snapshots over what is there, each sent from its beginning again after a cut.
		for _, parts := range snapshots {
			cut := rapid.IntRange(0, len(parts)).Draw(r, "cut")
			b.apply(r, parts[:cut]...)
			b.apply(r, parts...)
		}
		require.Equal(r, want, b.content(r))
	})
}

// Whenever a snapshot of a stream's end comes, whole or cut off, and whatever of the
// stream comes again after it: the read model has the same bytes.
func TestSnapshotAtAnyPointChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(r *rapid.T) {
		streams, snapshots := drawHistory(t, r)
		b.clear(r)
		for _, stream := range streams {
			b.apply(r, stream...)
		}
		want := b.content(r)
		b.clear(r)
		var all []cloudevent.Event
		for i, stream := range streams {
			at := rapid.IntRange(0, len(stream)).Draw(r, "at")
			cut := rapid.IntRange(0, len(snapshots[i])).Draw(r, "cut")
			all = append(append(append(all, stream[:at]...), snapshots[i][:cut]...), stream[rapid.IntRange(0, at).Draw(r, "back to"):]...)
		}
		for len(all) > 0 {
			n := rapid.IntRange(1, len(all)).Draw(r, "batch")
			require.Empty(r, b.apply(r, all[:n]...).Gaps)
			all = all[n:]
		}
		require.Empty(r, b.parked(r))
		require.Equal(r, want, b.content(r))
	})
}

// An empty read model comes back to the same bytes from snapshots alone.
func TestSnapshotsRebuildTheSameBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(r *rapid.T) {
		streams, snapshots := drawHistory(t, r)
		b.clear(r)
		for _, stream := range streams {
			b.apply(r, stream...)
		}
		want := b.content(r)
		b.clear(r)
		var all []cloudevent.Event
		for _, parts := range snapshots {
			all = append(all, parts...)
		}
		for len(all) > 0 {
			n := rapid.IntRange(1, len(all)).Draw(r, "batch")
			b.apply(r, all[:n]...)
			all = all[n:]
		}
		require.Equal(r, want, b.content(r))
	})
}
