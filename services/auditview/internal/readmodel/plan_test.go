package readmodel_test

import (
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
	pool := append(a.Messages, a.Snapshot(4)...)
	stream := readmodel.Stream{Kind: "archive", ID: a.ConversationID()}
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
			require.True(r, v.Version > head.Applied || len(plan.Changes.Replaced) > 0)
		}
		require.Equal(r, plan, readmodel.MakePlan(map[readmodel.Stream]readmodel.Head{stream: head}, decode(batch...), false))
	})
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
	for _, eventType := range []string{archivev1.TypeCreated, archivev1.TypeMemberConfirmed, archivev1.TypeEventsAppended, archivev1.TypeSnapshot, "verbatim.run.recorded.v1", "x.y"} {
		f.Add(eventType, []byte(`{}`), int64(1), 0)
	}
	id := historytest.ID(1, 1)
	f.Fuzz(func(t *testing.T, eventType string, data []byte, version int64, part int) {
		e := cloudevent.New(archivev1.StreamKind, id, version, part, eventType, historytest.Start, data)
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
