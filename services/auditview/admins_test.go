package auditview_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/auditview"
)

func TestApplyAdminsIsDeclarative(t *testing.T) {
	t.Parallel()
	b := setup(t)
	apply := func(file string) auditview.Result {
		t.Helper()
		result, err := auditview.ApplyAdmins(t.Context(), config.Secret(b.db.ServiceDSN), []byte(file))
		require.NoError(t, err)
		return result
	}
	list := "/admin/api/conversation-audits"

	result := apply(`{"admins": [{"name": "new one", "permissions": ["runs:metadata", "tools:use", "runs:metadata"]}]}`)
	require.Equal(t, []auditview.Change{{Kind: "administrator", Name: "new one", Action: "created", Fields: []string{"permissions", "token"}}}, result.Changes)
	require.Equal(t, []string{`administrator "new one": the permission tools:use is not known and grants nothing`}, result.Warnings)
	require.Len(t, result.Tokens, 1)
	token := result.Tokens[0].Value
	require.Regexp(t, `^bva_[A-Za-z0-9_-]{43}$`, token)
	require.Equal(t, http.StatusOK, b.get(t, token, list).status)

	result = apply(`admins: [{name: new one, permissions: ["tools:use", "runs:metadata"]}]`)
	require.Equal(t, []auditview.Change{{Kind: "administrator", Name: "new one", Action: "unchanged"}}, result.Changes)
	require.Empty(t, result.Tokens, "a token is shown once")

	given := "bva_" + strings.Repeat("g", 43)
	result = apply(`admins: [{name: new one, token: ` + given + `, permissions: ["runs:read"]}]`)
	require.Equal(t, []auditview.Change{{Kind: "administrator", Name: "new one", Action: "updated", Fields: []string{"permissions", "token"}}}, result.Changes)
	require.Equal(t, http.StatusOK, b.get(t, given, list).status)
	require.Equal(t, http.StatusUnauthorized, b.get(t, token, list).status, "a given token replaces the old ones")

	result = apply(`admins: [{name: new one}]`)
	require.Equal(t, []string{"permissions"}, result.Changes[0].Fields)
	b.get(t, given, list).fails(t, http.StatusForbidden, "forbidden")
	require.Equal(t, http.StatusOK, b.get(t, viewer, list).status, "who is not named stays")
	require.Empty(t, apply("admins: []").Changes)

	admin, err := pgx.Connect(t.Context(), b.db.AdminDSN)
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	var stored string
	err = admin.QueryRow(t.Context(), `select string_agg(t::text || a::text, '') from administrator_tokens t, administrators a`).Scan(&stored)
	require.NoError(t, err)
	for _, secret := range []string{"bva_", "ggg", "VVV"} {
		require.NotContains(t, stored, secret)
	}
}

func TestApplyAdminsRefusesWholeFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := "bva_" + strings.Repeat("s", 43)
	for name, file := range map[string]struct{ text, reason string }{
		"nothing":                   {``, "not of the form"},
		"another list":              {`clients: []`, "not of the form"},
		"an unknown field":          {`admins: [{name: a, tokens: ` + good + `}]`, "not of the form"},
		"another unknown field":     {`{"admins": [], "x": "` + good + `"}`, "not of the form"},
		"a repeated field":          {`{"admins": [{"name": "a", "name": "b"}]}`, "not of the form"},
		"no YAML":                   {`admins: [{name: ` + good, "not of the form"},
		"a number for a name":       {`admins: [{name: 7}]`, "not of the form"},
		"no name":                   {`admins: [{token: ` + good + `}]`, "administrator 1: the name"},
		"the same name twice":       {`admins: [{name: a}, {name: a}]`, `"a" occurs twice`},
		"the same token twice":      {`admins: [{name: a, token: ` + good + `}, {name: b, token: ` + good + `}]`, `"b" has a token`},
		"a token of another form":   {`admins: [{name: a, token: bha_` + strings.Repeat("s", 43) + `}]`, `"a": a token is bva_`},
		"a permission that is none": {`admins: [{name: a, permissions: [everything]}]`, "word:word"},
		"somebody else's token":     {`admins: [{name: fresh}, {name: a, token: ` + viewer + `}]`, `"a" is another administrator's`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := auditview.ApplyAdmins(t.Context(), config.Secret(b.db.ServiceDSN), []byte(file.text))
			require.ErrorContains(t, err, file.reason)
			require.NotContains(t, err.Error(), "sss")
			require.NotContains(t, err.Error(), "VVV")
		})
	}
	t.Cleanup(func() { // after the cases: none of them left anything
		conn, err := pgx.Connect(context.Background(), b.db.AdminDSN)
		require.NoError(t, err)
		defer func() { _ = conn.Close(context.Background()) }()
		var n int
		require.NoError(t, conn.QueryRow(context.Background(), `select count(*) from administrators`).Scan(&n))
		require.Equal(t, 3, n)
	})
}

// The service may write the read model, and its roles nothing else.
func TestRightsOfTheRoles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	denied := func(dsn, statement string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		defer func() { _ = conn.Close(context.Background()) }()
		_, err = conn.Exec(t.Context(), statement)
		require.ErrorContains(t, err, "42501", statement)
	}
	for _, statement := range []string{
		`create table mine ()`, `drop table archives`, `truncate archive_events`, `delete from administrators`,
		`update administrator_tokens set created_at = now()`,
	} {
		denied(b.db.ServiceDSN, statement)
	}
	for _, statement := range []string{
		`select token_hash from administrator_tokens`, `delete from archive_events`, `update archives set state = 'ready'`,
		`insert into administrators values ('x', '{}', now(), now())`, `delete from parked_messages`,
	} {
		denied(b.db.ReaderDSN, statement)
	}
}
