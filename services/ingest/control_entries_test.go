package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// awaitWaiting waits until somebody waits for an advisory lock.
func (c controlled) awaitWaiting(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return count(t, c.admin, `select count(*) from pg_locks l join pg_database d on d.oid = l.database
			where l.locktype = 'advisory' and not l.granted and d.datname = current_database()`) > 0
	}, 20*time.Second, 5*time.Millisecond)
}

// archived creates an archive of session A alone and returns how to append its nth turn.
func (c controlled) archived(t *testing.T) func(n int) int {
	t.Helper()
	status, header := c.post(t, tokenA, "", `{"client_archive_id":"323e4567-e89b-42d3-a456-426614174001","client_conversation_id":"conv",
		"route":"orders","member_session_ids":["`+sessionA+`"]}`)
	require.Equal(t, http.StatusOK, status, header)
	id, _ := header["conversation_id"].(string)
	return func(n int) int {
		status, _ := c.post(t, tokenA, "/"+id+"/events", fmt.Sprintf(`{"events":[{"event_id":"s%d","sequence":%d,"client_turn_id":"t%d","kind":"turn_start"},
			{"event_id":"e%d","sequence":%d,"client_turn_id":"t%d","kind":"turn_end","status":"completed"}]}`, n, 2*n-1, n, n, 2*n, n))
		return status
	}
}

func TestClientsArePutReadAndDisabled(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	made := c.do(t, http.StatusCreated, http.MethodPut, "/clients/crm", `{"name":"CRM","agent_authorize_url":"https://crm.example/agents","allowed_routes":["orders"]}`)
	token := made.text(t, "token")
	require.Regexp(t, `^bhk_[A-Za-z0-9_-]{43}$`, token)
	view := at(t, made.body, "client")
	require.Subset(t, view, map[string]any{
		"app_id": "crm", "name": "CRM", "agent_authorize_url": "https://crm.example/agents", "allowed_routes": []any{"orders"}, "enabled": true,
	})
	require.Regexp(t, `^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, made.text(t, "client", "created_at"))
	stored := func(token string) int64 {
		return count(t, c.admin, `select count(*) from bz_client_tokens where app_id = 'crm' and token_hash = sha256($1::bytea)`, []byte(token))
	}
	require.EqualValues(t, 1, stored(token))

	before := last(t, c.admin)
	same := c.do(t, http.StatusOK, http.MethodPut, "/clients/crm", `{"name":"CRM","agent_authorize_url":"https://crm.example/agents","allowed_routes":["orders"]}`)
	require.NotContains(t, same.body, "token", "it is shown once")
	require.Equal(t, view, at(t, same.body, "client"))
	require.Equal(t, before, last(t, c.admin), "a put that changes nothing is no change")
	require.Equal(t, view, at(t, c.do(t, http.StatusOK, http.MethodGet, "/clients/crm", "").body, "client"))

	put := c.do(t, http.StatusOK, http.MethodPut, "/clients/crm", `{"name":"Customers"}`)
	require.Subset(t, at(t, put.body, "client"), map[string]any{"name": "Customers", "allowed_routes": []any{}})
	require.NotContains(t, at(t, put.body, "client"), "agent_authorize_url", "what is not said is not there")

	rotated := c.do(t, http.StatusOK, http.MethodPost, "/clients/crm/token", `{}`).text(t, "token")
	require.NotEqual(t, token, rotated)
	require.EqualValues(t, 0, stored(token), "the old token ends")
	require.EqualValues(t, 1, stored(rotated))
	isClient := func(token string) int {
		r, err := ask(t.Context(), http.MethodGet, c.service.URL()+"/agent-auth/v1/authorizations/423e4567-e89b-42d3-a456-426614174001", token, "")
		require.NoError(t, err)
		return r.status
	}
	require.Equal(t, http.StatusUnauthorized, isClient(token))
	require.Equal(t, http.StatusNotFound, isClient(rotated))

	for range 2 {
		require.Equal(t, false, at(t, c.do(t, http.StatusOK, http.MethodPost, "/clients/crm/disable", `{}`).body, "client", "enabled"))
		require.Equal(t, http.StatusUnauthorized, isClient(rotated))
	}
	require.Equal(t, true, at(t, c.do(t, http.StatusOK, http.MethodPut, "/clients/crm", `{"name":"Customers"}`).body, "client", "enabled"), "as in the file")

	found := changes(t, c.admin, before)
	var got []string
	for _, change := range found {
		require.Equal(t, []string{"client", "crm", "updated", "controller", "ops"}, []string{change.Kind, change.Name, change.Action, change.ActorKind, change.ActorName})
		got = append(got, fmt.Sprint(change.Fields)+change.Changes)
	}
	require.Equal(t, []string{
		`[name agent_authorize_url allowed_routes][{"field":"name","from":"CRM","to":"Customers"},{"field":"allowed_routes","from":["orders"],"to":[]}]`,
		`[token][]`,
		`[enabled][{"field":"enabled","from":true,"to":false}]`,
		`[enabled][{"field":"enabled","from":false,"to":true}]`,
	}, got)
	require.Equal(t, "the token belongs to another client",
		c.refused(t, http.StatusConflict, "registry_conflict", http.MethodPut, "/clients/other", `{"name":"Other","token":"`+rotated+`"}`))
	c.refused(t, http.StatusNotFound, "registry_not_found", http.MethodGet, "/clients/other", "")
}

func TestRoutesArePutReadAndDisabled(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	const body = `{"name":"Returns","agent_access":true,"audience":{"enabled":true,"tenants":["a"]},"instructions":"Be kind.\n<b>\u00e9"}`
	made := c.do(t, http.StatusCreated, http.MethodPut, "/routes/returns", body)
	require.NotContains(t, made.body, "token")
	view := at(t, made.body, "route")
	require.Subset(t, view, map[string]any{
		"route_key": "returns", "name": "Returns", "enabled": true, "agent_access": true,
		"audience": map[string]any{"enabled": true, "tenants": []any{"a"}}, "instructions": "Be kind.\n<b>é",
	})
	before := last(t, c.admin)
	c.do(t, http.StatusOK, http.MethodPut, "/routes/returns", body)
	require.Equal(t, before, last(t, c.admin))
	require.Equal(t, view, at(t, c.do(t, http.StatusOK, http.MethodGet, "/routes/returns", "").body, "route"))
	for range 2 {
		disabled := c.do(t, http.StatusOK, http.MethodPost, "/routes/returns/disable", `{}`)
		require.Subset(t, at(t, disabled.body, "route"), map[string]any{"enabled": false, "instructions": "Be kind.\n<b>é"})
	}
	bare := at(t, c.do(t, http.StatusOK, http.MethodPut, "/routes/returns", `{"name":"Returns"}`).body, "route")
	require.NotContains(t, bare, "audience")
	require.NotContains(t, bare, "instructions")
	found := changes(t, c.admin, before)
	require.Len(t, found, 2)
	require.Equal(t, []string{"enabled", "agent_access", "audience", "instructions"}, found[1].Fields)
	require.JSONEq(t, `[{"field":"enabled","from":false,"to":true},{"field":"agent_access","from":true,"to":false}]`, found[1].Changes)
}

func TestWhatNoKeyCanBeIsNotFound(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	for _, key := range []string{"%00", "a%00", "%FF", "caf%C3%A9", "-x", "SHOP", strings.Repeat("k", 65)} {
		for _, kind := range []string{"/clients/", "/routes/"} {
			c.refused(t, http.StatusNotFound, "registry_not_found", http.MethodGet, kind+key, "")
			c.refused(t, http.StatusNotFound, "registry_not_found", http.MethodPost, kind+key+"/disable", `{}`)
			c.refused(t, http.StatusBadRequest, "invalid_request", http.MethodPut, kind+key, `{"name":"Name"}`)
		}
		c.refused(t, http.StatusNotFound, "registry_not_found", http.MethodPost, "/clients/"+key+"/token", `{}`)
	}
}

func TestDisablingRefusesLaterAppends(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	appended := c.archived(t)
	require.Equal(t, http.StatusOK, appended(1))

	c.do(t, http.StatusOK, http.MethodPost, "/routes/orders/disable", `{}`)
	require.Equal(t, http.StatusForbidden, appended(2))
	c.do(t, http.StatusOK, http.MethodPut, "/routes/orders", `{"name":"Orders","agent_access":true}`)
	require.Equal(t, http.StatusOK, appended(2))

	c.do(t, http.StatusOK, http.MethodPost, "/clients/shop/disable", `{}`)
	require.Equal(t, http.StatusUnauthorized, appended(3))
	c.do(t, http.StatusOK, http.MethodPut, "/clients/shop", `{"name":"Shop","allowed_routes":["orders"]}`)
	require.Equal(t, http.StatusOK, appended(3))
	require.EqualValues(t, 1, count(t, c.admin, `select count(*) from bz_client_tokens where token_hash = sha256($1::bytea)`, []byte(shopToken)), "the token stays")

	c.do(t, http.StatusOK, http.MethodPost, "/sessions/"+sessionA+"/revoke", `{}`)
	require.Equal(t, http.StatusUnauthorized, appended(4))
}

// What authorizes appends is locked as they lock it: a change waits for running ones. What
// changes nothing of it, and what is done already, waits for nobody.
func TestDisablingAndRevokingWaitForRunningAppends(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	for _, tc := range []struct{ kind, key, path string }{
		{"route", "orders", "/routes/orders/disable"},
		{"client", "shop", "/sessions/" + sessionA + "/revoke"},
		{"client", "shop", "/clients/shop/disable"},
	} {
		tx, err := connect(t, c.db.ServiceDSN).Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `select pg_advisory_xact_lock_shared(bz_lock_key($1, $2))`, tc.kind, tc.key)
		require.NoError(t, err)
		c.do(t, http.StatusOK, http.MethodPost, "/clients/shop/token", `{}`)
		c.do(t, http.StatusOK, http.MethodPut, "/routes/orders", `{"name":"Orders","agent_access":true,"instructions":"`+tc.key+tc.path+`"}`)

		answered := make(chan reply, 1)
		go func() {
			r, _ := ask(context.WithoutCancel(t.Context()), http.MethodPost, c.service.ControlURL()+"/control-api/v1"+tc.path, controller, `{}`)
			answered <- r
		}()
		c.awaitWaiting(t)
		require.Empty(t, answered)
		require.NoError(t, tx.Rollback(t.Context()))
		require.Equal(t, http.StatusOK, (<-answered).status)

		tx, err = connect(t, c.db.ServiceDSN).Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `select pg_advisory_xact_lock_shared(bz_lock_key($1, $2))`, tc.kind, tc.key)
		require.NoError(t, err)
		c.do(t, http.StatusOK, http.MethodPost, tc.path, `{}`)
		require.NoError(t, tx.Rollback(t.Context()))
		if tc.kind == "route" {
			c.do(t, http.StatusOK, http.MethodPut, "/routes/orders", `{"name":"Orders","agent_access":true}`)
		}
	}
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	for i := range 4 {
		c.do(t, http.StatusCreated, http.MethodPut, fmt.Sprintf("/clients/client-%d", i), `{"name":"N"}`)
		c.do(t, http.StatusCreated, http.MethodPut, fmt.Sprintf("/routes/route-%d", i), `{"name":"N"}`)
	}
	for _, tc := range []struct {
		path, schema, key string
		want              []any
	}{
		{"/clients?", "verbatim.registry-clients.v1", "app_id", []any{"client-0", "client-1", "client-2", "client-3", "shop"}},
		{"/routes?", "verbatim.registry-routes.v1", "route_key", []any{"orders", "route-0", "route-1", "route-2", "route-3"}},
		{"/sessions?", "verbatim.registry-sessions.v1", "session_id", []any{sessionA, sessionB}},
		{"/sessions?client_app_id=shop&", "verbatim.registry-sessions.v1", "session_id", []any{sessionA, sessionB}},
		{"/sessions?client_app_id=client-0&", "verbatim.registry-sessions.v1", "session_id", []any{}},
	} {
		for _, limit := range []int{1, 2, 4, 5, 100, 1000} {
			seen, after := []any{}, ""
			for {
				r := c.do(t, http.StatusOK, http.MethodGet, fmt.Sprintf("%slimit=%d&after=%s", tc.path, limit, after), "")
				require.Equal(t, tc.schema, r.body["schema"])
				items, ok := r.body["items"].([]any)
				require.True(t, ok)
				require.LessOrEqual(t, len(items), limit)
				for _, item := range items {
					require.NotContains(t, item, "token")
					require.NotContains(t, item, "access_token")
					seen = append(seen, at(t, item, tc.key))
				}
				if r.body["has_more"] == false {
					require.Contains(t, r.body, "next_after")
					require.Nil(t, r.body["next_after"])
					break
				}
				after = r.text(t, "next_after")
			}
			require.Equal(t, tc.want, seen, "%s %d", tc.path, limit)
		}
	}
	for _, query := range []string{"limit=0", "limit=-1", "limit=x", "limit=1&limit=2", "after=A%20B", "after=a1&after=b1", "limit=%zz", "after=%ff"} {
		for _, path := range []string{"/clients?", "/routes?", "/sessions?"} {
			c.refused(t, http.StatusBadRequest, "invalid_request", http.MethodGet, path+query, "")
		}
	}
	for _, query := range []string{"after=shop", "client_app_id=A", "client_app_id=a1&client_app_id=b1"} {
		c.refused(t, http.StatusBadRequest, "invalid_request", http.MethodGet, "/sessions?"+query, "")
	}
}

func TestPagesAreBoundedInBytesToo(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	const routes = 26
	long := strings.Repeat("語", 64_000) // 192 kB
	for i := range routes {
		c.do(t, http.StatusCreated, http.MethodPut, fmt.Sprintf("/routes/long-%02d", i), `{"name":"N","instructions":"`+long+`"}`)
	}
	var sizes []int
	after := ""
	for more := true; more; {
		r := c.do(t, http.StatusOK, http.MethodGet, "/routes?limit=100&after="+after, "")
		require.Less(t, len(r.raw), 4<<20+1000)
		items, _ := r.body["items"].([]any)
		sizes = append(sizes, len(items))
		if more, _ = r.body["has_more"].(bool); more {
			after = r.text(t, "next_after")
		}
	}
	require.Equal(t, []int{21, 6}, sizes, "all, and each once")
}
