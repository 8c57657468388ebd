package ingest_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestApprovalsOfAnotherShapeDecideNothing(t *testing.T) {
	t.Parallel()
	b := setupAuth(t, 0, nil)
	id := b.ask(t, newAsker())
	right := authBody{"id": "operator-7", "roles": []string{"buyer"}}
	bodies := map[string]authBody{
		"no on behalf of": authApproval.with("on_behalf_of", ""), "a long on behalf of": authApproval.with("on_behalf_of", strings.Repeat("o", 192)), "a NUL": authApproval.with("on_behalf_of", "a\x00"),
		"no routes": authApproval.with("allowed_routes", []string{}), "a star": authApproval.with("allowed_routes", []string{"*"}), "auto": authApproval.with("allowed_routes", []string{"auto"}),
		"a route twice": authApproval.with("allowed_routes", []string{"orders", "orders"}), "65 routes": authApproval.with("allowed_routes", manyRoutes(65)),
		"a scope": authApproval.with("scope", "x"), "a text as principal": authApproval.with("principal", "operator-7"), "no principal": authApproval.without("principal"),
	}
	for name, principal := range map[string]authBody{
		"no id": right.without("id"), "an empty id": right.with("id", ""), "a long id": right.with("id", strings.Repeat("i", 192)), "a control in the id": right.with("id", "a\nb"),
		"no roles": right.without("roles"), "an empty role": right.with("roles", []string{""}), "101 roles": right.with("roles", manyRoutes(101)), "an empty tenant": right.with("tenant", ""),
		"a null channel": right.with("channel", nil), "a number as audience": right.with("audience", 1), "an email": right.with("email", "x@shop.example"),
	} {
		bodies["principal with "+name] = authApproval.with("principal", principal)
	}
	for name, body := range bodies {
		r := b.post(t, "/authorizations/"+id+"/approve", authShop, body.json(t))
		require.Equal(t, http.StatusBadRequest, r.status, name)
		require.Equal(t, "invalid_request", r.code(), name)
	}
	wantAuthRefused(t, b.post(t, "/authorizations/"+id+"/deny", authShop, `{"reason":"x"}`), http.StatusBadRequest, "invalid_request")
	require.Equal(t, "pending", b.call(t, http.MethodGet, "/authorizations/"+id, authShop, "").text("status"))
}

func TestNoRouteBeyondRequestOrClientIsGranted(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	id := b.ask(t, a)
	approve := func(routes ...string) authReply {
		t.Helper()
		return b.post(t, "/authorizations/"+id+"/approve", authShop, authApproval.with("allowed_routes", routes).json(t))
	}
	wantAuthRefused(t, approve("orders", "stock"), http.StatusForbidden, "route_not_allowed")
	b.exec(t, `update bz_clients set allowed_routes = '{orders}' where app_id = 'shop'`)
	wantAuthRefused(t, approve("orders", "returns"), http.StatusForbidden, "route_not_allowed")
	b.exec(t, `update bz_clients set allowed_routes = '{*}' where app_id = 'shop'`)
	wantAuthRefused(t, approve("stock"), http.StatusForbidden, "route_not_allowed")
	require.Equal(t, http.StatusOK, approve("returns", "orders").status)
}

func TestADecisionIsFinal(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	approved, denied, expired := b.ask(t, a), b.ask(t, a), b.ask(t, a)
	b.approve(t, a, approved)
	require.Equal(t, http.StatusOK, b.post(t, "/authorizations/"+denied+"/deny", authShop, "{}").status)
	b.exec(t, `update bz_agent_authorizations set expires_at = now()`)
	for _, id := range []string{approved, denied} {
		wantAuthRefused(t, b.post(t, "/authorizations/"+id+"/approve", authShop, authApproval.json(t)), http.StatusConflict, "authorization_decided")
		wantAuthRefused(t, b.post(t, "/authorizations/"+id+"/deny", authShop, "{}"), http.StatusConflict, "authorization_decided")
	}
	wantAuthRefused(t, b.post(t, "/authorizations/"+expired+"/approve", authShop, authApproval.json(t)), http.StatusGone, "authorization_expired")
	wantAuthRefused(t, b.post(t, "/authorizations/"+expired+"/deny", authShop, "{}"), http.StatusGone, "authorization_expired")
	status := func(id string) string {
		return b.call(t, http.MethodGet, "/authorizations/"+id, authShop, "").text("status")
	}
	require.Equal(t, []string{"approved", "denied", "expired"}, []string{status(approved), status(denied), status(expired)})
	b.exec(t, `update bz_agent_authorizations set code_expires_at = now() where approved`)
	require.Equal(t, "expired", status(approved), "its code was not exchanged")
}

func TestOfParallelDecisionsOneCounts(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	id := b.ask(t, a)
	var turn atomic.Int64
	approving := authApproval.json(t)
	decided, late := 0, 0
	for _, r := range b.parallel(t, 12, func() authReply {
		if turn.Add(1)%2 == 0 {
			return b.post(t, "/authorizations/"+id+"/deny", authShop, "{}")
		}
		return b.post(t, "/authorizations/"+id+"/approve", authShop, approving)
	}) {
		switch r.status {
		case http.StatusOK:
			decided++
		case http.StatusConflict:
			late++
		}
	}
	require.Equal(t, []int{1, 11}, []int{decided, late})
}

// A client that is disabled right after its token was read decides nothing: its decision
// waits for the change, which holds the client's lock.
func TestADisabledClientDecidesNothing(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	id := b.ask(t, a)
	tx, err := b.owner.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `update bz_clients set enabled = false where app_id = 'shop'`)
	require.NoError(t, err)
	answered, body := make(chan authReply), authApproval.json(t)
	go func() { answered <- b.post(t, "/authorizations/"+id+"/approve", authShop, body) }()
	b.awaitWaiting(t)
	require.NoError(t, tx.Commit(t.Context()))
	r := <-answered
	require.Equal(t, http.StatusUnauthorized, r.status, "%v", r.body)
	require.Equal(t, 1, b.count(t, `select count(*) from bz_agent_authorizations where decided_at is null`))
}
