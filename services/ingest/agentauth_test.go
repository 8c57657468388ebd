package ingest_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/ingest"
)

// wireTime reads a time as the wire has it.
func wireTime(t *testing.T, r authReply, field string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.000Z", r.text(field))
	require.NoError(t, err, "%s", field)
	return at
}

func TestAnAgentGetsASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()

	opened := b.post(t, "/authorizations", "", a.asking().json(t))
	require.Equal(t, http.StatusCreated, opened.status, "%v", opened.body)
	id := opened.text("authorization_id")
	require.Equal(t, map[string]any{
		"authorization_id": id, "authorization_url": "https://shop.example/agents?a=1&authorization_id=" + id + "#top", "expires_in": 600.0,
	}, opened.body)

	shown := b.call(t, http.MethodGet, "/authorizations/"+strings.ToUpper(id), authShop, "")
	require.Equal(t, http.StatusOK, shown.status)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), wireTime(t, shown, "expires_at"), time.Minute)
	require.Equal(t, map[string]any{
		"authorization_id": id, "client": map[string]any{"app_id": "shop", "name": "Shop"}, "device": map[string]any{"name": "Laptop"},
		"requested_routes": []any{"orders", "returns"}, "status": "pending", "expires_at": shown.text("expires_at"),
	}, shown.body)

	code := b.approve(t, a, id)
	require.Equal(t, "approved", b.call(t, http.MethodGet, "/authorizations/"+id, authShop, "").text("status"))
	tokens := b.post(t, "/token", "", a.exchanging(code).json(t))
	require.Equal(t, http.StatusOK, tokens.status, "%v", tokens.body)
	require.Equal(t, "no-cache", tokens.header.Get("Pragma"))
	require.Equal(t, "consumed", b.call(t, http.MethodGet, "/authorizations/"+id, authShop, "").text("status"))
	session := tokens.text("session_id")
	require.Regexp(t, `^bha_[A-Za-z0-9_-]{43}$`, tokens.text("access_token"))
	require.Regexp(t, `^bhr_[A-Za-z0-9_-]{43}$`, tokens.text("refresh_token"))
	require.Equal(t, map[string]any{
		"token_type": "Bearer", "access_token": tokens.text("access_token"), "expires_in": 900.0, "refresh_token": tokens.text("refresh_token"),
		"refresh_expires_in": 2592000.0, "session_id": session, "client_app_id": "shop",
	}, tokens.body)

	own := b.session(t, tokens)
	require.Equal(t, http.StatusOK, own.status)
	created := wireTime(t, own, "created_at")
	require.Equal(t, created.Add(15*time.Minute), wireTime(t, own, "expires_at"))
	require.Equal(t, created.Add(30*24*time.Hour), wireTime(t, own, "refresh_expires_at"))
	require.Equal(t, map[string]any{
		"session_id": session, "client_app_id": "shop", "device_label": "Laptop",
		"principal":    map[string]any{"id": "operator-7", "tenant": "store-a", "roles": []any{"buyer"}, "channel": "desk"},
		"on_behalf_of": "store-a:operator-7", "allowed_routes": []any{"orders"}, "created_at": own.text("created_at"),
		"expires_at": own.text("expires_at"), "refresh_expires_at": own.text("refresh_expires_at"),
	}, own.body)

	// The session is one like others: it writes archives, and who made it is recorded.
	archive := bundle{service: b.service}
	status, header := archive.post(t, tokens.text("access_token"), "", `{"client_archive_id":"323e4567-e89b-42d3-a456-426614174001",
		"client_conversation_id":"conv","route":"orders","member_session_ids":["`+session+`"]}`)
	require.Equal(t, http.StatusOK, status, header)
	require.Equal(t, []string{"created by client shop"}, b.changes(t, session))
}

func TestARecordedChangeReachesTheReceiver(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	tokens := b.authorize(t, a)
	require.Equal(t, http.StatusOK, b.post(t, "/revoke", tokens.text("access_token"), "").status)
	session := tokens.text("session_id")
	rows, err := b.owner.Query(t.Context(), `select change_id::text from bz_registry_changes where name = $1 order by number`, session)
	require.NoError(t, err)
	defer rows.Close()
	var actions []string
	for rows.Next() {
		var id string
		require.NoError(t, rows.Scan(&id))
		event := b.receiver.stream(t, id, 1)[0]
		require.Equal(t, registryv1.TypeRecorded, event.Type)
		change, err := registryv1.Unmarshal(event.Data)
		require.NoError(t, err)
		require.Equal(t, session, change.Name)
		actions = append(actions, change.Action)
	}
	require.NoError(t, rows.Err())
	require.Equal(t, []string{"created", "revoked"}, actions)
}

func TestADenialGoesBackToTheAgent(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	id := b.ask(t, a)
	denied := b.post(t, "/authorizations/"+id+"/deny", authShop, "{}")
	require.Equal(t, http.StatusOK, denied.status, "%v", denied.body)
	u, err := url.Parse(denied.text("redirect_uri"))
	require.NoError(t, err)
	require.Equal(t, url.Values{"x": {"1"}, "error": {"access_denied"}, "state": {askState}}, u.Query())
	require.Equal(t, "denied", b.call(t, http.MethodGet, "/authorizations/"+id, authShop, "").text("status"))
}

// authCalls is each call of the surface with a body that is right.
func authCalls(t *testing.T, a asker, id, session string) map[string]struct{ method, path, token, body string } {
	t.Helper()
	const bhc, bhr = "bhc_CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC", "bhr_RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR"
	return map[string]struct{ method, path, token, body string }{
		"ask":             {http.MethodPost, "/authorizations", "", a.asking().json(t)},
		"show":            {http.MethodGet, "/authorizations/" + id, authShop, ""},
		"approve":         {http.MethodPost, "/authorizations/" + id + "/approve", authShop, authApproval.json(t)},
		"deny":            {http.MethodPost, "/authorizations/" + id + "/deny", authShop, "{}"},
		"exchange":        {http.MethodPost, "/token", "", a.exchanging(bhc).json(t)},
		"refresh":         {http.MethodPost, "/token", "", a.refreshing(bhr).json(t)},
		"session":         {http.MethodGet, "/session", tokenA, ""},
		"revoke own":      {http.MethodPost, "/revoke", tokenA, "{}"},
		"revoke by token": {http.MethodPost, "/revoke", "", authBody{"client_app_id": "shop", "refresh_token": bhr}.json(t)},
		"revoke of":       {http.MethodPost, "/sessions/" + session + "/revoke", authShop, "{}"},
	}
}

const declaredSession = `
sessions:
  - {session_id: ` + sessionA + `, client_app_id: shop, device_label: one, principal: {id: op}, on_behalf_of: op, allowed_routes: [orders],
     access_token: ` + tokenA + `, access_expires_at: 2099-01-01T00:00:00Z, refresh_expires_at: "2099-01-01T00:00:00Z"}
`

// Before its migration the surface says so, and everything else works.
func TestWithoutItsTablesAgentAuthSaysSo(t *testing.T) {
	t.Parallel()
	for _, version := range []int64{58, 59} {
		b := setupAuth(t, version, nil)
		_, err := ingest.Apply(t.Context(), config.Secret(b.db.ServiceDSN), []byte(declaredSession))
		require.NoError(t, err)
		for name, call := range authCalls(t, newAsker(), run1, sessionA) {
			r := b.call(t, call.method, call.path, call.token, call.body)
			require.Equal(t, http.StatusServiceUnavailable, r.status, "%s: %v", name, r.body)
			require.Equal(t, "agent_auth_unavailable", r.code(), name)
			require.Empty(t, r.header.Get("Retry-After"), "waiting does not help")
		}
		status, header := bundle{service: b.service}.post(t, tokenA, "", `{"client_archive_id":"323e4567-e89b-42d3-a456-426614174001",
			"client_conversation_id":"conv","route":"orders","member_session_ids":["`+sessionA+`"]}`)
		require.Equal(t, http.StatusOK, status, header)

		// It is noticed without a restart.
		_, err = ingest.MigrateUp(t.Context(), config.Secret(b.db.OwnerDSN), 0)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, b.authorize(t, newAsker()).status)
	}
}

func TestBodiesAreBoundedAndPlain(t *testing.T) {
	t.Parallel()
	b := setupAuth(t, 0, nil)
	id := b.ask(t, newAsker())
	for name, call := range authCalls(t, newAsker(), id, sessionA) {
		if call.method == http.MethodGet || name == "revoke own" {
			continue
		}
		large := b.post(t, call.path, call.token, `{"x":"`+strings.Repeat("x", 64<<10)+`"}`)
		wantAuthRefused(t, large, http.StatusRequestEntityTooLarge, "request_limit")
		encoded := b.call(t, call.method, call.path, call.token, call.body, "Content-Encoding", "gzip")
		wantAuthRefused(t, encoded, http.StatusUnsupportedMediaType, "unsupported_media_type")
		for _, body := range []string{"", "[]", "null", "client_app_id=shop", call.body + "{}", strings.Replace(call.body, "{", `{"undeclared":1,`, 1)} {
			wantAuthRefused(t, b.post(t, call.path, call.token, body), http.StatusBadRequest, "invalid_request")
		}
	}
	require.Equal(t, "pending", b.call(t, http.MethodGet, "/authorizations/"+id, authShop, "").text("status"))
}

func TestOnlyAnEnabledClientsTokenSpeaksForIt(t *testing.T) {
	t.Parallel()
	b, a := setupAuth(t, 0, nil), newAsker()
	id, tokens := b.ask(t, a), b.authorize(t, a)
	for name, call := range authCalls(t, a, id, tokens.text("session_id")) {
		if call.token != authShop {
			continue
		}
		for _, token := range []string{"", "bhk_", "bhk_UUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUU", authOff, tokens.text("access_token"), tokens.text("refresh_token"), authShop + "x"} {
			r := b.call(t, call.method, call.path, token, call.body)
			require.Equal(t, http.StatusUnauthorized, r.status, name)
			require.Equal(t, "unauthorized", r.code())
			require.Equal(t, "Bearer", r.header.Get("WWW-Authenticate"))
		}
		want := "authorization_not_found"
		if name == "revoke of" {
			want = "session_not_found"
		}
		for _, path := range []string{call.path, strings.ReplaceAll(strings.ReplaceAll(call.path, id, run1), tokens.text("session_id"), run1), strings.ReplaceAll(strings.ReplaceAll(call.path, id, "x"), tokens.text("session_id"), "x")} {
			token := authOther
			if path != call.path {
				token = authShop
			}
			wantAuthRefused(t, b.call(t, call.method, path, token, call.body), http.StatusNotFound, want)
		}
	}
	require.Equal(t, "pending", b.call(t, http.MethodGet, "/authorizations/"+id, authShop, "").text("status"))
	require.Equal(t, http.StatusOK, b.session(t, tokens).status)
	wantAuthRefused(t, b.post(t, "/elsewhere", authShop, "{}"), http.StatusNotFound, "not_found")
}
