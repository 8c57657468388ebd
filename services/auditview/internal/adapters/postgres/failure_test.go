package postgres_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/historytest"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// ready returns an archive of one member with turns.
func ready(t *testing.T, n, turns int) *historytest.Archive {
	t.Helper()
	a := historytest.NewArchive(t, n, false, historytest.SessionID(0))
	for range turns {
		a.Append("a text that is nobody's business", "another")
	}
	return a
}

func TestGapRefusesItsStreamOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := ready(t, 1, 3), ready(t, 2, 3)
	b.apply(t, one.Messages[0])

	batch := append([]cloudevent.Event{one.Messages[2], one.Messages[3]}, two.Messages...)
	result := b.apply(t, batch...)

	require.Equal(t, []readmodel.Gap{{Stream: readmodel.Stream{Kind: "archive", ID: one.ConversationID()}, Applied: 1}}, result.Gaps)
	require.Equal(t, int64(1), b.version(t, one.ConversationID()))
	require.Equal(t, int64(4), b.version(t, two.ConversationID()))
	require.Empty(t, b.parked(t))

	require.Empty(t, b.apply(t, one.Messages[1:]...).Gaps)
	require.Equal(t, int64(4), b.version(t, one.ConversationID()))
}

func TestSnapshotClosesAGapWithinItsBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := ready(t, 1, 3)
	batch := append([]cloudevent.Event{a.Messages[2]}, a.Snapshot(3)...)
	require.Empty(t, b.apply(t, batch...).Gaps)
	require.Equal(t, int64(4), b.version(t, a.ConversationID()))
}

// poisons make a history of five messages whose third can never be applied.
var poisons = map[string]struct {
	messages func(b *bundle, t *testing.T) []cloudevent.Event
	reason   string
}{
	"data of another type":                 {(*bundle).otherData, "data is not of its type"},
	"unknown type":                         {(*bundle).unknownType, "unknown type"},
	"data of another stream":               {(*bundle).otherStream, "another stream"},
	"a text that the database refuses":     {(*bundle).refusedText, "SQLSTATE 22021"},
	"a run that is linked elsewhere":       {(*bundle).linkedElsewhere, "SQLSTATE 23505, constraint run_links_pkey"},
	"a state that the archive cannot have": {(*bundle).otherState, "contradicts its stream"},
}

func (*bundle) otherData(t *testing.T) []cloudevent.Event {
	t.Helper()
	m := ready(t, 1, 4).Messages
	m[2] = historytest.Broken(m[2])
	return m
}

func (*bundle) unknownType(t *testing.T) []cloudevent.Event {
	t.Helper()
	m := ready(t, 1, 4).Messages
	m[2].Type = "verbatim.archive.burned.v1"
	return m
}

func (*bundle) otherStream(t *testing.T) []cloudevent.Event {
	t.Helper()
	m, other := ready(t, 1, 4).Messages, ready(t, 2, 0).Messages
	m[2].Type, m[2].Data = other[0].Type, other[0].Data
	return m
}

func (*bundle) refusedText(t *testing.T) []cloudevent.Event {
	t.Helper()
	return ready(t, 1, 1).Append("x\x00y").Append("later").Append("latest").Messages
}

func (b *bundle) linkedElsewhere(t *testing.T) []cloudevent.Event {
	t.Helper()
	run, recorded := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 1)
	b.apply(t, append(ready(t, 9, 0).Link(run).Messages, recorded)...)
	return ready(t, 1, 1).Link(run).Append("later").Append("latest").Messages
}

func (*bundle) otherState(t *testing.T) []cloudevent.Event {
	t.Helper()
	m, other := ready(t, 1, 4).Messages, ready(t, 1, 9).Messages
	m[2].Data = other[8].Data
	return m
}

// What can never be applied is parked, with all that follows in its stream; nothing else waits.
func TestPoisonParksItsStreamOnly(t *testing.T) {
	t.Parallel()
	for name, poison := range poisons {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			messages := poison.messages(b, t)
			require.Len(t, messages, 5)
			other := ready(t, 5, 3)

			result := b.apply(t, append(slices.Clone(messages[:4]), other.Messages...)...)
			require.Empty(t, result.Gaps)
			require.Equal(t, int64(4), b.version(t, other.ConversationID()))
			require.Equal(t, int64(2), b.version(t, messages[0].StreamID))
			b.apply(t, messages...) // again, with one that is new
			require.Equal(t, int64(2), b.version(t, messages[0].StreamID))

			parked := b.parked(t)
			require.Len(t, parked, 1)
			require.Equal(t, messages[0].StreamID, parked[0].Stream.ID)
			require.Equal(t, []int64{3, 5, 3}, []int64{parked[0].FromVersion, parked[0].ToVersion, parked[0].Count})
			require.Contains(t, parked[0].Error, poison.reason)
			require.Equal(t, parkedAt, parked[0].Since)
			for _, secret := range []string{"secret", "transcript", "business", "later", "x\x00y"} {
				require.NotContains(t, parked[0].Error, secret)
			}
			kept, err := b.store.ParkedEvents(t.Context(), parked[0].Stream, 0, 0, 10)
			require.NoError(t, err)
			require.Equal(t, messages[2:], kept)
		})
	}
}

func TestGapBehindParkedMessagesIsAGap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := ready(t, 1, 4).Messages
	m[1] = historytest.Broken(m[1])
	b.apply(t, m[:3]...)
	result := b.apply(t, m[4])
	require.Equal(t, []readmodel.Gap{{Stream: readmodel.Stream{Kind: "archive", ID: m[0].StreamID}, Applied: 3}}, result.Gaps)
	require.Empty(t, b.apply(t, m[3:]...).Gaps)
	require.Equal(t, int64(4), b.parked(t)[0].Count)
}

func TestReplayAppliesWhatIsParkedInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run, recorded := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 2)
	a := ready(t, 1, 1).Link(run).Append("later")
	b.apply(t, append(slices.Clone(a.Messages), recorded)...)
	want := b.content(t)
	b.clear(t)

	b.exec(t, `insert into run_links values ($1, $2, 1, $2, 'turn', 1)`, run.RunID, historytest.ID(1, 1))
	b.apply(t, append(slices.Clone(a.Messages), recorded)...)
	replayer := app.NewReplayer(b.store)

	replayed, still, err := replayer.Replay(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []int{0, 2}, []int{replayed, still})
	replayed, still, err = replayer.Replay(t.Context(), historytest.ID(2, 2)) // another stream
	require.NoError(t, err)
	require.Equal(t, []int{0, 0}, []int{replayed, still})

	b.exec(t, `delete from run_links where conversation_id = $1`, historytest.ID(1, 1))
	replayed, still, err = replayer.Replay(t.Context(), "archive/"+a.ConversationID())
	require.NoError(t, err)
	require.Equal(t, []int{2, 0}, []int{replayed, still})
	require.Equal(t, want, b.content(t))
}

func TestReplayStopsAtTheFirstThatFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := ready(t, 1, 20).Messages
	m[1], m[18] = historytest.Broken(m[1]), historytest.Broken(m[18])
	b.apply(t, m...)
	// Whoever repaired the first message left another one broken.
	good := ready(t, 1, 20).Messages[1]
	b.exec(t, `update parked_messages set event = replace(event, '{"transcript":"secret words"}', $1) where version = 2`, string(good.Data))

	replayed, still, err := app.NewReplayer(b.store).Replay(t.Context(), m[0].StreamID)
	require.NoError(t, err)
	require.Equal(t, []int{17, 3}, []int{replayed, still})
	require.Equal(t, int64(18), b.version(t, m[0].StreamID))
	parked := b.parked(t)
	require.Equal(t, []int64{19, 21}, []int64{parked[0].FromVersion, parked[0].ToVersion})
	require.Contains(t, parked[0].Error, "data is not of its type")
}

func TestNothingIsParkedWhileShuttingDown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := ready(t, 1, 2).Messages
	m[1] = historytest.Broken(m[1])
	stopping := app.NewProjector(b.store, func() bool { return true })
	_, err := stopping.Apply(t.Context(), decode(m...))
	require.ErrorIs(t, err, app.ErrShuttingDown)
	require.Empty(t, b.parked(t))
	require.Equal(t, int64(0), b.version(t, m[0].StreamID))

	_, err = stopping.Apply(t.Context(), decode(m[0])) // what is right is still finished
	require.NoError(t, err)
	require.Equal(t, int64(1), b.version(t, m[0].StreamID))
}

func TestTransientFailuresParkNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := ready(t, 1, 2).Messages
	m[1] = historytest.Broken(m[1])

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.projector.Apply(cancelled, decode(m...))
	require.ErrorIs(t, err, context.Canceled)

	b.exec(t, `alter table archive_events rename to elsewhere`) // not migrated, as it were
	_, err = b.projector.Apply(t.Context(), decode(ready(t, 1, 2).Messages...))
	require.ErrorContains(t, err, "SQLSTATE 42P01")
	b.exec(t, `alter table elsewhere rename to archive_events`)

	require.Empty(t, b.parked(t))
	b.apply(t, ready(t, 1, 2).Messages...)
	require.Equal(t, int64(3), b.version(t, m[0].StreamID))
}
