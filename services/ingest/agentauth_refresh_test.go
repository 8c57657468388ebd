package ingest_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRefreshingRotatesAndExtendsNothing(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	first := b.authorize(t, a)
	before := b.session(t, first)
	b.exec(t, `update bz_agent_sessions set refresh_expires_at = refresh_expires_at - interval '10 days'`)
	second := b.refresh(t, a, first)
	require.Equal(t, http.StatusOK, second.status, "%v", second.body)
	require.Equal(t, "no-cache", second.header.Get("Pragma"))
	require.Equal(t, first.text("session_id"), second.text("session_id"), "an archive goes on")
	require.NotEqual(t, first.text("access_token"), second.text("access_token"))
	require.NotEqual(t, first.text("refresh_token"), second.text("refresh_token"))
	require.InDelta(t, 20*24*3600, second.body["refresh_expires_in"], 600)
	require.InEpsilon(t, 900.0, second.body["expires_in"], 0)

	after := b.session(t, second)
	require.Equal(t, wireTime(t, before, "refresh_expires_at").AddDate(0, 0, -10), wireTime(t, after, "refresh_expires_at"))
	require.Equal(t, before.body["created_at"], after.body["created_at"])
	require.Equal(t, before.body["principal"], after.body["principal"])
	require.Equal(t, http.StatusOK, b.session(t, first).status, "the access token from before lives to its own end")
	require.Equal(t, []string{"created by client shop"}, b.changes(t, first.text("session_id")))

	b.exec(t, `update bz_agent_session_tokens set access_expires_at = now() where token_hash = sha256($1::bytea)`, []byte(first.text("access_token")))
	require.Equal(t, http.StatusUnauthorized, b.session(t, first).status)
	third := b.refresh(t, a, second)
	require.Equal(t, http.StatusOK, third.status)
	require.Equal(t, 2, b.count(t, `select count(*) from bz_agent_session_tokens`), "the expired one is gone")

	// An access token never outlives its session.
	b.exec(t, `update bz_agent_sessions set refresh_expires_at = now() + interval '5 minutes'`)
	fourth := b.refresh(t, a, third)
	require.InDelta(t, 300, fourth.body["expires_in"], 120)
	require.Equal(t, fourth.body["refresh_expires_in"], fourth.body["expires_in"])
	last := b.session(t, fourth)
	require.Equal(t, last.text("refresh_expires_at"), last.text("expires_at"))
}

func TestOnlyItsClientRefreshesASessionThatStands(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	tokens := b.authorize(t, a)
	right := a.refreshing(tokens.text("refresh_token"))
	refused := func(body authBody) {
		t.Helper()
		wantAuthRefused(t, b.post(t, "/token", "", body.json(t)), http.StatusBadRequest, "invalid_grant")
	}
	refused(right.with("client_app_id", "other"))
	refused(right.with("client_app_id", "nobody"))
	refused(right.with("client_app_id", ""))
	refused(right.with("refresh_token", "bhr_UUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUU"))
	refused(right.with("refresh_token", tokens.text("access_token")))
	refused(right.with("refresh_token", ""))
	for _, body := range []authBody{right.without("refresh_token"), right.without("client_app_id"), right.with("scope", "x"), right.with("code", "x"), right.with("refresh_token", nil)} {
		wantAuthRefused(t, b.post(t, "/token", "", body.json(t)), http.StatusBadRequest, "invalid_request")
	}
	b.exec(t, `update bz_clients set enabled = false where app_id = 'shop'`)
	refused(right)
	b.exec(t, `update bz_clients set enabled = true where app_id = 'shop'`)
	b.exec(t, `update bz_agent_sessions set refresh_expires_at = now()`)
	refused(right)
	b.exec(t, `update bz_agent_sessions set refresh_expires_at = now() + interval '1 day'`)
	require.Equal(t, http.StatusOK, b.session(t, tokens).status, "nothing of it revoked the session")
	next := b.refresh(t, a, tokens)
	require.Equal(t, http.StatusOK, next.status, "nothing of it used the token")
	b.exec(t, `update bz_agent_sessions set revoked_at = now()`)
	wantAuthRefused(t, b.refresh(t, a, next), http.StatusBadRequest, "invalid_grant")
}

func TestALostAnswerIsGivenAnewInItsPlace(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	first := b.authorize(t, a)
	lost := b.refresh(t, a, first)
	b.exec(t, `update bz_agent_refresh_tokens set used_at = now() where used_at is not null`)
	again := b.refresh(t, a, first)
	require.Equal(t, http.StatusOK, again.status, "%v", again.body)
	require.Equal(t, http.StatusUnauthorized, b.session(t, lost).status, "the pair that was lost works no more")
	wantAuthRefused(t, b.refresh(t, a, lost), http.StatusBadRequest, "invalid_grant")
	require.Equal(t, http.StatusOK, b.session(t, again).status, "and its return revokes nothing")
	require.Equal(t, 2, b.count(t, `select count(*) from bz_agent_refresh_tokens`))

	b.exec(t, `update bz_agent_refresh_tokens set used_at = used_at - interval '11 seconds' where used_at is not null`)
	wantAuthRefused(t, b.refresh(t, a, first), http.StatusBadRequest, "invalid_grant")
	require.Equal(t, http.StatusUnauthorized, b.session(t, again).status)
	require.Equal(t, []string{"created by client shop", "revoked by system "}, b.changes(t, first.text("session_id")))
}

// stolen checks that the session is over, once.
func (b *authBundle) stolen(t *testing.T, a asker, first, newest authReply) {
	t.Helper()
	require.Equal(t, http.StatusUnauthorized, b.session(t, newest).status)
	wantAuthRefused(t, b.refresh(t, a, newest), http.StatusBadRequest, "invalid_grant")
	wantAuthRefused(t, b.refresh(t, a, first), http.StatusBadRequest, "invalid_grant")
	require.Equal(t, []string{"created by client shop", "revoked by system "}, b.changes(t, first.text("session_id")))
}

func TestAUsedTokenThatComesBackRevokesItsSession(t *testing.T) {
	t.Parallel()
	for name, come := range map[string]func(t *testing.T, b *authBundle, a asker, first, second authReply) authReply{
		"after the ten seconds": func(t *testing.T, b *authBundle, a asker, first, _ authReply) authReply {
			t.Helper()
			b.exec(t, `update bz_agent_refresh_tokens set used_at = used_at - interval '11 seconds' where used_at is not null`)
			return b.refresh(t, a, first)
		},
		"at once, but its successor was used": func(t *testing.T, b *authBundle, a asker, first, second authReply) authReply {
			t.Helper()
			require.Equal(t, http.StatusOK, b.refresh(t, a, second).status)
			return b.refresh(t, a, first)
		},
		"from another client": func(t *testing.T, b *authBundle, a asker, first, _ authReply) authReply {
			t.Helper()
			return b.post(t, "/token", "", a.refreshing(first.text("refresh_token")).with("client_app_id", "other").json(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, a := setupAuth(t, 0, nil), newAsker()
			bystander := b.authorize(t, a)
			first := b.authorize(t, a)
			second := b.refresh(t, a, first)
			require.Equal(t, http.StatusOK, second.status)
			wantAuthRefused(t, come(t, b, a, first, second), http.StatusBadRequest, "invalid_grant")
			b.stolen(t, a, first, second)
			require.Equal(t, http.StatusOK, b.refresh(t, a, bystander).status, "other sessions go on")
		})
	}
}

// Sessions of one client are refreshed and revoked side by side, and none waits for another
// in a circle.
func TestRefreshesAndRevocationsMayMeet(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	tokens := b.authorize(t, a)
	stolen := b.authorize(t, a)
	require.Equal(t, http.StatusOK, b.refresh(t, a, stolen).status)
	b.exec(t, `update bz_agent_refresh_tokens set used_at = used_at - interval '1 hour' where used_at is not null`)
	calls := []func() authReply{
		func() authReply { return b.refresh(t, a, tokens) },
		func() authReply { return b.refresh(t, a, stolen) },
		func() authReply { return b.post(t, "/sessions/"+stolen.text("session_id")+"/revoke", authShop, "{}") },
		func() authReply { return b.post(t, "/sessions/"+tokens.text("session_id")+"/revoke", authShop, "{}") },
	}
	var turn atomic.Int64
	for _, r := range b.parallel(t, 16, func() authReply { return calls[int(turn.Add(1))%len(calls)]() }) {
		require.Less(t, r.status, http.StatusInternalServerError, "%v", r.body)
	}
	require.Zero(t, b.count(t, `select count(*) from bz_agent_sessions where revoked_at is null`))
	for _, r := range []authReply{tokens, stolen} {
		require.Len(t, b.changes(t, r.text("session_id")), 2, "each is revoked once")
	}
}
