package integration_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// parallel calls fn n times at the same moment and returns the answers.
func parallel(t *testing.T, n int, fn func(ctx context.Context, i int) (kit.Response, error)) []kit.Response {
	t.Helper()
	answers, errs := make([]kit.Response, n), make([]error, n)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			answers[i], errs[i] = fn(t.Context(), i)
		})
	}
	close(start)
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return answers
}

// requireEqualAnswers fails the test unless all answers are 200 with the same body.
func requireEqualAnswers(t *testing.T, answers []kit.Response) {
	t.Helper()
	for _, answer := range answers {
		require.Equal(t, http.StatusOK, answer.Status, "body: %s", answer.Body)
		require.Equal(t, string(answers[0].Body), string(answer.Body))
	}
}

func TestIdenticalCreationsGiveOneArchive(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	creation := kit.NewCreation(kit.SessionID(1), kit.SessionID(2))
	answers := parallel(t, 50, func(ctx context.Context, _ int) (kit.Response, error) {
		return d.Create(ctx, kit.SessionID(1), creation)
	})
	requireEqualAnswers(t, answers)
	assert.Equal(t, 1, kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from bz_agent_conversation_audits`))
	assert.Equal(t, 2, kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from bz_agent_conversation_members`))
}

func TestIdenticalConfirmationsConfirmOnce(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	answer, err := d.Create(t.Context(), kit.SessionID(1), kit.NewCreation(kit.SessionID(1), kit.SessionID(2), kit.SessionID(3)))
	require.NoError(t, err)
	var header kit.Header
	answer.Decode(t, http.StatusOK, &header)
	answers := parallel(t, 50, func(ctx context.Context, i int) (kit.Response, error) {
		return d.Confirm(ctx, kit.SessionID(2+i%2), header.ConversationID)
	})
	for _, answer := range answers {
		answer.Decode(t, http.StatusOK, &header)
	}
	answer, err = d.Confirm(t.Context(), kit.SessionID(2), header.ConversationID)
	require.NoError(t, err)
	answer.Decode(t, http.StatusOK, &header)
	assert.Equal(t, "ready", header.State)
	assert.Equal(t, 3, header.ConfirmedCount)
}

func TestIdenticalAppendsAreStoredOnce(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	id := d.NewArchive(t, kit.SessionID(1))
	turn := kit.Turn("turn-1", 1, 50)
	answers := parallel(t, 50, func(ctx context.Context, _ int) (kit.Response, error) {
		return d.Append(ctx, kit.SessionID(1), id, turn...)
	})
	requireEqualAnswers(t, answers)
	detail := d.WaitFor(t, id, 50)
	assert.Equal(t, turn, kit.Submitted(detail.Events))
	assert.Equal(t, 48, detail.Conversation.MessageCount)
	assert.Equal(t, 1, detail.Conversation.TurnCount)
}

// Batches that overlap each other in every way come in any order; what does not fit
// yet is a conflict, and retrying makes all of them true.
func TestOverlappingBatchesConverge(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	id := d.NewArchive(t, kit.SessionID(1))
	turn := kit.Turn("turn-1", 1, 60)
	const size = 20
	parallel(t, len(turn)-size+1, func(ctx context.Context, i int) (kit.Response, error) {
		for {
			answer, err := d.Append(ctx, kit.SessionID(1), id, turn[i:i+size]...)
			if err != nil || answer.Status == http.StatusOK {
				return answer, err
			}
			assert.Equal(t, "conversation_audit_conflict", answer.Code())
			if t.Failed() {
				return answer, nil
			}
		}
	})
	assert.Equal(t, turn, kit.Submitted(d.WaitFor(t, id, 60).Events))
}

// One of many different histories for the same sequence wins, whole.
func TestRivalBatchesAreAllOrNothing(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	id := d.NewArchive(t, kit.SessionID(1))
	rivals := make([][]kit.Event, 20)
	for i := range rivals {
		rivals[i] = kit.Turn("turn-1", 1, 10+i)
		rivals[i][1].Content = kit.Text(1000 + i)
	}
	answers := parallel(t, len(rivals), func(ctx context.Context, i int) (kit.Response, error) {
		return d.Append(ctx, kit.SessionID(1), id, rivals[i]...)
	})
	winner := -1
	for i, answer := range answers {
		if answer.Status == http.StatusOK {
			require.Equal(t, -1, winner, "two rivals were acknowledged")
			winner = i
		} else {
			assert.Equal(t, "conversation_audit_conflict", answer.Code())
		}
	}
	require.NotEqual(t, -1, winner, "no rival was acknowledged")
	assert.Equal(t, rivals[winner], kit.Submitted(d.WaitFor(t, id, len(rivals[winner])).Events))
}
