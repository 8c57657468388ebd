package client_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/client/internal/hubtest"
)

// failOnce lets the first request whose path ends so fail.
func failOnce(suffix string, f hubtest.Fault) func(*http.Request) hubtest.Fault {
	var done atomic.Bool
	return func(r *http.Request) hubtest.Fault {
		if strings.HasSuffix(r.URL.Path, suffix) && done.CompareAndSwap(false, true) {
			return f
		}
		return hubtest.Fault{}
	}
}

func always(suffix string, f hubtest.Fault) func(*http.Request) hubtest.Fault {
	return func(r *http.Request) hubtest.Fault {
		if strings.HasSuffix(r.URL.Path, suffix) {
			return f
		}
		return hubtest.Fault{}
	}
}

func TestEachMemberConfirmsWithItsOwnBearer(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.archive(t, b.both())
	mustAppend(t, a, turn("turn-1", 120)...)
	mustSync(t, a)
	require.Equal(t, stored(t, a), b.transcript(a.ID()))
	require.True(t, status(t, a).Archived())
	require.NotEmpty(t, status(t, a).HubID)
	confirmations := b.hub.Requests("/confirm")
	require.Len(t, confirmations, 1)
	require.Equal(t, b.crmGrant.Access, confirmations[0].Bearer)
	for _, r := range append(b.hub.Requests("/events"), b.hub.Requests("/conversation-audits")...) {
		require.Equal(t, b.erpGrant.Access, r.Bearer)
	}
	before := len(b.hub.Requests(""))
	mustSync(t, a)
	require.Len(t, b.hub.Requests(""), before, "nothing is left to say")
	require.Empty(t, b.hub.Refusals())
}

func TestBatchesStayBelowTheLimits(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.alone(t)
	mustAppend(t, a, client.StartTurn("turn-1"))
	for range 12 { // each three times as long as it counts, and twice that as JSON
		mustAppend(t, a, client.UserSaid("turn-1", strings.Repeat("\u2028", 42_000)+"."))
	}
	mustAppend(t, a, client.EndTurn("turn-1", client.Completed))
	mustAppend(t, a, turn("turn-2", 130)...)
	mustSync(t, a)
	require.Equal(t, stored(t, a), b.transcript(a.ID()))
	require.Empty(t, b.hub.Refusals())
	require.Equal(t, 6+2, len(b.hub.Requests("/events"))) //nolint:testifylint // it would print megabytes
}

// Whatever answer is lost, the request is repeated byte for byte.
func TestALostAnswerIsAskedForAgainUnchanged(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"/capabilities", "/conversation-audits", "/confirm", "/events"} {
		for name, fault := range map[string]hubtest.Fault{
			"lost before":    {Lost: true},
			"lost after":     {Lost: true, Done: true},
			"overloaded":     {Status: 503, Code: "conversation_audit_unavailable"},
			"broken":         {Status: 500, Code: "conversation_audit_internal_error"},
			"bad gateway":    {Status: 502},
			"too many":       {Status: 429, Code: "rate_limited", RetryAfter: "0"},
			"a proxy's 403":  {Status: 403},
			"a proxy's 413":  {Status: 413},
			"a redirect":     {Status: 307},
			"another schema": {Body: `{"schema":"another.v1"}`},
			"a portal":       {Body: `<html>sign in</html>`},
			"another's":      {Body: `{"schema":"bailing.agent-conversation-audit.v1","conversation_id":"423e4567-e89b-42d3-a456-426614174001"}`},
			"an old ack":     {Body: `{"schema":"bailing.agent-conversation-audit-ack.v1","last_sequence":0}`},
		} {
			t.Run(suffix+" "+name, func(t *testing.T) {
				t.Parallel()
				b := setup(t, client.Hooks{})
				b.hub.OnRequest(failOnce(suffix, fault))
				a := b.archive(t, b.both())
				mustAppend(t, a, turn("turn-1", 3)...)
				mustSync(t, a)
				require.Equal(t, stored(t, a), b.transcript(a.ID()))
				sent := b.hub.Requests(suffix)
				require.Len(t, sent, 2)
				require.Equal(t, sent[0], sent[1])
				require.Empty(t, b.hub.Refusals())
				require.Equal(t, 1, b.hub.ArchiveCount())
			})
		}
	}
}

// What is appended while a batch's answer is missing does not join that batch.
func TestABatchOnItsWayIsClosed(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.alone(t)
	mustAppend(t, a, client.StartTurn("turn-1"))
	b.hub.OnRequest(always("/events", hubtest.Fault{Lost: true, Done: true}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := a.Sync(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, client.ErrUnavailable)
	require.Equal(t, 0, status(t, a).Acknowledged, "the hub holds it, and has not said so")
	mustAppend(t, a, client.UserSaid("turn-1", "later"))
	b.reopen(t)
	a, err = b.spool.Archive(a.ID())
	require.NoError(t, err)
	b.hub.OnRequest(nil)
	mustSync(t, a)
	sent := b.hub.Requests("/events")
	for _, r := range sent[:len(sent)-1] {
		require.Equal(t, sent[0].Body, r.Body)
	}
	require.Contains(t, sent[len(sent)-1].Body, "later")
	require.Equal(t, stored(t, a), b.transcript(a.ID()))
}

func TestRetryAfterIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	b.hub.OnRequest(failOnce("/events", hubtest.Fault{Status: 503, Code: "conversation_audit_unavailable", RetryAfter: "1"}))
	a := b.alone(t)
	mustAppend(t, a, turn("turn-1", 2)...)
	begun := time.Now()
	mustSync(t, a)
	require.GreaterOrEqual(t, time.Since(begun), time.Second)
	b.hub.OnRequest(always("/events", hubtest.Fault{Status: 429, Code: "rate_limited", RetryAfter: "3600"}))
	mustAppend(t, a, turn("turn-2", 2)...)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, a.Sync(ctx), context.DeadlineExceeded)
	require.Len(t, b.hub.Requests("/events"), 3)
}

func TestAnOlderHubIsUnsupported(t *testing.T) {
	t.Parallel()
	older := func(r *http.Request) hubtest.Fault {
		if strings.Contains(r.URL.Path, "/conversation-audits") {
			return hubtest.Fault{Status: 404}
		}
		return hubtest.Fault{}
	}
	for name, open := range map[string]func(*testBundle) client.ArchiveSpec{
		"v2": func(b *testBundle) client.ArchiveSpec { return b.both() },
		"v1": func(b *testBundle) client.ArchiveSpec {
			return client.ArchiveSpec{ConversationID: "c", Route: "orders", Members: []client.Member{{Session: b.erp}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, client.Hooks{})
			b.hub.OnRequest(older)
			a := b.archive(t, open(b))
			mustAppend(t, a, turn("turn-1", 3)...)
			require.ErrorIs(t, a.Sync(t.Context()), client.ErrUnsupported)
			b.reopen(t)
			a, err := b.spool.Archive(a.ID())
			require.NoError(t, err)
			st := status(t, a)
			require.Equal(t, client.Unsupported, st.State)
			require.False(t, st.Archived())
			require.Len(t, stored(t, a), 3)
			b.hub.OnRequest(nil) // it was upgraded
			mustSync(t, a)
			require.Equal(t, client.Ready, status(t, a).State)
			require.True(t, status(t, a).Archived())
		})
	}
}

// An archive whose members have bindings of their own is not sent as anything less.
func TestNoDowngrade(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	b.hub.SetCrossBinding(false)
	a := b.archive(t, b.both())
	require.ErrorIs(t, a.Sync(t.Context()), client.ErrUnsupported)
	b.hub.SetCrossBinding(true)
	b.hub.OnRequest(failOnce("/conversation-audits", hubtest.Fault{Status: 503, Code: "conversation_audit_cross_binding_unavailable"}))
	require.ErrorIs(t, a.Sync(t.Context()), client.ErrUnsupported)
	require.Equal(t, client.Unsupported, status(t, a).State)
	mustSync(t, a)
	require.Equal(t, client.Ready, status(t, a).State)
}

func TestARefusalIsKeptAndShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		suffix, code string
		status       int
	}{
		{"/conversation-audits", "conversation_audit_conflict", 409},
		{"/conversation-audits", "conversation_audit_not_found", 404},
		{"/confirm", "conversation_audit_authorization_invalid", 403},
		{"/events", "conversation_audit_authorization_invalid", 403},
		{"/events", "conversation_audit_limit", 413},
		{"/events", "conversation_audit_conflict", 409},
		{"/events", "invalid_request", 400},
	} {
		t.Run(c.suffix+" "+c.code, func(t *testing.T) {
			t.Parallel()
			b := setup(t, client.Hooks{})
			b.hub.OnRequest(always(c.suffix, hubtest.Fault{Status: c.status, Code: c.code}))
			a := b.archive(t, b.both())
			mustAppend(t, a, turn("turn-1", 3)...)
			var refused *client.RefusedError
			require.ErrorAs(t, a.Sync(t.Context()), &refused)
			require.Equal(t, &client.RefusedError{Status: c.status, Code: c.code, Message: "refused by the test's hub"}, refused)
			b.reopen(t)
			a, err := b.spool.Archive(a.ID())
			require.NoError(t, err)
			require.Equal(t, client.Refused, status(t, a).State)
			require.Equal(t, refused, status(t, a).Refusal)
			before := len(b.hub.Requests(""))
			require.ErrorAs(t, a.Sync(t.Context()), &refused)
			require.Len(t, b.hub.Requests(""), before, "it was asked again")
			mustAppend(t, a, turn("turn-2", 3)...) // the conversation goes on, and is not lost
			b.hub.OnRequest(nil)
			require.NoError(t, a.Resume())
			mustSync(t, a)
			require.Equal(t, stored(t, a), b.transcript(a.ID()))
			require.Len(t, stored(t, a), 6)
		})
	}
}

func TestARevokedMemberRefusesTheArchive(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.archive(t, b.both())
	mustAppend(t, a, turn("turn-1", 3)...)
	mustSync(t, a)
	b.hub.Revoke(b.crm.ID())
	mustAppend(t, a, turn("turn-2", 3)...)
	var refused *client.RefusedError
	require.ErrorAs(t, a.Sync(t.Context()), &refused)
	require.Equal(t, "conversation_audit_authorization_invalid", refused.Code)
	st := status(t, a)
	require.Equal(t, []int{6, 3}, []int{st.LastSequence, st.Acknowledged})
	require.False(t, st.Archived())
}

func TestMembersConfirmAgainWhenTheHubHasForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.archive(t, b.both())
	mustSync(t, a)
	b.hub.Unconfirm()
	mustAppend(t, a, turn("turn-1", 3)...)
	mustSync(t, a)
	require.Equal(t, stored(t, a), b.transcript(a.ID()))
	b.hub.OnRequest(always("/events", hubtest.Fault{Status: 409, Code: "conversation_audit_not_ready"}))
	mustAppend(t, a, turn("turn-2", 3)...)
	var refused *client.RefusedError
	require.ErrorAs(t, a.Sync(t.Context()), &refused, "and once is enough")
	require.Equal(t, "conversation_audit_not_ready", refused.Code)
}

// An old copy of the spool lacks what the hub holds: that is not papered over.
func TestASpoolBehindTheHubIsNoticed(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	spec := client.ArchiveSpec{
		ID: "323e4567-e89b-42d3-a456-426614174001", ConversationID: "c", Route: "orders", Members: []client.Member{{Session: b.erp}},
	}
	a := b.archive(t, spec)
	mustAppend(t, a, turn("turn-1", 3)...)
	mustSync(t, a)
	require.NoError(t, a.Forget())
	a = b.archive(t, spec)
	mustAppend(t, a, client.StartTurn("turn-1"))
	var refused *client.RefusedError
	require.ErrorAs(t, a.Sync(t.Context()), &refused)
	require.Equal(t, client.CodeDiverged, refused.Code)
	require.Equal(t, 0, status(t, a).Acknowledged)
}

// So it is when the old copy has grown as long as what the hub holds: what was never sent
// is not taken for acknowledged.
func TestAnOldCopyThatWentAnotherWayIsNotMerged(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.alone(t)
	mustAppend(t, a, turn("turn-1", 2)...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b.hub.OnRequest(func(r *http.Request) hubtest.Fault {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			return hubtest.Fault{}
		}
		cancel()
		return hubtest.Fault{Lost: true, Done: true}
	})
	require.ErrorIs(t, a.Sync(ctx), context.Canceled)
	require.Eventually(t, func() bool { return len(b.transcript(a.ID())) == 2 }, patience, time.Millisecond)
	b.hub.OnRequest(nil)
	b.reopen(t)
	old, err := os.ReadFile(b.path)
	require.NoError(t, err)
	open := func() *client.Archive {
		found, err := b.spool.Archive(a.ID())
		require.NoError(t, err)
		return found
	}
	mustAppend(t, open(), turn("turn-2", 3)...)
	mustSync(t, open())
	held := b.transcript(a.ID())
	require.Len(t, held, 5)

	require.NoError(t, b.spool.Close())
	require.NoError(t, os.WriteFile(b.path, old, 0o600))
	b.open(t)
	mustAppend(t, open(), turn("turn-3", 4)...)
	var refused *client.RefusedError
	require.ErrorAs(t, open().Sync(t.Context()), &refused)
	require.Equal(t, 2, status(t, open()).Acknowledged)
	require.Equal(t, held, b.transcript(a.ID()))
}
