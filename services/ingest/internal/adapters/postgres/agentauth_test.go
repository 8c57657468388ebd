package postgres_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/ingest/internal/adapters/postgres"
	"verbatim.internal/services/ingest/internal/adapters/system"
	"verbatim.internal/services/ingest/internal/app"
	"verbatim.internal/sql"
)

const redirect = "http://127.0.0.1:4711/"

var (
	verifier = rand.Text() + rand.Text()
	home     = netip.MustParseAddr("192.0.2.1")
)

// stopped is a clock that tests move. It is not for moving while it is read.
type stopped struct{ at time.Time }

func (c *stopped) Now() time.Time { return c.at }

// asleep is a relay that nobody has to wake.
type asleep struct{}

func (asleep) Wake(int) {}

// agentAuth are the use cases over a database, at a time that stands still.
type agentAuth struct {
	*app.AgentAuth
	clock *stopped
	db    *database.DB
}

func newAgentAuth(t *testing.T) *agentAuth {
	t.Helper()
	dsn := pgtest.New(t, database.Ingest, sql.FS, 0).ServiceDSN
	db, err := database.Open(t.Context(), database.Config{DSN: config.Secret(dsn), MaxConns: 16})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	clock := &stopped{time.Date(2030, time.January, 2, 3, 4, 5, 0, time.UTC)}
	registry := app.Registry{Clients: []app.RegistryClient{{
		Client:       identity.Client{AppID: "shop", Name: "Shop", AllowedRoutes: []string{"orders"}, Enabled: true},
		AuthorizeURL: "https://shop.example/",
	}}}
	_, err = app.ApplyRegistry(t.Context(), postgres.NewRegistry(db.Gorm, nil), clock, registry)
	require.NoError(t, err)
	auth := app.NewAgentAuth(postgres.NewAgentAuth(db.Gorm, asleep{}), postgres.NewAgentAuthReader(db.Gorm), clock, system.IDs{})
	return &agentAuth{AgentAuth: auth, clock: clock, db: db}
}

func (a *agentAuth) pass(d time.Duration) { a.clock.at = a.clock.at.Add(d) }

func request(t *testing.T) authorization.Request {
	t.Helper()
	sum := sha256.Sum256([]byte(verifier))
	r, err := authorization.NewRequest(authorization.Fields{
		ClientAppID: "shop", RedirectURI: redirect, State: "state-of-the-agent", RequestedRoutes: []string{"orders"}, DeviceLabel: "Laptop",
		CodeChallenge: base64.RawURLEncoding.EncodeToString(sum[:]), CodeChallengeMethod: "S256",
	})
	require.NoError(t, err)
	return r
}

func (a *agentAuth) ask(t *testing.T) identity.UUID {
	t.Helper()
	opened, err := a.Ask(t.Context(), request(t), home)
	require.NoError(t, err)
	return opened.ID
}

// approve returns the code.
func (a *agentAuth) approve(t *testing.T, id identity.UUID) (code string, err error) {
	t.Helper()
	grant, err := authorization.NewGrant(identity.Principal{ID: "operator-7", Roles: []string{}}, "operator-7", []string{"orders"})
	require.NoError(t, err)
	uri, err := a.Approve(t.Context(), "shop", id, grant)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(uri)
	require.NoError(t, err)
	return u.Query().Get("code"), nil
}

// authorize gives an agent a session.
func (a *agentAuth) authorize(t *testing.T) app.TokenPair {
	t.Helper()
	code, err := a.approve(t, a.ask(t))
	require.NoError(t, err)
	pair, err := a.Exchange(t.Context(), "shop", code, redirect, verifier)
	require.NoError(t, err)
	return pair
}

func (a *agentAuth) works(ctx context.Context, p app.TokenPair) bool {
	_, err := a.Session(ctx, p.AccessToken)
	return err == nil
}

func wantCode(t *testing.T, err error, code refusal.Code) {
	t.Helper()
	require.Equal(t, code, refusal.CodeOf(err), "%v", err)
}

// parallel runs fn n times at once.
func parallel(n int, fn func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { fn(i) })
	}
	group.Wait()
}

func TestTheBoundOnAskingIsExactInParallel(t *testing.T) {
	t.Parallel()
	a := newAgentAuth(t)
	r := request(t)
	for range 2 { // the second time a minute later
		errs := make([]error, 25)
		parallel(len(errs), func(i int) { _, errs[i] = a.Ask(t.Context(), r, home) })
		asked := 0
		for _, err := range errs {
			var limited *app.RateLimitError
			if err == nil {
				asked++
			} else if errors.As(err, &limited) {
				require.Equal(t, time.Minute, limited.After)
			} else {
				require.NoError(t, err)
			}
		}
		require.Equal(t, authorization.MaxAsked, asked)
		_, err := a.Ask(t.Context(), r, netip.MustParseAddr("192.0.2.2"))
		require.NoError(t, err, "another address has its own bound")
		a.pass(time.Minute - time.Microsecond)
		_, err = a.Ask(t.Context(), r, home)
		wantCode(t, err, refusal.RateLimited)
		a.pass(time.Microsecond)
	}
}

func TestTimesEndToTheMicrosecond(t *testing.T) {
	t.Parallel()
	a := newAgentAuth(t)
	inTime, late := a.ask(t), a.ask(t)
	a.pass(10*time.Minute - time.Microsecond)
	code, err := a.approve(t, inTime)
	require.NoError(t, err)
	a.pass(time.Microsecond)
	_, err = a.approve(t, late)
	wantCode(t, err, refusal.AuthorizationExpired)

	lateCode, err := a.approve(t, a.ask(t))
	require.NoError(t, err)
	a.pass(2*time.Minute - 2*time.Microsecond)
	pair, err := a.Exchange(t.Context(), "shop", code, redirect, verifier)
	require.NoError(t, err)
	a.pass(2 * time.Microsecond)
	_, err = a.Exchange(t.Context(), "shop", lateCode, redirect, verifier)
	wantCode(t, err, refusal.InvalidGrant)

	a.pass(15*time.Minute - 3*time.Microsecond)
	require.True(t, a.works(t.Context(), pair))
	a.pass(time.Microsecond)
	require.False(t, a.works(t.Context(), pair))

	a.pass(30*24*time.Hour - 15*time.Minute - time.Second)
	last, err := a.Refresh(t.Context(), "shop", pair.RefreshToken)
	require.NoError(t, err)
	require.Equal(t, last.RefreshExpiresIn, last.AccessExpiresIn)
	a.pass(last.RefreshExpiresIn)
	_, err = a.Refresh(t.Context(), "shop", last.RefreshToken)
	wantCode(t, err, refusal.InvalidGrant)
	require.False(t, a.works(t.Context(), last))
}

func TestALostAnswerMayBeHadForTenSeconds(t *testing.T) {
	t.Parallel()
	a := newAgentAuth(t)
	first := a.authorize(t)
	newest, err := a.Refresh(t.Context(), "shop", first.RefreshToken)
	require.NoError(t, err)
	for _, later := range []time.Duration{0, 4 * time.Second, 6 * time.Second} {
		a.pass(later)
		before := newest
		newest, err = a.Refresh(t.Context(), "shop", first.RefreshToken)
		require.NoError(t, err)
		require.False(t, a.works(t.Context(), before))
	}
	require.True(t, a.works(t.Context(), newest))
	a.pass(time.Microsecond)
	_, err = a.Refresh(t.Context(), "shop", first.RefreshToken)
	wantCode(t, err, refusal.InvalidGrant)
	require.False(t, a.works(t.Context(), newest), "the session is revoked")
	_, err = a.Refresh(t.Context(), "shop", newest.RefreshToken)
	wantCode(t, err, refusal.InvalidGrant)
}

// Whoever keeps showing a stolen token of a session that is over holds up no append of the client.
func TestARepeatedRevocationWaitsForNobody(t *testing.T) {
	t.Parallel()
	a := newAgentAuth(t)
	first := a.authorize(t)
	next, err := a.Refresh(t.Context(), "shop", first.RefreshToken)
	require.NoError(t, err)
	require.NoError(t, a.RevokeByToken(t.Context(), "shop", next.RefreshToken))
	a.pass(time.Minute)

	tx, err := a.db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `select pg_advisory_xact_lock_shared(bz_lock_key('client', 'shop'))`) // as an append does
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = a.Refresh(ctx, "shop", first.RefreshToken)
	wantCode(t, err, refusal.InvalidGrant)
	require.NoError(t, a.RevokeByToken(ctx, "shop", next.RefreshToken))
	require.NoError(t, a.RevokeOf(ctx, "shop", first.SessionID))
}

func TestOfParallelRefreshesOneTokenStaysValid(t *testing.T) {
	t.Parallel()
	a := newAgentAuth(t)
	first := a.authorize(t)
	pairs, errs := make([]app.TokenPair, 16), make([]error, 16)
	parallel(len(pairs), func(i int) { pairs[i], errs[i] = a.Refresh(t.Context(), "shop", first.RefreshToken) })
	var newest *app.TokenPair
	for i := range pairs {
		require.NoError(t, errs[i])
		if a.works(t.Context(), pairs[i]) {
			require.Nil(t, newest, "two are valid")
			newest = &pairs[i]
		}
	}
	require.NotNil(t, newest)
	for _, pair := range pairs {
		if pair != *newest {
			_, err := a.Refresh(t.Context(), "shop", pair.RefreshToken)
			wantCode(t, err, refusal.InvalidGrant)
		}
	}
	_, err := a.Refresh(t.Context(), "shop", newest.RefreshToken)
	require.NoError(t, err, "the session stands")
	var revoked int
	require.NoError(t, a.db.Pool.QueryRow(t.Context(), `select count(*) from bz_registry_changes where action = 'revoked'`).Scan(&revoked))
	require.Zero(t, revoked)
}

func TestOfParallelExchangesOneMakesASession(t *testing.T) {
	t.Parallel()
	a := newAgentAuth(t)
	code, err := a.approve(t, a.ask(t))
	require.NoError(t, err)
	pairs, errs := make([]app.TokenPair, 16), make([]error, 16)
	parallel(len(pairs), func(i int) { pairs[i], errs[i] = a.Exchange(t.Context(), "shop", code, redirect, verifier) })
	won := 0
	for i, err := range errs {
		if err != nil {
			wantCode(t, err, refusal.InvalidGrant)
			require.Zero(t, pairs[i])
			continue
		}
		won++
		require.True(t, a.works(t.Context(), pairs[i]))
	}
	require.Equal(t, 1, won)
	var sessions int
	require.NoError(t, a.db.Pool.QueryRow(t.Context(), `select count(*) from bz_agent_sessions`).Scan(&sessions))
	require.Equal(t, 1, sessions)
}
