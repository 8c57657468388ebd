package client_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/client/internal/hubtest"
)

// reports collects what Run tells.
type reports struct {
	mu   sync.Mutex
	last map[string]error
	st   map[string]client.Status
	n    int
}

func (r *reports) take(st client.Status, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[st.ID], r.st[st.ID] = err, st
	r.n++
}

func (r *reports) archived(a *client.Archive, last int) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		st := r.st[a.ID()]
		return st.Archived() && st.LastSequence == last && r.last[a.ID()] == nil
	}
}

func (r *reports) failure(a *client.Archive) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[a.ID()]
}

// work lets Run run until the test's end.
func work(t *testing.T, s *client.Spool) *reports {
	t.Helper()
	r := &reports{last: map[string]error{}, st: map[string]client.Status{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, r.take) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return r
}

func TestRunSyncsWhatIsAppended(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	before := b.alone(t)
	mustAppend(t, before, turn("turn-1", 3)...)
	b.hub.OnRequest(failOnce("/events", hubtest.Fault{Status: 503, Code: "conversation_audit_unavailable"}))
	r := work(t, b.spool)
	require.Eventually(t, r.archived(before, 3), patience, time.Millisecond)
	after := b.archive(t, b.both())
	for n := range 5 {
		mustAppend(t, after, turn("turn-"+string(rune('a'+n)), 10)...)
	}
	require.Eventually(t, r.archived(after, 50), patience, time.Millisecond)
	require.Equal(t, stored(t, after), b.transcript(after.ID()))
	mustAppend(t, before, turn("turn-2", 3)...) // while there was nothing to do
	require.Eventually(t, r.archived(before, 6), patience, time.Millisecond)
	require.Empty(t, b.hub.Refusals())
}

// One archive that fails alone holds up nobody else.
func TestRunGoesRoundWhatFails(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	broken := b.alone(t)
	mustSync(t, broken)
	mustAppend(t, broken, turn("turn-1", 3)...)
	b.hub.OnRequest(always(status(t, broken).HubID+"/events", hubtest.Fault{Status: 500}))
	refused := b.archive(t, b.both())
	b.hub.Revoke(b.crm.ID())
	others := make([]*client.Archive, 3)
	for i := range others {
		others[i] = b.archive(t, client.ArchiveSpec{
			ConversationID: "other-" + string(rune('a'+i)), Route: "orders", Members: []client.Member{{Session: b.erp}},
		})
		mustAppend(t, others[i], turn("turn-1", 3)...)
	}
	r := work(t, b.spool)
	for _, a := range others {
		require.Eventually(t, r.archived(a, 3), patience, time.Millisecond)
	}
	var failed *client.RefusedError
	require.Eventually(t, func() bool { return r.failure(refused) != nil && r.failure(broken) != nil }, patience, time.Millisecond)
	require.ErrorAs(t, r.failure(refused), &failed)
	require.ErrorIs(t, r.failure(broken), client.ErrUnavailable)
	b.hub.OnRequest(nil)
	require.Eventually(t, r.archived(broken, 3), patience, time.Millisecond)
}

func TestRunLeavesAloneWhatWaitingDoesNotMend(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.alone(t)
	b.hub.Revoke(b.erp.ID())
	r := work(t, b.spool)
	require.Eventually(t, func() bool { return r.failure(a) != nil }, patience, time.Millisecond)
	require.ErrorIs(t, r.failure(a), client.ErrReauthorize)
	asked := len(b.hub.Requests(""))
	mustAppend(t, a, turn("turn-1", 3)...)
	other := b.archive(t, client.ArchiveSpec{ConversationID: "c", Route: "customers", Members: []client.Member{{Session: b.crm}}})
	mustAppend(t, other, turn("turn-1", 3)...)
	require.Eventually(t, r.archived(other, 3), patience, time.Millisecond)
	for _, request := range b.hub.Requests("")[asked:] {
		require.Equal(t, b.crmGrant.Access, request.Bearer)
		require.False(t, strings.HasSuffix(request.Path, "/token"))
	}
}

// However many archives wait for it, a hub that is down gets its pauses.
func TestRunGivesAHubThatIsDownItsPauses(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	var err error
	b.clientHub, err = client.NewHub(b.hub.URL, client.WithBackoff(100*time.Millisecond, 100*time.Millisecond))
	require.NoError(t, err)
	b.reopen(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		b.archive(t, client.ArchiveSpec{ConversationID: name, Route: "orders", Members: []client.Member{{Session: b.erp}}})
	}
	asked := make(chan time.Time, 1000)
	b.hub.OnRequest(func(*http.Request) hubtest.Fault {
		asked <- time.Now()
		return hubtest.Fault{Status: 503}
	})
	work(t, b.spool)
	for last := <-asked; len(b.hub.Requests("")) < 6; {
		next := <-asked
		require.GreaterOrEqual(t, next.Sub(last), 40*time.Millisecond)
		last = next
	}
}
