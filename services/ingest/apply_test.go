package ingest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/ingest"
	"verbatim.internal/sql"
)

// actions counts what became of the entries.
func actions(r ingest.Result) map[string]int {
	n := map[string]int{}
	for _, c := range r.Changes {
		n[c.Action]++
	}
	return n
}

func TestApplyIsDeclarative(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	apply := func(file string) ingest.Result {
		t.Helper()
		r, err := ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(file))
		require.NoError(t, err)
		return r
	}
	require.Equal(t, map[string]int{"created": 5}, actions(apply(registry)))
	require.Equal(t, map[string]int{"unchanged": 5}, actions(apply(registry)))

	changed := apply(strings.Replace(registry, "name: Orders, agent_access: true", "name: Orders, agent_access: false", 1))
	require.Contains(t, changed.Changes, ingest.Change{Kind: "route", Name: "orders", Action: "updated", Fields: []string{"agent_access"}})

	rotated := apply(strings.Replace(registry, tokenA, "bha_ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ", 1))
	require.Contains(t, rotated.Changes, ingest.Change{Kind: "session", Name: sessionA, Action: "updated", Fields: []string{"access_token"}})
}

func TestApplyGeneratesATokenOnceAndStoresItsHashOnly(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	file := strings.Replace(registry, ", token: bhk_KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK", "", 1)
	first, err := ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(file))
	require.NoError(t, err)
	require.Len(t, first.Tokens, 1)
	require.Regexp(t, `^bhk_[A-Za-z0-9_-]{43}$`, first.Tokens[0].Value)
	second, err := ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(file))
	require.NoError(t, err)
	require.Empty(t, second.Tokens, "it is shown once")

	conn, err := pgx.Connect(t.Context(), db.AdminDSN)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	var stored int
	require.NoError(t, conn.QueryRow(t.Context(), `select count(*) from bz_client_tokens where token_hash = sha256($1::bytea)`,
		[]byte(first.Tokens[0].Value)).Scan(&stored))
	require.Equal(t, 1, stored)
}

func TestApplyIsAllOrNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	dsn := config.Secret(db.ServiceDSN)
	_, err := ingest.Apply(t.Context(), dsn, []byte(registry))
	require.NoError(t, err)
	broken := strings.Replace(registry, "name: Shop", "name: Renamed", 1)
	broken = strings.Replace(broken, "client_turn_id: t1", "client_turn_id: t2", 1)
	_, err = ingest.Apply(t.Context(), dsn, []byte(broken))
	require.ErrorContains(t, err, "a run never changes")
	after, err := ingest.Apply(t.Context(), dsn, []byte(registry))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"unchanged": 5}, actions(after))

	_, err = ingest.Apply(t.Context(), dsn, []byte(strings.ReplaceAll(registry, "client_app_id: shop", "client_app_id: nobody")))
	require.ErrorContains(t, err, "client nobody, which does not exist")
}

func TestARevocationIsFinal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dsn := config.Secret(b.db.ServiceDSN)
	revoked := strings.Replace(registry, "device_label: one,", "device_label: one, revoked_at: 2026-01-01T00:00:00Z,", 1)
	_, err := ingest.Apply(t.Context(), dsn, []byte(revoked))
	require.NoError(t, err)
	status, _ := b.post(t, tokenA, "", `{}`)
	require.Equal(t, http.StatusUnauthorized, status)
	_, err = ingest.Apply(t.Context(), dsn, []byte(registry)) // says nothing of a revocation
	require.NoError(t, err)
	status, _ = b.post(t, tokenA, "", `{}`)
	require.Equal(t, http.StatusUnauthorized, status)
}
