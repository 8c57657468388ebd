package ingest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/ingest"
)

func TestASessionIsShownToItsBearerOnly(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	tokens := b.authorize(t, a)
	unauthorized := func(token string, header ...string) {
		t.Helper()
		r := b.call(t, http.MethodGet, "/session", token, "", header...)
		require.Equal(t, http.StatusUnauthorized, r.status)
		require.Equal(t, "unauthorized", r.code())
		require.Equal(t, "Bearer", r.header.Get("WWW-Authenticate"))
	}
	for _, token := range []string{"", "bha_UUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUU", tokens.text("refresh_token"), authShop, tokens.text("access_token") + "x"} {
		unauthorized(token)
	}
	unauthorized("", "Authorization", "Basic "+tokens.text("access_token"))
	unauthorized(tokens.text("access_token"), "Authorization", "Bearer "+tokens.text("access_token"))
	in := b.call(t, http.MethodGet, "/session?access_token="+tokens.text("access_token"), "", "")
	require.Equal(t, http.StatusUnauthorized, in.status, "a query holds no token")

	b.exec(t, `update bz_clients set enabled = false where app_id = 'shop'`)
	unauthorized(tokens.text("access_token"))
	b.exec(t, `update bz_clients set enabled = true where app_id = 'shop'`)
	b.exec(t, `update bz_agent_session_tokens set access_expires_at = now()`)
	unauthorized(tokens.text("access_token"))

	// A declared session is shown too.
	_, err := ingest.Apply(t.Context(), config.Secret(b.db.ServiceDSN), []byte(declaredSession))
	require.NoError(t, err)
	declared := b.call(t, http.MethodGet, "/session", tokenA, "")
	require.Equal(t, http.StatusOK, declared.status)
	require.Equal(t, sessionA, declared.text("session_id"))
	require.Equal(t, map[string]any{"id": "op"}, declared.body["principal"])
	require.Equal(t, "2099-01-01T00:00:00.000Z", declared.text("expires_at"))
}

func TestEveryRevocationEndsTheSession(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	bearer := func(r authReply) string { return r.text("access_token") }
	nobody := func(authReply) string { return "" }
	byToken := func(r authReply) string {
		return authBody{"client_app_id": "shop", "refresh_token": r.text("refresh_token")}.json(t)
	}
	fixed := func(s string) func(authReply) string { return func(authReply) string { return s } }
	for name, tc := range map[string]struct {
		path, token, body func(authReply) string
		by                string
		again             int // status of the same call once more
	}{
		"own":         {fixed("/revoke"), bearer, fixed("{}"), "session ", http.StatusUnauthorized},
		"own, bare":   {fixed("/revoke"), bearer, fixed(""), "session ", http.StatusUnauthorized},
		"by token":    {fixed("/revoke"), nobody, byToken, "session ", http.StatusOK},
		"by a client": {func(r authReply) string { return "/sessions/" + strings.ToUpper(r.text("session_id")) + "/revoke" }, fixed(authShop), fixed("{}"), "client shop", http.StatusOK},
	} {
		tokens := b.authorize(t, a)
		session := tokens.text("session_id")
		r := b.post(t, tc.path(tokens), tc.token(tokens), tc.body(tokens))
		require.Equal(t, http.StatusOK, r.status, "%s: %v", name, r.body)
		require.Equal(t, map[string]any{"revoked": true}, r.body, name)
		require.Equal(t, http.StatusUnauthorized, b.session(t, tokens).status, name)
		wantAuthRefused(t, b.refresh(t, a, tokens), http.StatusBadRequest, "invalid_grant")
		require.Equal(t, tc.again, b.post(t, tc.path(tokens), tc.token(tokens), tc.body(tokens)).status, name)
		by := tc.by
		if by == "session " {
			by += session
		}
		require.Equal(t, []string{"created by client shop", "revoked by " + by}, b.changes(t, session), name)
		status, _ := bundle{service: b.service}.post(t, bearer(tokens), "", `{}`)
		require.Equal(t, http.StatusUnauthorized, status, name)
	}
}

func TestOnlyAKnownTokenOfTheClientRevokes(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	first := b.authorize(t, a)
	second := b.refresh(t, a, first)
	revoking := authBody{"client_app_id": "shop", "refresh_token": first.text("refresh_token")}
	for _, body := range []authBody{
		revoking.with("client_app_id", "other"), revoking.with("client_app_id", ""), revoking.with("refresh_token", "x"),
		revoking.with("refresh_token", "bhr_UUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUU"), revoking.with("refresh_token", first.text("access_token")),
	} {
		wantAuthRefused(t, b.post(t, "/revoke", "", body.json(t)), http.StatusBadRequest, "invalid_grant")
	}
	for _, body := range []authBody{{}, revoking.without("client_app_id"), revoking.without("refresh_token"), revoking.with("token_type_hint", "x")} {
		wantAuthRefused(t, b.post(t, "/revoke", "", body.json(t)), http.StatusBadRequest, "invalid_request")
	}
	wantAuthRefused(t, b.post(t, "/revoke", second.text("access_token"), revoking.json(t)), http.StatusBadRequest, "invalid_request")
	wantAuthRefused(t, b.post(t, "/revoke", "bha_UUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUU", revoking.json(t)), http.StatusUnauthorized, "unauthorized")
	wantAuthRefused(t, b.post(t, "/revoke", authShop, revoking.json(t)), http.StatusUnauthorized, "unauthorized")
	require.Equal(t, http.StatusOK, b.session(t, second).status)
	require.Equal(t, http.StatusOK, b.post(t, "/revoke", "", revoking.json(t)).status, "a used token is known")
	require.Equal(t, http.StatusUnauthorized, b.session(t, second).status)
}

// A revocation waits for an append that runs, and is in force for whatever comes after.
func TestARevocationWaitsForRunningAppends(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	tokens := b.authorize(t, a)
	running, err := b.owner.Begin(t.Context())
	require.NoError(t, err)
	_, err = running.Exec(t.Context(), `select pg_advisory_xact_lock_shared(bz_lock_key('client', 'shop'))`)
	require.NoError(t, err)
	answered := make(chan authReply)
	go func() { answered <- b.post(t, "/revoke", tokens.text("access_token"), "{}") }()
	b.awaitWaiting(t)
	require.Equal(t, http.StatusOK, b.session(t, tokens).status)
	require.NoError(t, running.Rollback(context.Background()))
	require.Equal(t, http.StatusOK, (<-answered).status)
	require.Equal(t, http.StatusUnauthorized, b.session(t, tokens).status)
}

// Whatever was issued or shown, nothing of it is logged or stored as it is.
func TestNothingSecretIsLoggedOrStored(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	code := b.approve(t, a, b.ask(t, a))
	secrets := []string{authShop, authOther, a.verifier, code}
	b.post(t, "/token", "", a.exchanging(code).with("code_verifier", a.verifier+"x").json(t))
	first := b.post(t, "/token", "", a.exchanging(code).json(t))
	second := b.refresh(t, a, first)
	b.post(t, "/token", "", a.exchanging(code).json(t))
	b.session(t, second)
	b.call(t, http.MethodGet, "/session", second.text("refresh_token"), "")
	b.call(t, http.MethodGet, "/authorizations/"+second.text("access_token")+"?code="+code, authShop, "")
	b.post(t, "/revoke", "", a.refreshing(second.text("refresh_token")).json(t))
	for _, r := range []authReply{first, second} {
		require.Equal(t, http.StatusOK, r.status)
		secrets = append(secrets, r.text("access_token"), r.text("refresh_token"))
	}
	// Failures are logged too.
	b.exec(t, `alter table bz_agent_refresh_tokens rename column used_at to used`)
	require.GreaterOrEqual(t, b.refresh(t, a, second).status, http.StatusInternalServerError)
	b.exec(t, `alter table bz_agent_refresh_tokens rename column used to used_at`)

	log := b.log.String()
	require.Contains(t, log, "/agent-auth/v1/token")
	require.Contains(t, log, "a request failed")
	for i, secret := range secrets {
		require.NotContains(t, log, secret, "secret %d", i)
		require.NotContains(t, log, secret[4:], "secret %d without its prefix", i)
	}
	for _, table := range []string{"bz_agent_authorizations", "bz_agent_refresh_tokens", "bz_agent_session_tokens", "bz_agent_sessions", "bz_registry_changes", "outbox"} {
		for i, secret := range secrets {
			require.Zero(t, b.count(t, `select count(*) from `+table+` r where strpos(r::text, $1) > 0`, secret[4:]), "secret %d in %s", i, table)
		}
	}
}
