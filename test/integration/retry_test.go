package integration_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// outcome is what a request in the background came to.
type outcome struct {
	answer kit.Response
	err    error
}

func background(fn func() (kit.Response, error)) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		answer, err := fn()
		done <- outcome{answer, err}
	}()
	return done
}

// A retry that finds its original in the middle of its transaction waits for it,
// and then sees what it stored: the same acknowledgement, never a conflict.
func TestARetryThatWaitsForItsOriginalIsNoConflict(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		table   string // whose insert is held up
		request func(ctx context.Context, d *kit.Deployment, id string) (kit.Response, error)
	}{
		"append": {
			table: "bz_agent_conversation_events",
			request: func(ctx context.Context, d *kit.Deployment, id string) (kit.Response, error) {
				return d.Append(ctx, kit.SessionID(1), id, kit.Turn("turn-1", 1, 10)...)
			},
		},
		"creation": {
			table: "bz_agent_conversation_members",
			request: func(ctx context.Context, d *kit.Deployment, _ string) (kit.Response, error) {
				return d.Create(ctx, kit.SessionID(1), kit.Creation{
					ClientArchiveID:      "323e4567-e89b-42d3-a456-426614174001",
					ClientConversationID: "held-up", Route: "orders",
					MemberSessionIDs: []string{kit.SessionID(1), kit.SessionID(2)},
				})
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := kit.Start(t, kit.Options{})
			id := d.NewArchive(t, kit.SessionID(1))
			release := kit.Hold(t, d.IngestDB.AdminDSN, `lock table `+c.table+` in share mode`)
			request := func() (kit.Response, error) { return c.request(t.Context(), d, id) }
			original := background(request)
			kit.AwaitLockWaits(t, d.IngestDB.AdminDSN, 1)
			retry := background(request)
			kit.AwaitLockWaits(t, d.IngestDB.AdminDSN, 2)
			release()
			first, second := <-original, <-retry
			require.NoError(t, first.err)
			require.NoError(t, second.err)
			require.Equal(t, http.StatusOK, first.answer.Status, "body: %s", first.answer.Body)
			require.Equal(t, http.StatusOK, second.answer.Status, "body: %s", second.answer.Body)
			assert.Equal(t, string(first.answer.Body), string(second.answer.Body))
		})
	}
}

// A client that goes away does not tear its batch: it is stored whole or not at
// all, and the retry gets the acknowledgement.
func TestAClientThatGoesAwayLeavesAWholeBatch(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	id := d.NewArchive(t, kit.SessionID(1))
	turn := kit.Turn("turn-1", 1, 50)
	release := kit.Hold(t, d.IngestDB.AdminDSN, `lock table bz_agent_conversation_events in share mode`)
	ctx, goAway := context.WithCancel(t.Context())
	gone := background(func() (kit.Response, error) { return d.Append(ctx, kit.SessionID(1), id, turn...) })
	kit.AwaitLockWaits(t, d.IngestDB.AdminDSN, 1)
	goAway()
	require.ErrorIs(t, (<-gone).err, context.Canceled)
	release()
	d.MustAppend(t, kit.SessionID(1), id, turn...)
	assert.Equal(t, turn, kit.Submitted(d.WaitFor(t, id, 50).Events))
}
