package ingest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// issued is the body that issues a session, with more fields.
func issued(more string) string {
	return `{"client_app_id":"shop","device_label":"till 3","principal":{"id":"op-9","tenant":"secret-tenant","roles":["r"]},"on_behalf_of":"a:op-9",
		"allowed_routes":["orders"],"access_expires_at":"2099-01-01T00:00:00Z","refresh_expires_at":"2099-02-01T00:00:00Z"` + more + `}`
}

func TestSessionsAreIssuedAndRevoked(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	made := c.do(t, http.StatusCreated, http.MethodPost, "/sessions", issued(""))
	token, id := made.text(t, "access_token"), made.text(t, "session", "session_id")
	require.Regexp(t, `^bha_[A-Za-z0-9_-]{43}$`, token)
	view := at(t, made.body, "session")
	require.Subset(t, view, map[string]any{
		"client_app_id": "shop", "device_label": "till 3", "on_behalf_of": "a:op-9", "allowed_routes": []any{"orders"},
		"principal":  map[string]any{"id": "op-9", "tenant": "secret-tenant", "roles": []any{"r"}},
		"revoked_at": nil, "refresh_expires_at": "2099-02-01T00:00:00.000Z",
	})
	require.Contains(t, view, "created_at")
	require.EqualValues(t, 1, count(t, c.admin, `select count(*) from bz_agent_session_tokens where session_id = $1 and token_hash = sha256($2::bytea)`, id, []byte(token)))
	read := c.do(t, http.StatusOK, http.MethodGet, "/sessions/"+strings.ToUpper(id), "")
	require.Equal(t, view, at(t, read.body, "session"))
	require.NotContains(t, read.body, "access_token")
	status, _ := c.post(t, token, "", `{}`)
	require.Equal(t, http.StatusBadRequest, status, "the agent is let in")

	before := last(t, c.admin)
	var first any
	for range 2 {
		revoked := at(t, c.do(t, http.StatusOK, http.MethodPost, "/sessions/"+id+"/revoke", `{}`).body, "session")
		require.NotNil(t, at(t, revoked, "revoked_at"))
		if first == nil {
			first = revoked
		}
		require.Equal(t, first, revoked, "the revocation is final")
		status, _ = c.post(t, token, "", `{}`)
		require.Equal(t, http.StatusUnauthorized, status)
	}
	found := changes(t, c.admin, before)
	require.Len(t, found, 1)
	require.Equal(t, []string{"session", id, "revoked", "controller", "ops"},
		[]string{found[0].Kind, found[0].Name, found[0].Action, found[0].ActorKind, found[0].ActorName})
	require.Equal(t, []string{"revoked_at"}, found[0].Fields)
	require.JSONEq(t, fmt.Sprintf(`[{"field":"revoked_at","from":null,"to":%q}]`, at(t, first, "revoked_at")), found[0].Changes)
}

func TestASessionIsIssuedOnce(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	before := last(t, c.admin)
	for _, id := range []string{sessionA, strings.ToUpper(sessionA)} {
		require.Equal(t, "there is a session with this session_id",
			c.refused(t, http.StatusConflict, "registry_conflict", http.MethodPost, "/sessions", issued(`,"session_id":"`+id+`"`)))
	}
	require.Equal(t, "the session names a client that does not exist", c.refused(t, http.StatusConflict, "registry_conflict", http.MethodPost, "/sessions",
		strings.Replace(issued(""), `"shop"`, `"nobody"`, 1)))
	require.Equal(t, before, last(t, c.admin))
	const own = "423e4567-e89b-42d3-a456-426614174001"
	require.Equal(t, own, c.do(t, http.StatusCreated, http.MethodPost, "/sessions", issued(`,"session_id":"`+own+`"`)).text(t, "session", "session_id"))
	c.do(t, http.StatusOK, http.MethodPost, "/sessions/"+own+"/revoke", `{}`)
	c.refused(t, http.StatusConflict, "registry_conflict", http.MethodPost, "/sessions", issued(`,"session_id":"`+own+`"`))
}

// imported is one run; what is named is replaced.
func imported(change ...string) string {
	run := `{"run_id":"523e4567-e89b-42d3-a456-426614174001","session_id":"` + sessionA + `","client_app_id":"shop","route_key":"orders",
		"thread_id":7,"client_conversation_id":"conv-7","client_turn_id":"t1"}`
	return strings.NewReplacer(change...).Replace(run)
}

func TestRunsAreImported(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	before := last(t, c.admin)
	second := imported("523e", "523f", `"t1"`, `"t2"`)
	body := `{"runs":[` + imported() + `,` + second + `]}`
	require.Equal(t, map[string]any{"created": 2.0, "unchanged": 0.0}, c.do(t, http.StatusOK, http.MethodPost, "/runs", body).body)
	require.Equal(t, map[string]any{"created": 0.0, "unchanged": 2.0}, c.do(t, http.StatusOK, http.MethodPost, "/runs", body).body)
	found := changes(t, c.admin, before)
	require.Len(t, found, 2)
	for _, change := range found {
		require.Equal(t, []string{"run", "created", "controller", "[]"}, []string{change.Kind, change.Action, change.ActorKind, change.Changes})
		require.Empty(t, change.Fields)
		require.Len(t, c.receiver.stream(t, change.Name, 1), 1)
	}
	require.EqualValues(t, 2, count(t, c.admin, `select count(*) from bz_agent_threads`), "the file's and this one")
	require.EqualValues(t, 1, count(t, c.admin, `select count(*) from bz_agent_threads where thread_id = 7 and client_conversation_id = 'conv-7'`))

	before = last(t, c.admin)
	for name, tc := range map[string]struct{ run, want string }{
		"other facts":           {imported(`"t1"`, `"t9"`), "is stored with other facts"},
		"a thread of another":   {imported("523e", "5230", "conv-7", "conv-8"), "has the thread_id of another conversation's thread"},
		"the file's thread":     {imported("523e", "5230", `:7`, `:101`), "has the thread_id of another conversation's thread"},
		"another thread":        {imported("523e", "5230", `:7`, `:8`), "has a thread_id, and its conversation has another thread"},
		"a thread of a session": {imported("523e", "5230", sessionA, sessionB), "has the thread_id of another conversation's thread"},
		"unknown session":       {imported("523e", "5230", sessionA, "623e4567-e89b-42d3-a456-426614174001"), "names a session of a client that does not exist"},
		"another client's":      {imported("523e", "5230", `"shop"`, `"crm"`), "names a session of a client that does not exist"},
	} {
		message := c.refused(t, http.StatusConflict, "registry_conflict", http.MethodPost, "/runs", `{"runs":[`+imported("523e", "5231", "conv-7", "conv-9", `:7`, `:9`)+`,`+tc.run+`]}`)
		require.Contains(t, message, "the run at /runs/1 "+tc.want, name)
		require.NotContains(t, message, "5230", name)
	}
	require.Equal(t, before, last(t, c.admin), "all of them or none")
	require.EqualValues(t, 3, count(t, c.admin, `select count(*) from bz_agent_client_runs`))
	c.refused(t, http.StatusBadRequest, "invalid_request", http.MethodPost, "/runs", `{"runs":[`+imported()+`,`+imported()+`]}`)
}

func TestTwoHundredRunsAreImportedAtOnce(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	runs := make([]string, 200)
	for i := range runs {
		runs[i] = imported("523e4567", fmt.Sprintf("%08x", i+1), `"t1"`, fmt.Sprintf(`"t%d"`, i))
	}
	body := func(runs []string) string { return `{"runs":[` + strings.Join(runs, ",") + `]}` }
	require.Equal(t, map[string]any{"created": 200.0, "unchanged": 0.0}, c.do(t, http.StatusOK, http.MethodPost, "/runs", body(runs)).body)
	slices.Reverse(runs)
	require.Equal(t, map[string]any{"created": 0.0, "unchanged": 200.0}, c.do(t, http.StatusOK, http.MethodPost, "/runs", body(runs)).body)
	require.EqualValues(t, 1, count(t, c.admin, `select count(*) from bz_agent_threads where thread_id = 7`))
}
