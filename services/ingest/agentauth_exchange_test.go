package ingest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sessions counts the sessions that there are.
func (b *authBundle) sessions(t *testing.T) int {
	t.Helper()
	return b.count(t, `select count(*) from bz_agent_sessions`)
}

func TestOnlyWhoAskedExchangesTheCode(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	id := b.ask(t, a)
	pending := a.exchanging("bhc_PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP")
	code := b.approve(t, a, id)
	right := a.exchanging(code)
	for name, body := range map[string]authBody{
		"an unknown code": pending, "another client": right.with("client_app_id", "other"), "an unknown client": right.with("client_app_id", "nobody"), "a client that is no key": right.with("client_app_id", "a\x00"),
		"another redirect": right.with("redirect_uri", "http://127.0.0.1:4711/callback"), "no redirect": right.with("redirect_uri", ""),
		"another verifier": right.with("code_verifier", newAsker().verifier), "no verifier": right.with("code_verifier", ""), "the challenge": right.with("code_verifier", a.asking()["code_challenge"]),
		"a code in lower case": right.with("code", strings.ToLower(code)), "a long code": right.with("code", code+"A"), "an empty code": right.with("code", ""),
	} {
		r := b.post(t, "/token", "", body.json(t))
		require.Equal(t, http.StatusBadRequest, r.status, name)
		require.Equal(t, "invalid_grant", r.code(), name)
		require.Equal(t, "no-cache", r.header.Get("Pragma"))
	}
	for _, body := range []authBody{right.without("code"), right.without("code_verifier"), right.with("scope", "x"), right.with("refresh_token", "x"), right.with("code", 1), right.without("grant_type"), right.with("grant_type", nil)} {
		wantAuthRefused(t, b.post(t, "/token", "", body.json(t)), http.StatusBadRequest, "invalid_request")
	}
	for _, body := range []authBody{right.with("grant_type", "password"), {"grant_type": "client_credentials", "client_secret": nil}, {"grant_type": ""}} {
		wantAuthRefused(t, b.post(t, "/token", "", body.json(t)), http.StatusBadRequest, "unsupported_grant_type")
	}
	b.exec(t, `update bz_clients set enabled = false where app_id = 'shop'`)
	wantAuthRefused(t, b.post(t, "/token", "", right.json(t)), http.StatusBadRequest, "invalid_grant")
	b.exec(t, `update bz_clients set enabled = true where app_id = 'shop'`)
	b.exec(t, `update bz_agent_authorizations set code_expires_at = now() + interval '1 hour' where authorization_id = $1`, id)
	require.Zero(t, b.sessions(t))
	require.Equal(t, http.StatusOK, b.post(t, "/token", "", right.json(t)).status, "none of these consumed the code")
}

func TestACodeLivesTwoMinutesAndWorksOnce(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	id := b.ask(t, a)
	code := b.approve(t, a, id)
	require.Equal(t, 1, b.count(t, `select count(*) from bz_agent_authorizations where code_expires_at = decided_at + interval '2 minutes'`))
	b.exec(t, `update bz_agent_authorizations set code_expires_at = now()`)
	wantAuthRefused(t, b.post(t, "/token", "", a.exchanging(code).json(t)), http.StatusBadRequest, "invalid_grant")
	b.exec(t, `update bz_agent_authorizations set code_expires_at = now() + interval '2 minutes'`)
	tokens := b.post(t, "/token", "", a.exchanging(code).json(t))
	require.Equal(t, http.StatusOK, tokens.status)
	for range 3 { // a replay is refused, and touches nothing
		wantAuthRefused(t, b.post(t, "/token", "", a.exchanging(code).json(t)), http.StatusBadRequest, "invalid_grant")
	}
	require.Equal(t, 1, b.sessions(t))
	require.Equal(t, http.StatusOK, b.session(t, tokens).status)
	require.Equal(t, http.StatusOK, b.refresh(t, a, tokens).status)
	require.Equal(t, []string{"created by client shop"}, b.changes(t, tokens.text("session_id")))
	require.Equal(t, "consumed", b.call(t, http.MethodGet, "/authorizations/"+id, authShop, "").text("status"))
}

func TestOfParallelExchangesOneWins(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	body := a.exchanging(b.approve(t, a, b.ask(t, a))).json(t)
	answers := b.parallel(t, 12, func() authReply { return b.post(t, "/token", "", body) })
	var won []authReply
	for _, r := range answers {
		if r.status == http.StatusOK {
			won = append(won, r)
		} else {
			wantAuthRefused(t, r, http.StatusBadRequest, "invalid_grant")
		}
	}
	require.Len(t, won, 1)
	require.Equal(t, 1, b.sessions(t))
	require.Equal(t, http.StatusOK, b.session(t, won[0]).status)
	require.Equal(t, http.StatusOK, b.refresh(t, a, won[0]).status)
}

// What ended more than a day ago is removed, a few at a time, with its access tokens.
func TestTokensOfSessionsThatAreOverAreRemoved(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	over, longer, running := b.authorize(t, a), b.authorize(t, a), b.authorize(t, a)
	tokens := func(r authReply) (n int) {
		return b.count(t, `select (select count(*) from bz_agent_refresh_tokens where session_id = $1) + (select count(*) from bz_agent_session_tokens where session_id = $1)`, r.text("session_id"))
	}
	b.exec(t, `update bz_agent_refresh_tokens set expires_at = now() - interval '25 hours' where session_id in ($1, $2)`, over.text("session_id"), longer.text("session_id"))
	b.exec(t, `update bz_agent_sessions set refresh_expires_at = now() - interval '25 hours' where session_id = $1`, over.text("session_id"))
	b.authorize(t, a)
	require.Equal(t, []int{0, 2, 2}, []int{tokens(over), tokens(longer), tokens(running)}, "a session that was given longer since keeps its tokens")
}
