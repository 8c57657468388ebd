package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/client/internal/hubtest"
)

// clock is a clock that tests move.
type clock struct{ nanoseconds atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanoseconds.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanoseconds.Load()) }
func (c *clock) advance(d time.Duration) { c.nanoseconds.Add(int64(d)) }

// clocked is a bundle whose hub and client read one clock, with erp's tokens fresh.
func clocked(t *testing.T) (*testBundle, *clock) {
	t.Helper()
	c := newClock()
	b := setup(t, client.Hooks{Clock: c.now})
	b.hub.SetClock(c.now)
	b.hub.ExpireAccess(b.erp.ID())
	info(t, b.erp)
	return b, c
}

func info(t *testing.T, s *client.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := s.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, s.ID(), got.SessionID)
}

func rotations(b *testBundle) int { return len(b.hub.Requests("/token")) }

func TestARefusedTokenIsRefreshedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	b.hub.ExpireAccess(b.erp.ID())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { info(t, b.erp) })
	}
	all.Wait()
	require.Equal(t, 1, rotations(b))
	require.False(t, b.hub.Revoked(b.erp.ID()))
	b.reopen(t)
	info(t, b.erp)
	require.Equal(t, 1, rotations(b), "the new pair was not kept")
}

func TestTokensAreRefreshedBeforeTheyEnd(t *testing.T) {
	t.Parallel()
	b, c := clocked(t)
	c.advance(599 * time.Second)
	info(t, b.erp)
	require.Equal(t, 1, rotations(b))
	c.advance(2 * time.Second) // less than a third of 900 seconds is left
	info(t, b.erp)
	require.Equal(t, 2, rotations(b))
	require.Equal(t, []string{"401 unauthorized"}, b.hub.Refusals())
}

// The answer of a rotation is lost: it is repeated while that is allowed, and the agent
// goes on with the pair that it got last.
func TestALostRotationIsRepeatedInTime(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]hubtest.Fault{
		"before": {Lost: true}, "after": {Lost: true, Done: true}, "502": {Status: 502}, "nonsense": {Body: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := clocked(t)
			b.hub.OnRequest(failOnce("/token", fault))
			b.hub.ExpireAccess(b.erp.ID())
			info(t, b.erp)
			require.Equal(t, 3, rotations(b))
			require.False(t, b.hub.Revoked(b.erp.ID()))
		})
	}
}

// Later than that, a token of which nobody knows whether it was used is left alone for as
// long as the access token lives: its return would revoke the session.
func TestALostRotationIsNotRepeatedTooLate(t *testing.T) {
	t.Parallel()
	b, c := clocked(t)
	c.advance(700 * time.Second)
	b.hub.OnRequest(func(r *http.Request) hubtest.Fault {
		if strings.HasSuffix(r.URL.Path, "/token") {
			c.advance(11 * time.Second)
			return hubtest.Fault{Lost: true, Done: true}
		}
		return hubtest.Fault{}
	})
	info(t, b.erp) // with the old token
	require.Equal(t, 2, rotations(b))
	b.hub.OnRequest(nil)
	for range 3 {
		c.advance(40 * time.Second)
		b.reopen(t)
		info(t, b.erp)
	}
	require.Equal(t, 2, rotations(b))
	require.False(t, b.hub.Revoked(b.erp.ID()))
	b.hub.ExpireAccess(b.erp.ID())
	_, err := b.erp.Info(t.Context())
	require.ErrorIs(t, err, client.ErrReauthorize, "now nothing else is left")
}

// A rotation that certainly did not happen may be repeated whenever it is.
func TestAHubThatIsDownCostsNoSession(t *testing.T) {
	t.Parallel()
	b, c := clocked(t)
	var down atomic.Bool
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if down.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}, DisableKeepAlives: true}
	hub, err := client.NewHub(b.hub.URL, client.WithHTTPClient(&http.Client{Transport: transport}), client.WithBackoff(time.Millisecond, time.Millisecond))
	require.NoError(t, err)
	b.clientHub = hub
	b.reopen(t)
	for range 3 {
		c.advance(700 * time.Second)
		down.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := b.erp.Info(ctx)
		cancel()
		require.ErrorIs(t, err, client.ErrUnavailable)
		down.Store(false)
		c.advance(time.Minute)
		before := rotations(b)
		info(t, b.erp)
		require.Equal(t, before+1, rotations(b))
	}
	b.hub.OnRequest(failOnce("/token", hubtest.Fault{Status: 429, Code: "rate_limited"}))
	c.advance(700 * time.Second)
	info(t, b.erp) // with the old token
	c.advance(time.Minute)
	before := rotations(b)
	info(t, b.erp)
	require.Equal(t, before+1, rotations(b))
	require.False(t, b.hub.Revoked(b.erp.ID()))
}

func TestASessionThatIsOverHasToBeAuthorizedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	require.NoError(t, b.crm.Revoke(t.Context()))
	_, err := b.crm.Info(t.Context())
	require.ErrorIs(t, err, client.ErrReauthorize)
	var again *client.ReauthorizeError
	require.ErrorAs(t, err, &again)
	require.Equal(t, b.crm.ID(), again.SessionID)

	mine := b.alone(t)
	mustAppend(t, mine, turn("turn-1", 3)...)
	b.hub.Revoke(b.erp.ID())
	require.ErrorIs(t, mine.Sync(t.Context()), client.ErrReauthorize)
	require.Equal(t, client.Pending, status(t, mine).State, "that is no refusal of the archive")
	require.Len(t, stored(t, mine), 3)
}

func TestASessionWithoutARefreshToken(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	g := b.hub.AddSession("till", "orders")
	g.Refresh = ""
	s := b.add(t, g)
	info(t, s)
	b.hub.ExpireAccess(s.ID())
	_, err := s.Info(t.Context())
	require.ErrorIs(t, err, client.ErrReauthorize)
	require.Zero(t, rotations(b))
}

func TestNoBearerFollowsARedirect(t *testing.T) {
	t.Parallel()
	b, elsewhere := setup(t, client.Hooks{}), hubtest.Start()
	defer elsewhere.Close()
	b.hub.OnRequest(failOnce("/session", hubtest.Fault{Status: http.StatusTemporaryRedirect, Location: elsewhere.URL + "/agent-auth/v1/session"}))
	info(t, b.erp)
	require.Len(t, b.hub.Requests("/session"), 2)
	require.Empty(t, elsewhere.Requests(""))
}

func TestTokensDoNotPrint(t *testing.T) {
	t.Parallel()
	const secret = "bha_never-to-be-seen"
	token := client.NewToken(secret)
	wrapped := client.Tokens{SessionID: "a", AccessToken: token, RefreshToken: token}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
		_, _ = fmt.Fprintf(&out, verb+verb+verb, token, &token, wrapped)
	}
	_, _ = fmt.Fprint(&out, token.String(), token.GoString())
	encoded, err := json.Marshal(wrapped)
	require.NoError(t, err)
	out.Write(encoded)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "token", token, "wrapped", wrapped)
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "token", token, "wrapped", wrapped)
	require.NotContains(t, out.String(), "never")
	require.NotContains(t, out.String(), fmt.Sprintf("%x", secret))
	require.Contains(t, out.String(), "[redacted]")
}

// What goes wrong names neither a token nor a text.
func TestErrorsHoldNoSecret(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.alone(t)
	mustAppend(t, a, client.StartTurn("turn-1"), client.UserSaid("turn-1", "never to be seen"))
	b.hub.OnRequest(func(*http.Request) hubtest.Fault { return hubtest.Fault{Lost: true} })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := a.Sync(ctx)
	require.ErrorIs(t, err, client.ErrUnavailable)
	for _, secret := range []string{"never", b.erpGrant.Access, b.erpGrant.Refresh} {
		require.NotContains(t, err.Error(), secret)
	}
	content, err := os.ReadFile(b.path)
	require.NoError(t, err)
	require.Contains(t, string(content), b.erpGrant.Access, "the file is the one place that has it")
}
