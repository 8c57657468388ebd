package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/ingest"
	"verbatim.internal/sql"
)

// calls are all that the control API serves.
var calls = []struct{ method, path string }{
	{"GET", "/clients"},
	{"GET", "/clients/shop"},
	{"PUT", "/clients/shop"},
	{"POST", "/clients/shop/disable"},
	{"POST", "/clients/shop/token"},
	{"GET", "/routes"},
	{"GET", "/routes/orders"},
	{"PUT", "/routes/orders"},
	{"POST", "/routes/orders/disable"},
	{"GET", "/sessions"},
	{"POST", "/sessions"},
	{"GET", "/sessions/" + sessionA},
	{"POST", "/sessions/" + sessionA + "/revoke"},
	{"POST", "/runs"},
}

func TestControllersAreLetInByTokenAndPermission(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	before := last(t, c.admin)
	for _, call := range calls {
		for _, token := range []string{"", "x", tokenA, shopToken, "bvc_NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN", controller + "C"} {
			r := c.as(t, token, call.method, call.path, `{}`)
			require.Equal(t, http.StatusUnauthorized, r.status, "%s %s", call.method, call.path)
			require.Equal(t, "unauthorized", r.body["error"])
			require.Equal(t, "Bearer", r.header.Get("WWW-Authenticate"))
		}
		r := c.as(t, onlooker, call.method, call.path, `{}`)
		require.Equal(t, http.StatusForbidden, r.status, "%s %s", call.method, call.path)
		require.Equal(t, "forbidden", r.body["error"])

		r, err := ask(t.Context(), call.method, c.service.URL()+"/control-api/v1"+call.path, controller, `{}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, r.status, "where agents are served there is no registry")
		require.Equal(t, "not_found", r.body["error"])
	}
	require.Equal(t, before, last(t, c.admin), "who may not changes nothing")

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.service.ControlURL()+"/control-api/v1/clients", http.NoBody)
	require.NoError(t, err)
	req.Header["Authorization"] = []string{"Bearer " + controller, "Bearer " + controller}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode, "two headers are none")
}

func TestTheControlListenerServesNothingElse(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	for path, status := range map[string]int{
		"/healthz": http.StatusOK, "/readyz": http.StatusNotFound, "/metrics": http.StatusNotFound, "/": http.StatusNotFound,
		"/agent-api/v1/conversation-audits/capabilities": http.StatusNotFound, "/control-api/v1": http.StatusNotFound,
		"/control-api/v1/clients/": http.StatusNotFound, "/control-api/v1/controllers": http.StatusNotFound,
	} {
		r, err := ask(t.Context(), http.MethodGet, c.service.ControlURL()+path, controller, "")
		require.NoError(t, err)
		require.Equal(t, status, r.status, path)
	}
	c.refused(t, http.StatusNotFound, "not_found", http.MethodDelete, "/clients/shop", "")
}

func TestTheControlListenerIsOffByDefault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Empty(t, b.service.ControlURL())
	r, err := ask(t.Context(), http.MethodGet, b.service.URL()+"/control-api/v1/clients", controller, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, r.status)
}

func TestBelowItsMigrationTheRegistryIsUnavailable(t *testing.T) {
	t.Parallel()
	c := control(t, 58)
	for _, call := range calls {
		c.refused(t, http.StatusServiceUnavailable, "registry_unavailable", call.method, call.path, `{}`)
	}
	require.Equal(t, http.StatusUnauthorized, c.as(t, "", http.MethodGet, "/clients", "").status)
	status, _ := c.post(t, tokenA, "", `{}`)
	require.Equal(t, http.StatusBadRequest, status, "agents are served")
}

func TestBodiesAreStrict(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	before := last(t, c.admin)
	const good = `{"name":"Shop","allowed_routes":["orders"]}`
	for name, body := range map[string]string{
		"empty": ``, "list": `[]`, "null": `null`, "trailing": good + `{}`, "unknown": `{"name":"Shop","colour":1}`,
		"key in the body": `{"app_id":"shop","name":"Shop"}`, "repeated": `{"name":"Shop","name":"Shop"}`, "mistyped": `{"name":1}`,
		"null field": `{"name":"Shop","token":null}`, "null list": `{"name":"Shop","allowed_routes":null}`,
		"other case": `{"Name":"Shop"}`, "switch": `{"name":"Shop","enabled":"yes"}`, "lone surrogate": `{"name":"\ud800"}`,
	} {
		require.Equal(t, "the body is not one JSON object of the declared fields",
			c.refused(t, http.StatusBadRequest, "invalid_request", http.MethodPut, "/clients/shop", body), name)
	}
	for _, path := range []string{"/clients/shop/disable", "/clients/shop/token", "/routes/orders/disable", "/sessions/" + sessionA + "/revoke"} {
		for _, body := range []string{``, `null`, `[]`, `{"force":true}`} {
			c.refused(t, http.StatusBadRequest, "invalid_request", http.MethodPost, path, body)
		}
	}
	large := `{"name":"` + strings.Repeat("a", 2<<20) + `"}`
	for _, call := range calls {
		if call.method != http.MethodGet {
			c.refused(t, http.StatusRequestEntityTooLarge, "request_limit", call.method, call.path, large)
		}
	}
	require.Equal(t, before, last(t, c.admin))
}

func TestRulesAreThoseOfTheFileAndQuoteNothing(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	const quoted = "quoted-by-nobody"
	long := strings.Repeat("x", 192)
	session := func(field string) string {
		fields := map[string]string{
			"client_app_id": `"shop"`, "device_label": `"till"`, "principal": `{"id":"op"}`, "on_behalf_of": `"op"`,
			"access_expires_at": `"2099-01-01T00:00:00Z"`, "refresh_expires_at": `"2099-01-01T00:00:00Z"`,
		}
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
		if value == "" {
			delete(fields, name)
		}
		var parts []string
		for name, value := range fields {
			parts = append(parts, fmt.Sprintf("%q:%s", name, value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	for name, tc := range map[string]struct{ method, path, body, want string }{
		"key":          {"PUT", "/clients/Shop", `{"name":"Shop"}`, "app_id is not a resource key"},
		"name":         {"PUT", "/clients/shop", `{"name":"` + long + `"}`, "name has 1 to 191 characters"},
		"no name":      {"PUT", "/clients/shop", `{}`, "name has 1 to 191 characters"},
		"NUL":          {"PUT", "/clients/shop", `{"name":"a\u0000"}`, "name has 1 to 191 characters"},
		"page":         {"PUT", "/clients/shop", `{"name":"a","agent_authorize_url":"` + quoted + `"}`, "agent_authorize_url is no http or https URL"},
		"page scheme":  {"PUT", "/clients/shop", `{"name":"a","agent_authorize_url":"ftp://` + quoted + `/"}`, "agent_authorize_url is no http or https URL"},
		"allowlist":    {"PUT", "/clients/shop", `{"name":"a","allowed_routes":["` + quoted + ` "]}`, "allowed_routes takes route keys"},
		"long list":    {"PUT", "/clients/shop", `{"name":"a","allowed_routes":[` + strings.Repeat(`"ab",`, 1000) + `"ab"]}`, "at most 1,000"},
		"token":        {"PUT", "/clients/shop", `{"name":"a","token":"` + quoted + `"}`, "a token is bhk_ and 43"},
		"reserved":     {"PUT", "/routes/auto", `{"name":"a"}`, "route_key is not a resource key"},
		"instructions": {"PUT", "/routes/orders", `{"name":"a","instructions":" \n"}`, "instructions is no visible text"},
		"control":      {"PUT", "/routes/orders", `{"name":"a","instructions":"` + quoted + `\u0007"}`, "instructions is no visible text"},
		"long text":    {"PUT", "/routes/orders", `{"name":"a","instructions":"` + strings.Repeat("x", 64_001) + `"}`, "64,000"},
		"session id":   {"POST", "/sessions", session(`session_id="` + quoted + `"`), "session_id is not a UUID"},
		"empty id":     {"POST", "/sessions", session(`session_id=""`), "session_id is not a UUID"},
		"client":       {"POST", "/sessions", session(`client_app_id="Q ` + quoted + `"`), "client_app_id is not a resource key"},
		"principal":    {"POST", "/sessions", session(`principal={"tenant":"` + quoted + `"}`), "id"},
		"no expiry":    {"POST", "/sessions", session(`access_expires_at=`), "access_expires_at is missing"},
		"given token":  {"POST", "/sessions", session(`access_token="` + tokenA + `"`), "access_token is not taken here"},
		"revoked":      {"POST", "/sessions", session(`revoked_at="2026-01-01T00:00:00Z"`), "revoked_at is not taken here"},
		"runs":         {"POST", "/runs", `{"runs":[]}`, "runs has 1 to 200 entries"},
		"run":          {"POST", "/runs", `{"runs":[{}]}`, "/runs/0: run_id is not a UUID"},
	} {
		message := c.refused(t, http.StatusBadRequest, "invalid_request", tc.method, tc.path, tc.body)
		require.Contains(t, message, tc.want, name)
		require.NotContains(t, message, quoted, name)
	}
	require.Less(t, len(c.refused(t, http.StatusBadRequest, "invalid_request", http.MethodPost, "/runs",
		`{"runs":[{}`+strings.Repeat(`,{}`, 199)+`]}`)), 1000, "a message names the first problems")
	c.refused(t, http.StatusBadRequest, "invalid_request", http.MethodPost, "/runs", `{"runs":[{}`+strings.Repeat(`,{}`, 200)+`]}`)
	require.NotContains(t, c.logs.String(), quoted)
}

func TestWhatIsUnknownIsNotFound(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	const nobody = "423e4567-e89b-42d3-a456-426614174001"
	for _, call := range []struct{ method, path string }{
		{"GET", "/clients/nobody"},
		{"GET", "/clients/NOT-A-KEY"},
		{"POST", "/clients/nobody/disable"},
		{"POST", "/clients/nobody/token"},
		{"GET", "/routes/nowhere"},
		{"GET", "/routes/auto"},
		{"POST", "/routes/nowhere/disable"},
		{"GET", "/sessions/" + nobody},
		{"GET", "/sessions/no-uuid"},
		{"POST", "/sessions/" + nobody + "/revoke"},
		{"POST", "/sessions/no-uuid/revoke"},
	} {
		c.refused(t, http.StatusNotFound, "registry_not_found", call.method, call.path, `{}`)
	}
}

// What a controller may is asked again in the transaction: a change that waited while the
// right was taken away is refused.
func TestAControllersRightIsAskedAgainInTheTransaction(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		take string
		want int
	}{
		"its token is gone":      {`delete from bz_controller_tokens where controller = 'ops'`, http.StatusUnauthorized},
		"its permission is gone": {`update bz_controllers set permissions = '{}' where name = 'ops'`, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := control(t, 0)
			before := last(t, c.admin)
			tx, err := connect(t, c.db.ServiceDSN).Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `select pg_advisory_xact_lock(bz_lock_key('registry', 'apply'))`)
			require.NoError(t, err)
			answered := make(chan reply, 1)
			go func() {
				r, _ := ask(context.WithoutCancel(t.Context()), http.MethodPut, c.service.ControlURL()+"/control-api/v1/clients/shop", controller, `{"name":"Taken"}`)
				answered <- r
			}()
			c.awaitWaiting(t)
			_, err = c.admin.Exec(t.Context(), tc.take)
			require.NoError(t, err)
			require.NoError(t, tx.Rollback(t.Context()))
			require.Equal(t, tc.want, (<-answered).status)
			require.Equal(t, before, last(t, c.admin))
		})
	}
}

func TestControllersComeFromTheFile(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	conn := connect(t, db.AdminDSN)
	apply := func(permissions string) ingest.Result {
		t.Helper()
		r, err := ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(`{"controllers":[{"name":"ops","permissions":[`+permissions+`]}]}`))
		require.NoError(t, err)
		return r
	}
	first := apply(`"registry:write"`)
	require.Equal(t, []ingest.Change{{Kind: "controller", Name: "ops", Action: "created"}}, first.Changes)
	require.Len(t, first.Tokens, 1)
	require.Regexp(t, `^bvc_[A-Za-z0-9_-]{43}$`, first.Tokens[0].Value)
	require.EqualValues(t, 1, count(t, conn, `select count(*) from bz_controller_tokens where token_hash = sha256($1::bytea)`, []byte(first.Tokens[0].Value)))

	second := apply(`"registry:write"`)
	require.Empty(t, second.Tokens, "it is shown once")
	require.Equal(t, "unchanged", second.Changes[0].Action)
	require.Equal(t, []string{"permissions"}, apply(``).Changes[0].Fields)
	require.EqualValues(t, 1, count(t, conn, `select count(*) from bz_controller_tokens`))

	found := changes(t, conn, 0)
	require.Len(t, found, 2)
	require.Equal(t, recorded{
		ID: found[1].ID, Number: found[1].Number, Kind: "controller", Name: "ops", Action: "updated", Fields: []string{"permissions"},
		Changes: `[{"field":"permissions","from":["registry:write"],"to":[]}]`, ActorKind: "operator",
	}, found[1])

	for _, broken := range []string{
		`{"controllers":[{"name":"Ops"}]}`, `{"controllers":[{"name":"ops","permissions":["all"]}]}`, `{"controllers":[{"name":"ops","permissions":null}]}`,
		`{"controllers":[{"name":"ops","token":"bhk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}`, `{"controllers":[{"name":"ops"},{"name":"ops"}]}`,
	} {
		_, err := ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(broken))
		require.Error(t, err, broken)
	}
}
