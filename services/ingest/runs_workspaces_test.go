package ingest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/domain/run"
)

// routesOf returns the keys of the workspaces that a session sees.
func (b *runsBundle) routesOf(t *testing.T, token string) (keys []string) {
	t.Helper()
	list, _ := wantRuns(t, b.get(t, "/workspaces", token)).body["workspaces"].([]any)
	for _, w := range list {
		entry, _ := w.(map[string]any)
		key, _ := entry["route_key"].(string)
		keys = append(keys, key)
	}
	return keys
}

// wantRevision checks that an answer's revision is the hash of the rest of it, and its tag.
func wantRevision(t *testing.T, r runsReply) string {
	t.Helper()
	revision := wantRuns(t, r).text("revision")
	rest := map[string]any{}
	for name, value := range r.body {
		if name != "revision" {
			rest[name] = value
		}
	}
	want, err := run.Revision(rest)
	require.NoError(t, err)
	require.Equal(t, want, revision)
	require.Regexp(t, `^[0-9a-f]{64}$`, revision)
	require.Equal(t, `"`+revision+`"`, r.header.Get("ETag"))
	return revision
}

func TestWorkspacesAreTheRoutesThatASessionMayUse(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	// Neither closed nor off; vip is for another tenant, other is not the client's.
	require.Equal(t, []string{"orders"}, b.routesOf(t, runsA))
	require.Equal(t, []string{"orders", "returns", "vip"}, b.routesOf(t, runsB))
	require.Equal(t, []string{"returns"}, b.routesOf(t, runsC))
	require.Equal(t, []string{"orders", "other", "returns"}, b.routesOf(t, runsD))

	list := b.get(t, "/workspaces", runsA)
	wantRevision(t, list)
	profile := b.get(t, "/workspaces/orders/bootstrap", runsA)
	revision := wantRevision(t, profile)
	require.JSONEq(t, `{"schema":"bailing.agent-workspaces.v1","revision":"`+list.text("revision")+`",
		"workspaces":[{"route_key":"orders","name":"Orders","revision":"`+revision+`"}]}`, list.raw)
	instructions, err := json.Marshal(runsInstructions)
	require.NoError(t, err)
	require.Equal(t, `{"schema":"bailing.agent-runtime-profile.v1","revision":"`+revision+`","route_key":"orders","name":"Orders",`+
		`"instructions":`+string(instructions)+`,"knowledge":[],"memory":[],"tools":[]}`, profile.raw)
	require.Empty(t, wantRuns(t, b.get(t, "/workspaces/returns/bootstrap", runsC)).text("instructions"))

	b.exec(t, `update bz_clients set allowed_routes = '{}' where app_id = 'shop'`)
	empty := b.get(t, "/workspaces", runsA)
	wantRevision(t, empty)
	require.Contains(t, empty.raw, `"workspaces":[]`)
	b.exec(t, `update bz_clients set enabled = false where app_id = 'shop'`)
	refusedRuns(t, b.get(t, "/workspaces", runsA), http.StatusUnauthorized, "unauthorized")
}

func TestARouteThatASessionMayNotUseIsAsIfThereWereNone(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	first := b.get(t, "/workspaces/closed/bootstrap", runsA)
	for _, route := range []string{
		"closed", "off", "vip", "other", "returns", "none", "auto", "ORDERS", "o", "-x", "%00", strings.Repeat("r", 65), "%C3%A9",
	} {
		r := b.get(t, "/workspaces/"+route+"/bootstrap", runsA)
		refusedRuns(t, r, http.StatusForbidden, "route_not_allowed")
		require.Equal(t, first.raw, r.raw, route)
		r = b.post(t, "/workspaces/"+route+"/turns", runsA, turnBody("conv", "t1"))
		refusedRuns(t, r, http.StatusForbidden, "route_not_allowed")
		require.Equal(t, first.raw, r.raw, route)
	}
	b.exec(t, `update bz_agent_sessions set refresh_expires_at = now() where session_id = $1`, runsSessionA)
	refusedRuns(t, b.get(t, "/workspaces/orders/bootstrap", runsA), http.StatusForbidden, "route_not_allowed")
	require.Empty(t, b.routesOf(t, runsA))
	require.Empty(t, b.rows(t, `select run_id::text from bz_agent_client_runs`))
}

func TestWhoHasTheRevisionIsToldSo(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	for _, path := range []string{"/workspaces", "/workspaces/orders/bootstrap"} {
		etag := wantRuns(t, b.get(t, path, runsA)).header.Get("ETag")
		for _, known := range []string{etag, "W/" + etag, "*", `"x", ` + etag, `W/"x",W/` + etag + ` , "y"`} {
			r := b.get(t, path, runsA, "If-None-Match", known)
			require.Equal(t, http.StatusNotModified, r.status, known)
			require.Empty(t, r.raw)
			require.Equal(t, etag, r.header.Get("ETag"))
		}
		r := b.get(t, path, runsA, "If-None-Match", `"x"`, "If-None-Match", etag)
		require.Equal(t, http.StatusNotModified, r.status, "in its second line")
		for _, other := range []string{`"x"`, strings.Trim(etag, `"`), "", `"` + strings.Repeat("0", 64) + `"`} {
			wantRuns(t, b.get(t, path, runsA, "If-None-Match", other))
		}
		refusedRuns(t, b.get(t, path, "", "If-None-Match", "*"), http.StatusUnauthorized, "unauthorized")
	}
	refusedRuns(t, b.get(t, "/workspaces/closed/bootstrap", runsA, "If-None-Match", "*"), http.StatusForbidden, "route_not_allowed")
}

func TestRevisionsChangeWithTheContentOnly(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	revisions := func(token string) (list, profile string) {
		t.Helper()
		return wantRevision(t, b.get(t, "/workspaces", token)), wantRevision(t, b.get(t, "/workspaces/orders/bootstrap", token))
	}
	list, profile := revisions(runsA)
	b.exec(t, `update bz_routes set updated_at = now(), audience = '{"enabled":true,"tenants":["*"]}' where route_key = 'orders'`)
	b.exec(t, `update bz_routes set name = 'Another', instructions = 'Another' where route_key = 'returns'`)
	b.exec(t, `update bz_agent_sessions set on_behalf_of = 'c:op', updated_at = now()`)
	b.open(t, runsA, "conv", "t1")
	sameList, sameProfile := revisions(runsA)
	require.Equal(t, [2]string{list, profile}, [2]string{sameList, sameProfile}, "nothing that is told has changed")
	_, others := revisions(runsD)
	require.Equal(t, profile, others, "it is the same for every session")

	for _, change := range []string{
		`update bz_routes set instructions = 'Be kind.' where route_key = 'orders'`,
		`update bz_routes set instructions = null where route_key = 'orders'`,
		`update bz_routes set name = 'All orders' where route_key = 'orders'`,
	} {
		b.exec(t, change)
		nextList, nextProfile := revisions(runsA)
		require.NotEqual(t, list, nextList)
		require.NotEqual(t, profile, nextProfile)
		list, profile = nextList, nextProfile
	}
	b.exec(t, `update bz_routes set agent_access = true where route_key = 'closed'`)
	nextList, sameProfile := revisions(runsA)
	require.NotEqual(t, list, nextList)
	require.Equal(t, profile, sameProfile)
	b.exec(t, `update bz_routes set agent_access = false where route_key = 'closed'`)
	backList, _ := revisions(runsA)
	require.Equal(t, list, backList)
}

func TestNothingElseIsServedToAgents(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id := b.open(t, runsA, "conv", "t1")
	for _, call := range []struct{ method, path string }{
		{"POST", "/workspaces"},
		{"HEAD", "/workspaces"},
		{"GET", "/workspaces/"},
		{"GET", "/workspaces/orders"},
		{"POST", "/workspaces/orders/bootstrap"},
		{"GET", "/workspaces/orders/bootstrap/"},
		{"GET", "/workspaces/orders/turns"},
		{"PUT", "/workspaces/orders/turns"},
		{"GET", "/runs"},
		{"GET", "/runs/" + id},
		{"GET", "/runs/" + id + "/complete"},
		{"PUT", "/runs/" + id + "/complete"},
		{"GET", "/runs/" + id + "/trace-events"},
		{"POST", "/runs/" + id + "/events"},
		{"DELETE", "/runs/" + id},
		{"GET", "/threads"},
		{"GET", "/"},
	} {
		for _, token := range []string{runsA, "", "bha_unknown"} {
			r := b.call(t, call.method, call.path, token, "")
			require.Equal(t, http.StatusNotFound, r.status, call)
			if call.method != http.MethodHead {
				refusedRuns(t, r, http.StatusNotFound, "not_found")
			}
		}
	}
	for _, path := range []string{"/workspaces", "/workspaces/orders/bootstrap"} {
		for _, token := range []string{"", "bha_unknown", runsA + "x", strings.Replace(runsA, "bha_", "bhk_", 1)} {
			refusedRuns(t, b.get(t, path, token), http.StatusUnauthorized, "unauthorized")
		}
		refusedRuns(t, b.get(t, path+"?access_token="+runsA, ""), http.StatusUnauthorized, "unauthorized")
	}
	for _, path := range []string{"/workspaces/orders/turns", "/runs/" + id + "/complete", "/runs/" + id + "/trace-events"} {
		refusedRuns(t, b.post(t, path, "", `{}`), http.StatusUnauthorized, "unauthorized")
	}
}
