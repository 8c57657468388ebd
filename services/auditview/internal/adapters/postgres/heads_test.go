package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/headsv1"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/historytest"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// Heads that an older auditview parked, since it did not know them, are forgotten by a replay.
func TestParkedHeadsAreForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	archive := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Messages[0]
	data, err := headsv1.Marshal(headsv1.Heads{Heads: []headsv1.Head{{Kind: archive.StreamKind, ID: archive.StreamID, Version: 1}}})
	require.NoError(t, err)
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	m := readmodel.Decode(cloudevent.New(headsv1.StreamKind, headsv1.StreamID(3), 1, 0, headsv1.Type, at, data))
	m.Body, m.Err = nil, readmodel.ErrUnknownType
	_, err = b.projector.Apply(t.Context(), []readmodel.Message{m})
	require.NoError(t, err)
	require.Len(t, b.parked(t), 1)
	replayed, still, err := app.NewReplayer(b.store).Replay(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []int{1, 0}, []int{replayed, still})
}
