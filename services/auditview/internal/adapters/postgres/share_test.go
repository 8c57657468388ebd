package postgres_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/historytest"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// counted is a store that counts its transactions and holds the first one.
type counted struct {
	app.ProjectionStore
	transactions atomic.Int64
	began        chan struct{}
	gate         chan struct{}
}

func (c *counted) Project(ctx context.Context, streams []readmodel.Stream, plan app.PlanFunc) error {
	if c.transactions.Add(1) == 1 {
		close(c.began)
		<-c.gate
	}
	return c.ProjectionStore.Project(ctx, streams, plan)
}

// Batches that wait at the same time share transactions, and each is answered for itself:
// a gap refuses the batch that has it, and a message that can never be applied is parked
// without taking the others with it.
func TestBatchesThatWaitShareATransaction(t *testing.T) {
	t.Parallel()
	const batches = 12
	b := setup(t)
	store := &counted{ProjectionStore: b.store, began: make(chan struct{}), gate: make(chan struct{})}
	projector := app.NewProjector(store, nil)
	histories := make([][]cloudevent.Event, batches+1)
	for i := range histories {
		histories[i] = historytest.NewArchive(t, i+1, false, historytest.SessionID(0)).Append("a text", "another").Messages
	}
	results, errs := make([]app.Result, batches), make([]error, batches)
	var group sync.WaitGroup
	group.Go(func() {
		_, err := projector.Apply(t.Context(), decode(histories[batches]...))
		require.NoError(t, err)
	})
	<-store.began
	var entered sync.WaitGroup
	entered.Add(batches)
	for i := range batches {
		messages := decode(histories[i]...)
		switch i {
		case 3: // one that lacks its first message
			messages = messages[1:]
		case 5: // one of which nothing can be read
			messages[0].Body, messages[0].Err = nil, readmodel.ErrUnknownType
		}
		group.Go(func() {
			entered.Done()
			results[i], errs[i] = projector.Apply(t.Context(), messages)
		})
	}
	entered.Wait()
	close(store.gate)
	group.Wait()
	for i := range batches {
		require.NoError(t, errs[i])
		stream := histories[i][0].StreamID
		version := b.version(t, stream)
		switch i {
		case 3:
			require.Equal(t, []readmodel.Gap{{Stream: readmodel.Stream{Kind: "archive", ID: stream}}}, results[i].Gaps)
			require.Zero(t, version)
		case 5:
			require.Zero(t, version)
		default:
			require.Empty(t, results[i].Gaps)
			require.Equal(t, histories[i][len(histories[i])-1].StreamVersion, version)
		}
	}
	parked := b.parked(t)
	require.Len(t, parked, 1)
	require.Equal(t, histories[5][0].StreamID, parked[0].Stream.ID)
	require.Less(t, store.transactions.Load(), int64(batches), "transactions are shared")
}

// An end of the caller's context ends its waiting, and the batch may come again.
func TestACallerThatLeavesDisturbsNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	store := &counted{ProjectionStore: b.store, began: make(chan struct{}), gate: make(chan struct{})}
	projector := app.NewProjector(store, nil)
	one := decode(historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Messages...)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := projector.Apply(ctx, one)
		left <- err
	}()
	<-store.began
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	close(store.gate)
	_, err := projector.Apply(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, one[len(one)-1].Version, b.version(t, one[0].Stream.ID))
}
