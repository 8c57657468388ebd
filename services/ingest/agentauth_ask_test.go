package ingest_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestsOfAnotherShapeAskNobody(t *testing.T) {
	t.Parallel()
	b := setupAuth(t, 0, nil)
	right := newAsker().asking()
	bodies := map[string]authBody{
		"another scheme": right.with("redirect_uri", "https://127.0.0.1:1"), "a name": right.with("redirect_uri", "http://localhost:1"),
		"no port": right.with("redirect_uri", "http://127.0.0.1/"), "user info": right.with("redirect_uri", "http://u@127.0.0.1:1"),
		"a fragment": right.with("redirect_uri", "http://[::1]:1/#f"), "another host": right.with("redirect_uri", "http://127.0.0.1:1@evil.example/"),
		"code in the query": right.with("redirect_uri", "http://127.0.0.1:1/?code=1"), "a long redirect": right.with("redirect_uri", "http://127.0.0.1:1/"+strings.Repeat("a", 2048)),
		"a short state": right.with("state", "1234567"), "a long state": right.with("state", strings.Repeat("s", 513)), "a control in the state": right.with("state", "12345678\n"),
		"no routes": right.with("requested_routes", []string{}), "65 routes": right.with("requested_routes", manyRoutes(65)), "a route twice": right.with("requested_routes", []string{"orders", "orders"}),
		"auto": right.with("requested_routes", []string{"auto"}), "a star": right.with("requested_routes", []string{"*"}), "a route that is a number": right.with("requested_routes", []int{1}),
		"a blank label": right.with("device_label", " "), "a long label": right.with("device_label", strings.Repeat("l", 129)), "a NUL in the label": right.with("device_label", "a\x00b"),
		"a short challenge": right.with("code_challenge", strings.Repeat("c", 42)), "a padded challenge": right.with("code_challenge", strings.Repeat("c", 42)+"="),
		"the plain method": right.with("code_challenge_method", "plain"), "a client that is no key": right.with("client_app_id", "Shop"), "a client that is null": right.with("client_app_id", nil),
		"a scope": right.with("scope", "all"), "a secret": right.with("client_secret", "x"),
	}
	for field := range right {
		bodies["no "+field] = right.without(field)
	}
	for name, body := range bodies {
		r := b.post(t, "/authorizations", "", body.json(t))
		require.Equal(t, http.StatusBadRequest, r.status, name)
		require.Equal(t, "invalid_request", r.code(), name)
	}
	for name, body := range map[string]authBody{
		"an unknown client": right.with("client_app_id", "nobody"), "a disabled client": right.with("client_app_id", "closed"), "a client without a page": right.with("client_app_id", "bare"),
		"a route that is not the client's": right.with("requested_routes", []string{"orders", "stock"}),
	} {
		r := b.post(t, "/authorizations", "", body.json(t))
		require.Equal(t, http.StatusBadRequest, r.status, name)
		require.Equal(t, "invalid_client", r.code(), name)
	}
	require.Zero(t, b.count(t, `select count(*) from bz_agent_authorizations`))
	for _, body := range []authBody{
		right.with("redirect_uri", "http://[::1]:65535"), right.with("state", strings.Repeat("é", 512)), right.with("device_label", "x"),
		right.with("client_app_id", "other").with("requested_routes", manyRoutes(64)),
	} {
		require.Equal(t, http.StatusCreated, b.post(t, "/authorizations", "", body.json(t)).status)
	}
}

func manyRoutes(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("route-%d", i)
	}
	return keys
}

// askedNow makes all that was asked the latest minute's, however busy the machine is.
func (b *authBundle) askedNow(t *testing.T) {
	t.Helper()
	b.exec(t, `update bz_agent_authorizations set created_at = now()`)
}

// askFrom asks with X-Forwarded-For.
func (b *authBundle) askFrom(t *testing.T, a asker, forwarded string) authReply {
	t.Helper()
	return b.call(t, http.MethodPost, "/authorizations", "", a.asking().json(t), "X-Forwarded-For", forwarded)
}

func TestAskingIsBoundedPerClientAndAddress(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	for range 10 {
		require.Equal(t, http.StatusCreated, b.post(t, "/authorizations", "", a.asking().json(t)).status)
		require.Equal(t, http.StatusBadRequest, b.post(t, "/authorizations", "", a.asking().with("state", "").json(t)).status, "what is refused does not count")
	}
	b.askedNow(t)
	limited := b.post(t, "/authorizations", "", a.asking().json(t))
	wantAuthRefused(t, limited, http.StatusTooManyRequests, "rate_limited")
	wait, err := strconv.Atoi(limited.header.Get("Retry-After"))
	require.NoError(t, err)
	require.True(t, 1 <= wait && wait <= 60, wait)
	// Nobody is believed to forward for others.
	for _, header := range []string{"X-Forwarded-For", "X-Real-IP", "Forwarded", "CF-Connecting-IP"} {
		r := b.call(t, http.MethodPost, "/authorizations", "", a.asking().json(t), header, "203.0.113.9")
		wantAuthRefused(t, r, http.StatusTooManyRequests, "rate_limited")
	}
	require.Equal(t, 10, b.count(t, `select count(*) from bz_agent_authorizations where address = '127.0.0.1'`))
	other := a
	other.client = "other"
	require.Equal(t, http.StatusCreated, b.post(t, "/authorizations", "", other.asking().json(t)).status, "each client has its own bound")

	b.askedNow(t)
	// The minute slides: one that is over makes room for one.
	b.exec(t, `update bz_agent_authorizations set created_at = created_at - interval '1 minute' where authorization_id =
		(select authorization_id from bz_agent_authorizations where client_app_id = 'shop' order by created_at limit 1)`)
	require.Equal(t, http.StatusCreated, b.post(t, "/authorizations", "", a.asking().json(t)).status)
	wantAuthRefused(t, b.post(t, "/authorizations", "", a.asking().json(t)), http.StatusTooManyRequests, "rate_limited")
}

func TestATrustedProxySaysWhoAsks(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, map[string]string{"VERBATIM_INGEST_TRUSTED_PROXIES": "127.0.0.1/32,10.0.0.0/8"}), newAsker()
	for i := range 10 {
		// What a client wrote before the proxy added its address is not believed.
		r := b.askFrom(t, a, fmt.Sprintf("198.51.100.%d, 203.0.113.9, 10.1.2.3", i))
		require.Equal(t, http.StatusCreated, r.status)
	}
	b.askedNow(t)
	wantAuthRefused(t, b.askFrom(t, a, "203.0.113.9"), http.StatusTooManyRequests, "rate_limited")
	wantAuthRefused(t, b.askFrom(t, a, "::ffff:203.0.113.9"), http.StatusTooManyRequests, "rate_limited")
	require.Equal(t, http.StatusCreated, b.askFrom(t, a, "203.0.113.10").status)
	b.call(t, http.MethodPost, "/authorizations", "", a.asking().json(t), "X-Real-IP", "203.0.113.77")
	require.Zero(t, b.count(t, `select count(*) from bz_agent_authorizations where address = '203.0.113.77'`))

	// An IPv6 address is known by its /64.
	for i := range 10 {
		require.Equal(t, http.StatusCreated, b.askFrom(t, a, fmt.Sprintf("2001:db8:1:2::%x", i)).status)
	}
	b.askedNow(t)
	wantAuthRefused(t, b.askFrom(t, a, "2001:db8:1:2:ffff::1"), http.StatusTooManyRequests, "rate_limited")
	require.Equal(t, http.StatusCreated, b.askFrom(t, a, "2001:db8:1:3::1").status)
	require.Equal(t, 10, b.count(t, `select count(*) from bz_agent_authorizations where address = '2001:db8:1:2::/64'`))
}

func TestOldAuthorizationsAreRemoved(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	old, other := b.ask(t, a), b.ask(t, asker{client: "other", verifier: a.verifier})
	b.exec(t, `update bz_agent_authorizations set expires_at = now() - interval '25 hours'`)
	young := b.ask(t, a)
	require.Equal(t, 1, b.count(t, `select count(*) from bz_agent_authorizations where authorization_id = $1`, young))
	require.Equal(t, 1, b.count(t, `select count(*) from bz_agent_authorizations where authorization_id = $1`, other))
	require.Zero(t, b.count(t, `select count(*) from bz_agent_authorizations where authorization_id = $1`, old))
	wantAuthRefused(t, b.call(t, http.MethodGet, "/authorizations/"+old, authShop, ""), http.StatusNotFound, "authorization_not_found")
}
