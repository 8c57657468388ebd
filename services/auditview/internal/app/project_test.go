package app_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/historytest"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// panicking panics while it writes one stream's event, as a defect of ours would.
type panicking struct {
	stream readmodel.Stream
	parked []readmodel.Parked
	kept   []readmodel.StreamVersion
}

func (*panicking) Applied(context.Context, []readmodel.Stream) (map[readmodel.Stream]app.StreamState, error) {
	return nil, nil
}

func (s *panicking) Project(_ context.Context, _ []readmodel.Stream, plan app.PlanFunc) error {
	changes, err := plan(map[readmodel.Stream]readmodel.Head{})
	if err != nil {
		return err
	}
	for _, v := range changes.Versions {
		if v.Stream == s.stream {
			panic("a private matter")
		}
	}
	s.parked, s.kept = append(s.parked, changes.Parked...), append(s.kept, changes.Versions...)
	return nil
}

// A panic comes again with each delivery, so it is poison like any other.
func TestPanicParksItsMessageOnly(t *testing.T) {
	t.Parallel()
	one := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Messages[0]
	two := historytest.NewArchive(t, 2, false, historytest.SessionID(0)).Messages[0]
	store := &panicking{stream: readmodel.Stream{Kind: one.StreamKind, ID: one.StreamID}}
	result, err := app.NewProjector(store, nil).Apply(t.Context(), []readmodel.Message{readmodel.Decode(one), readmodel.Decode(two)})
	require.NoError(t, err)
	require.Equal(t, readmodel.Summary{Applied: 1, Parked: 1}, result.Summary)
	require.Len(t, store.kept, 1)
	require.Equal(t, two.StreamID, store.kept[0].Stream.ID)
	require.Len(t, store.parked, 1)
	require.EqualError(t, store.parked[0].Err, "panic: a value of type string")
}
