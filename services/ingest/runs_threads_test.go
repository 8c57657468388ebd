package ingest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// importedRuns is a registry with runs of session A on the route orders: conversations and
// their threads, in turn.
func importedRuns(conversations ...any) string {
	var runs strings.Builder
	runs.WriteString("runs:\n")
	for i := 0; i+1 < len(conversations); i += 2 {
		fmt.Fprintf(&runs, "  - {run_id: 223e4567-e89b-42d3-a456-%012d, session_id: %s, client_app_id: shop, route_key: orders, thread_id: %v,"+
			" client_conversation_id: %v, client_turn_id: imported}\n", i/2+1, runsSessionA, conversations[i+1], conversations[i])
	}
	return runs.String()
}

func TestAConversationHasOneThread(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	thread := func(route, token, conversation, turn string) int {
		t.Helper()
		return wantRuns(t, b.post(t, "/workspaces/"+route+"/turns", token, turnBody(conversation, turn))).thread()
	}
	require.Equal(t, 1, thread("orders", runsB, "conv", "t1"))
	require.Equal(t, 1, thread("orders", runsB, "conv", "t2"))
	require.Equal(t, 2, thread("orders", runsA, "conv", "t1"), "another session's")
	require.Equal(t, 3, thread("returns", runsB, "conv", "t1"), "another route's")
	require.Equal(t, 4, thread("orders", runsB, "Conv", "t1"), "another conversation")
	require.Equal(t, 1, thread("orders", runsB, "conv", "t3"))
	require.Len(t, b.rows(t, `select thread_id::text from bz_agent_threads`), 4)
}

func TestParallelTurnsShareTheirConversationsThread(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	const conversations, turns = 4, 6
	replies := b.parallel(t, conversations*turns, func(i int) (string, string, string) {
		return runsTurns, runsA, turnBody(fmt.Sprintf("conv-%d", i%conversations), fmt.Sprintf("t-%d", i))
	})
	threads := map[int]int{}
	for i, r := range replies {
		thread := wantRuns(t, r).thread()
		require.Equal(t, wantRuns(t, replies[i%conversations]).thread(), thread)
		threads[thread]++
	}
	require.Len(t, threads, conversations)
	for _, n := range threads {
		require.Equal(t, turns, n)
	}
}

func TestNumbersOfImportedThreadsArePassedOver(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	b.apply(t, importedRuns("old-1", 1, "old-2", 2, "old-4", 4, "old-last", int64(9007199254740991)))
	thread := func(conversation string) int {
		t.Helper()
		return wantRuns(t, b.post(t, runsTurns, runsA, turnBody(conversation, "t1"))).thread()
	}
	require.Equal(t, 3, thread("new-1"))
	require.Equal(t, 5, thread("new-2"))
	require.Equal(t, 4, thread("old-4"), "an imported conversation goes on in its thread")
	require.Equal(t, 2, thread("old-2"))

	// However many there are.
	b.exec(t, `insert into bz_agent_threads (thread_id, session_id, route_key, client_conversation_id, created_at)
		select n, $1, 'orders', 'bulk-' || n, now() from generate_series(6, 20005) as n`, runsSessionA)
	require.Equal(t, 20006, thread("new-3"))
}

// An import takes no lock of a conversation: a turn that meets one waits for it.
func TestAnImportAndATurnAgreeOnAThread(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		imported string // the conversation whose thread 1, which is next, is imported
		want     int
	}{
		"of the same conversation": {"met", 1},
		"of another":               {"another", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupRuns(t)
			tx, err := b.owner.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `insert into bz_agent_threads values (1, $1, 'orders', $2, now())`, runsSessionA, tc.imported)
			require.NoError(t, err)
			replies, errs := make(chan runsReply, 1), make(chan error, 1)
			go func() {
				r, err := b.send(t.Context(), "POST", runsTurns, runsA, turnBody("met", "t1"))
				replies <- r
				errs <- err
			}()
			b.awaitLocks(t, 1)
			require.NoError(t, tx.Commit(t.Context()))
			require.NoError(t, <-errs)
			require.Equal(t, tc.want, wantRuns(t, <-replies).thread())
			require.Len(t, b.rows(t, `select thread_id::text from bz_agent_threads where client_conversation_id = 'met'`), 1)
		})
	}
}

func TestEveryThreadNumberIsGivenOnce(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	replies := b.parallel(t, 20, func(i int) (string, string, string) {
		return runsTurns, []string{runsA, runsB, runsD}[i%3], turnBody(fmt.Sprintf("conv-%d", i), "t")
	})
	var threads []int
	for _, r := range replies {
		threads = append(threads, wantRuns(t, r).thread())
	}
	slices.Sort(threads)
	require.Len(t, slices.Compact(threads), 20)
}
