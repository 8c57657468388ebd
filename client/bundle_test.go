package client_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/client/internal/hubtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childSpool) != "" {
		os.Exit(child())
	}
	// Each check is a whole agent with its hub; -rapid.checks asks for more.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// patience bounds what must come in a moment.
const patience = 30 * time.Second

// testBundle is a hub, a spool and two sessions of different clients.
type testBundle struct {
	hub   *hubtest.Hub
	path  string
	spool *client.Spool
	// crm and erp are on routes customers and orders.
	crm, erp           *client.Session
	crmGrant, erpGrant hubtest.Grant
	hooks              client.Hooks
	clientHub          *client.Hub
}

// setup leaves the fsync out, which takes most of the time and shows only when a machine
// dies; the agents that are killed (kill_test.go) and the examples have it.
func setup(t *testing.T, hooks client.Hooks) *testBundle {
	t.Helper()
	hooks.NoSync = true
	b := &testBundle{hub: hubtest.Start(), path: filepath.Join(t.TempDir(), "spool"), hooks: hooks}
	t.Cleanup(b.hub.Close)
	b.clientHub = newHub(t, b.hub.URL)
	b.open(t)
	t.Cleanup(func() { _ = b.spool.Close() })
	b.crmGrant, b.erpGrant = b.hub.AddSession("crm-demo", "customers"), b.hub.AddSession("erp-demo", "orders", "returns")
	b.crm, b.erp = b.add(t, b.crmGrant), b.add(t, b.erpGrant)
	return b
}

func newHub(t *testing.T, url string) *client.Hub {
	t.Helper()
	hub, err := client.NewHub(url, client.WithBackoff(time.Millisecond, 5*time.Millisecond))
	require.NoError(t, err)
	return hub
}

// open opens the spool, as the next process would.
func (b *testBundle) open(t *testing.T) {
	t.Helper()
	var err error
	b.spool, err = client.OpenHooked(b.path, b.clientHub, b.hooks)
	require.NoError(t, err)
}

// reopen closes the spool and opens it again.
func (b *testBundle) reopen(t *testing.T) {
	t.Helper()
	require.NoError(t, b.spool.Close())
	b.open(t)
	var err error
	b.crm, err = b.spool.Session(b.crmGrant.SessionID)
	require.NoError(t, err)
	b.erp, err = b.spool.Session(b.erpGrant.SessionID)
	require.NoError(t, err)
}

func (b *testBundle) add(t *testing.T, g hubtest.Grant) *client.Session {
	t.Helper()
	session, err := b.spool.AddSession(t.Context(), tokensOf(g))
	require.NoError(t, err)
	return session
}

func tokensOf(g hubtest.Grant) client.Tokens {
	return client.Tokens{
		SessionID: g.SessionID, ClientAppID: g.ClientAppID,
		AccessToken: client.NewToken(g.Access), RefreshToken: client.NewToken(g.Refresh),
	}
}

// both is the archive of one conversation of both sessions; erp writes.
func (b *testBundle) both() client.ArchiveSpec {
	return client.ArchiveSpec{ConversationID: "conversation-1", Members: []client.Member{
		{Session: b.erp, Route: "orders", Label: "ERP account"},
		{Session: b.crm, Route: "customers"},
	}}
}

func (b *testBundle) archive(t *testing.T, spec client.ArchiveSpec) *client.Archive {
	t.Helper()
	a, err := b.spool.OpenArchive(spec)
	require.NoError(t, err)
	return a
}

// alone is the archive of erp alone.
func (b *testBundle) alone(t *testing.T) *client.Archive {
	t.Helper()
	return b.archive(t, client.ArchiveSpec{ConversationID: "conversation-1", Route: "orders", Members: []client.Member{{Session: b.erp}}})
}

// turn is a turn of size events, at least 2.
func turn(id string, size int) []client.Event {
	events := []client.Event{client.StartTurn(id)}
	for i := range size - 2 {
		events = append(events, client.UserSaid(id, fmt.Sprintf("%s, text %d: é 原文 👩‍👧\n<b>&amp;</b>", id, i)))
	}
	return append(events, client.EndTurn(id, client.Completed))
}

func mustAppend(t *testing.T, a *client.Archive, events ...client.Event) []client.Event {
	t.Helper()
	stored, err := a.Append(events...)
	require.NoError(t, err)
	return stored
}

func mustSync(t *testing.T, a *client.Archive) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, a.Sync(ctx))
}

func status(t *testing.T, a *client.Archive) client.Status {
	t.Helper()
	st, err := a.Status()
	require.NoError(t, err)
	return st
}

func stored(t require.TestingT, a *client.Archive) []client.Event {
	events, err := a.Events(0, client.MaxEvents)
	require.NoError(t, err)
	return events
}

// transcript is what the hub holds of an archive, as events of the client's.
func (b *testBundle) transcript(archiveID string) []client.Event {
	var events []client.Event
	for _, e := range b.hub.Transcript(archiveID) {
		events = append(events, client.Event{
			ID: e.EventID, Sequence: e.Sequence, TurnID: e.ClientTurnID, Kind: client.Kind(e.Kind), Content: e.Content,
			Status: client.TurnStatus(e.Status), RunID: e.RunID, MemberSessionID: e.MemberSessionID,
		})
	}
	return events
}
