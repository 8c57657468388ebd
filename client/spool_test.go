package client_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"verbatim.internal/client"
)

func TestASpoolIsForItsOwnerAndOneProcess(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	info, err := os.Stat(b.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, err = client.OpenSpool(b.path, b.clientHub)
	require.ErrorIs(t, err, client.ErrLocked)
	require.NoError(t, b.spool.Close())
	require.NoError(t, os.Chmod(b.path, 0o640))
	_, err = client.OpenSpool(b.path, b.clientHub)
	require.ErrorIs(t, err, client.ErrSpool)
}

func TestASpoolBelongsToOneHub(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	require.NoError(t, b.spool.Close())
	_, err := client.OpenSpool(b.path, newHub(t, "https://elsewhere.example.com"))
	require.ErrorIs(t, err, client.ErrSpool)
	b.reopen(t)
	require.Equal(t, b.clientHub, b.spool.Hub())
}

func TestWhatIsNoSpoolIsLeftAlone(t *testing.T) {
	t.Parallel()
	hub := newHub(t, "http://127.0.0.1:1")
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("not a database, whatever its length may be"), 0o600))
	_, err := client.OpenSpool(text, hub)
	require.ErrorIs(t, err, client.ErrSpool)
	other := filepath.Join(t.TempDir(), "other")
	db, err := bbolt.Open(other, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("another"))
		return err
	}))
	require.NoError(t, db.Close())
	_, err = client.OpenSpool(other, hub)
	require.ErrorIs(t, err, client.ErrSpool)
	_, err = client.OpenSpool(filepath.Join(t.TempDir(), "no", "directory"), hub)
	require.ErrorIs(t, err, client.ErrSpool)
}

func TestAClosedSpoolSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.alone(t)
	require.NoError(t, b.spool.Close())
	_, err := a.Append(client.StartTurn("turn-1"))
	require.ErrorIs(t, err, client.ErrClosed)
	require.ErrorIs(t, a.Sync(t.Context()), client.ErrClosed)
	_, err = a.Status()
	require.ErrorIs(t, err, client.ErrClosed)
	require.ErrorIs(t, b.spool.Run(t.Context(), nil), client.ErrClosed)
}

func TestHubsArePlainOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"https://hub.example.com": true, "https://hub.example.com/verbatim/": true, "http://127.0.0.1:8080": true,
		"http://localhost:8080": true, "http://[::1]:8080": true, "http://127.8.9.1": true,
		"http://hub.example.com": false, "http://10.0.0.1": false, "http://localhost.example.com": false, "http://127.0.0.1.example.com": false,
		"ftp://127.0.0.1": false, "https://user:secret@hub.example.com": false, "https://hub.example.com?a=b": false,
		"https://hub.example.com#a": false, "https://": false, "hub.example.com": false, "": false, "https://%zz": false,
	} {
		_, err := client.NewHub(address)
		if ok {
			require.NoError(t, err, address)
		} else {
			require.ErrorIs(t, err, client.ErrInvalid, address)
		}
	}
}

func TestSessionsAreKept(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	other := tokensOf(b.crmGrant)
	other.ClientAppID = "erp-demo"
	_, err := b.spool.AddSession(t.Context(), other)
	require.ErrorIs(t, err, client.ErrConflict)
	for _, change := range []func(*client.Tokens){
		func(s *client.Tokens) { s.SessionID = "a" },
		func(s *client.Tokens) { s.ClientAppID = "A" },
		func(s *client.Tokens) { s.AccessToken = client.Token{} },
		func(s *client.Tokens) { s.AccessToken = client.NewToken("a\r\nHost: b") },
		func(s *client.Tokens) { s.RefreshToken = client.NewToken("é") },
	} {
		bad := tokensOf(b.crmGrant)
		change(&bad)
		_, err := b.spool.AddSession(t.Context(), bad)
		require.ErrorIs(t, err, client.ErrInvalid)
	}
	same, err := b.spool.AddSession(t.Context(), tokensOf(b.crmGrant))
	require.NoError(t, err)
	require.Same(t, b.crm, same)
	_, err = b.spool.Session("123e4567-e89b-42d3-a456-426614174009")
	require.ErrorIs(t, err, client.ErrNotFound)
	b.reopen(t)
	require.Len(t, b.spool.Sessions(), 2)
	require.Equal(t, "crm-demo", b.crm.ClientAppID())
	require.Equal(t, b.crmGrant.SessionID, b.crm.ID())
}
