package client_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/test/integration/internal/kit"
)

const patience = 2 * time.Minute

// open opens a spool of the hub behind a gate.
func open(t *testing.T, g *gate) *client.Spool {
	t.Helper()
	hub, err := client.NewHub(g.server.URL, client.WithBackoff(time.Millisecond, 50*time.Millisecond))
	require.NoError(t, err)
	spool, err := client.OpenSpool(filepath.Join(t.TempDir(), "spool"), hub)
	require.NoError(t, err)
	t.Cleanup(func() { _ = spool.Close() })
	return spool
}

func add(t *testing.T, spool *client.Spool, s kit.Session) *client.Session {
	t.Helper()
	session, err := spool.AddSession(t.Context(), client.Tokens{
		SessionID: s.SessionID, ClientAppID: s.ClientAppID, AccessToken: client.NewToken(s.AccessToken),
	})
	require.NoError(t, err)
	return session
}

// The client's view of all that an agent may ask for.
func TestTheWholeSurface(t *testing.T) {
	t.Parallel()
	s := newSystem(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	spool := open(t, newGate(t, s.Deployment))
	erp, err := signIn(ctx, spool, "erp-0", "orders")
	require.NoError(t, err)
	info, err := erp.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"orders"}, info.AllowedRoutes)
	require.Equal(t, "store:operator", info.OnBehalfOf)

	spaces, err := erp.Workspaces(ctx, nil)
	require.NoError(t, err)
	require.Len(t, spaces.Workspaces, 1)
	again, err := erp.Workspaces(ctx, spaces)
	require.NoError(t, err)
	require.Same(t, spaces, again)
	profile, err := erp.Profile(ctx, "orders", nil)
	require.NoError(t, err)
	require.Equal(t, "Route orders", profile.Name)
	same, err := erp.Profile(ctx, "orders", profile)
	require.NoError(t, err)
	require.Same(t, profile, same)

	turn := client.Turn{
		ConversationID: "c", TurnID: "turn-1", UserMessageID: "m-1", UserInput: kit.Text(1),
		PageContext: []byte(`{"page": "a <b> & c", "filter": null}`), Renderers: []string{"markdown"},
	}
	run, err := erp.OpenTurn(ctx, "orders", turn)
	require.NoError(t, err)
	repeated, err := erp.OpenTurn(ctx, "orders", turn)
	require.NoError(t, err)
	require.Equal(t, run, repeated)
	event := client.TraceEvent{
		EventID: "called", Event: "tool.called", OccurredAt: time.Now(), JobID: kit.UUID(),
		Metadata: map[string]any{"tool": "orders.search", "duration_ms": 1.5, "ok": true, "prompt": "dropped"},
	}
	ack, err := erp.RecordTrace(ctx, run.RunID, event)
	require.NoError(t, err)
	require.Equal(t, client.TraceAck{RunID: run.RunID, Accepted: 1, DroppedFields: 1, LastPosition: 1}, *ack)
	tokens, cost := int64(97), 0.0042
	end := client.Completion{
		AssistantMessageID: "a-1", Status: client.Completed, Content: kit.Text(2), Model: "model-1", Runtime: "host/1",
		Usage: &client.Usage{OutputTokens: &tokens, CostUSD: &cost},
	}
	done, err := erp.Complete(ctx, run.RunID, end)
	require.NoError(t, err)
	require.False(t, done.Replayed)
	done, err = erp.Complete(ctx, run.RunID, end)
	require.NoError(t, err)
	require.True(t, done.Replayed)

	var refused *client.RefusedError
	turn.UserInput = "other"
	_, err = erp.OpenTurn(ctx, "orders", turn)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "turn_conflict", refused.Code)
	_, err = erp.Profile(ctx, "customers", nil)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "route_not_allowed", refused.Code)
	_, err = erp.Complete(ctx, kit.UUID(), end)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "run_not_found", refused.Code)

	require.NoError(t, erp.Revoke(ctx))
	_, err = erp.Workspaces(ctx, nil)
	require.ErrorIs(t, err, client.ErrReauthorize)
}

// A long conversation in the background, while access tokens end under it.
func TestALongConversation(t *testing.T) {
	t.Parallel()
	s := newSystem(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	spool := open(t, newGate(t, s.Deployment))
	erp, err := signIn(ctx, spool, "erp-0", "orders")
	require.NoError(t, err)
	archive, err := spool.OpenArchive(client.ArchiveSpec{ConversationID: "c", Route: "orders", Members: []client.Member{{Session: erp}}})
	require.NoError(t, err)
	archived := make(chan client.Status, 1000)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- spool.Run(running, func(st client.Status, err error) {
			if err == nil && st.Archived() {
				archived <- st
			}
		})
	}()
	var want []client.Event
	for n := range 6 {
		id := "turn-" + string(rune('a'+n))
		events := []client.Event{client.StartTurn(id)}
		for m := range 15 {
			events = append(events, client.AssistantSaid(id, strings.Repeat(kit.Text(m), 100)))
		}
		stored, err := archive.Append(append(events, client.EndTurn(id, client.Completed))...)
		require.NoError(t, err)
		want = append(want, stored...)
		if n == 2 || n == 4 {
			s.expire(t, "erp-0")
		}
	}
	var hubID string
	for last := 0; last < len(want); {
		select {
		case st := <-archived:
			hubID, last = st.HubID, st.Acknowledged
		case <-ctx.Done():
			t.Fatal("not in time")
		}
	}
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	detail := s.WaitFor(t, hubID, len(want))
	require.Len(t, detail.Events, len(want))
	for i, e := range detail.Events {
		require.Equal(t, want[i].ID, e.EventID)
		require.Equal(t, want[i].Content, e.Content)
	}
}

// A revoked member refuses every later write, and what was not acknowledged stays.
func TestARevokedMember(t *testing.T) {
	t.Parallel()
	s := newSystem(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	spool := open(t, newGate(t, s.Deployment))
	erp, err := signIn(ctx, spool, "erp-0", "orders")
	require.NoError(t, err)
	crm, err := signIn(ctx, spool, "crm-0", "customers")
	require.NoError(t, err)
	archive, err := spool.OpenArchive(client.ArchiveSpec{ConversationID: "c", Members: []client.Member{
		{Session: erp, Route: "orders"}, {Session: crm, Route: "customers"},
	}})
	require.NoError(t, err)
	_, err = archive.Append(client.StartTurn("turn-1"))
	require.NoError(t, err)
	require.NoError(t, archive.Sync(ctx))
	require.NoError(t, crm.Revoke(ctx))
	_, err = archive.Append(client.UserSaid("turn-1", kit.Text(1)))
	require.NoError(t, err)
	var refused *client.RefusedError
	require.ErrorAs(t, archive.Sync(ctx), &refused)
	require.Equal(t, "conversation_audit_authorization_invalid", refused.Code)
	st, err := archive.Status()
	require.NoError(t, err)
	require.Equal(t, client.Refused, st.State)
	require.Equal(t, []int{2, 1}, []int{st.LastSequence, st.Acknowledged})
}

// A hub that keeps no members of several systems says so, and a migrated one takes what
// has waited.
func TestAHubThatIsNotMigrated(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{IngestVersion: 57})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	spool := open(t, newGate(t, d))
	a, b := add(t, spool, kit.NewSession(1, "app")), add(t, spool, kit.NewSession(2, "app"))
	v1, err := spool.OpenArchive(client.ArchiveSpec{ConversationID: "c-1", Route: "orders", Members: []client.Member{{Session: a}, {Session: b}}})
	require.NoError(t, err)
	v2, err := spool.OpenArchive(client.ArchiveSpec{ConversationID: "c-2", Members: []client.Member{
		{Session: a, Route: "orders"}, {Session: b, Route: "orders"},
	}})
	require.NoError(t, err)
	for _, archive := range []*client.Archive{v1, v2} {
		_, err := archive.Append(client.StartTurn("turn-1"), client.UserSaid("turn-1", kit.Text(1)))
		require.NoError(t, err)
	}
	require.NoError(t, v1.Sync(ctx))
	require.ErrorIs(t, v2.Sync(ctx), client.ErrUnsupported)
	st, err := v2.Status()
	require.NoError(t, err)
	require.Equal(t, client.Unsupported, st.State)
	require.False(t, st.Archived())
	d.MigrateIngest(0)
	kit.Eventually(t, patience, func() error { return v2.Sync(ctx) })
	st, err = v2.Status()
	require.NoError(t, err)
	require.True(t, st.Archived())
	d.WaitFor(t, st.HubID, 2)
}

// Where there is no archive API at all, that is said too.
func TestAServiceThatIsNoHub(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	hub, err := client.NewHub(d.Auditview.URL)
	require.NoError(t, err)
	spool, err := client.OpenSpool(filepath.Join(t.TempDir(), "spool"), hub)
	require.NoError(t, err)
	defer func() { require.NoError(t, spool.Close()) }()
	session := add(t, spool, kit.NewSession(1, "app"))
	archive, err := spool.OpenArchive(client.ArchiveSpec{ConversationID: "c", Route: "orders", Members: []client.Member{{Session: session}}})
	require.NoError(t, err)
	_, err = archive.Append(client.StartTurn("turn-1"))
	require.NoError(t, err)
	require.ErrorIs(t, archive.Sync(t.Context()), client.ErrUnsupported)
	_, err = session.Workspaces(t.Context(), nil)
	require.ErrorIs(t, err, client.ErrUnsupported)
}
