package database_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
)

// unusual returns roles whose names need quoting, removed at the test's end.
func unusual(t *testing.T, admin string) (database.Roles, map[string]string) {
	t.Helper()
	base := strings.ToLower(strings.ReplaceAll(t.Name(), "/", " "))
	r := database.Roles{
		Owner: base + ` "owner"`, Service: base + ` Service'`, Reader: base + ` reader;`, Database: base + ` "Data"`,
	}
	// PostgreSQL cuts names at 63 bytes.
	for _, name := range []string{r.Owner, r.Service, r.Reader, r.Database} {
		require.LessOrEqual(t, len(name), 63)
	}
	t.Cleanup(func() {
		exec(t, admin, `drop database if exists `+quote(r.Database)+` with (force)`)
		for _, role := range []string{r.Service, r.Reader, r.Owner} {
			exec(t, admin, `drop role if exists `+quote(role))
		}
	})
	return r, map[string]string{r.Owner: `o'"\ $1`, r.Service: "s", r.Reader: "r"}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func exec(t *testing.T, dsn, statement string) {
	t.Helper()
	require.NoError(t, try(dsn, statement))
}

func try(dsn, statement string) error {
	ctx := context.Background() // also used by cleanups, when a test's context has ended
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

func dsn(t *testing.T, admin, user, password, name string) string {
	t.Helper()
	derived, err := database.DSN(admin, user, password, name)
	require.NoError(t, err)
	return derived
}

// requireRights checks what Bootstrap promises.
func requireRights(t *testing.T, admin string, r database.Roles, passwords map[string]string) {
	t.Helper()
	owner := dsn(t, admin, r.Owner, passwords[r.Owner], r.Database)
	service := dsn(t, admin, r.Service, passwords[r.Service], r.Database)
	reader := dsn(t, admin, r.Reader, passwords[r.Reader], r.Database)
	for _, statement := range []string{`drop table if exists thing`, `create table thing ()`, `grant select on thing to ` + quote(r.Service)} {
		exec(t, owner, statement)
	}
	exec(t, service, `select from thing`)
	exec(t, reader, `select`)
	for _, refused := range []error{
		try(service, `create table mine ()`),
		try(service, `create temporary table mine ()`),
		try(service, `drop table thing`),
		try(service, `create schema mine`),
		try(service, `create role mine`),
		try(service, `create database mine`),
		try(service, `set role `+quote(r.Owner)),
		try(reader, `select from thing`),
		try(owner, `create role mine`),
		try(dsn(t, admin, database.Auditview.Service, pgtest.Password(database.Auditview.Service), r.Database), `select`),
	} {
		var pgErr *pgconn.PgError
		require.ErrorAs(t, refused, &pgErr)
		require.Contains(t, []string{"42501"}, pgErr.Code, pgErr.Message)
	}
}

func TestBootstrapIsIdempotentAndQuotesNames(t *testing.T) {
	t.Parallel()
	admin := pgtest.Server(t)
	r, passwords := unusual(t, admin)
	for range 2 {
		require.NoError(t, database.Bootstrap(t.Context(), admin, r, passwords))
		requireRights(t, admin, r, passwords)
	}
	// A new password is taken, a missing one keeps the old.
	passwords[r.Service] = "changed"
	require.NoError(t, database.Bootstrap(t.Context(), admin, r, map[string]string{r.Service: "changed"}))
	requireRights(t, admin, r, passwords)
	require.ErrorContains(t, try(dsn(t, admin, r.Service, "s", r.Database), `select`), "28P01")
}

func TestBootstrapRunsInParallel(t *testing.T) {
	t.Parallel()
	admin := pgtest.Server(t)
	r, passwords := unusual(t, admin)
	other := pgtest.New(t, database.Ingest, nil, -1)

	// Advisory locks reach no further than one database, so both ways in are tried.
	errs := make([]error, 12)
	var wg sync.WaitGroup
	for i := range errs {
		through := admin
		if i%2 == 1 {
			through = other.AdminDSN
		}
		wg.Go(func() { errs[i] = database.Bootstrap(t.Context(), through, r, passwords) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	requireRights(t, admin, r, passwords)
}

func TestBootstrapNeedsNoSuperuser(t *testing.T) {
	t.Parallel()
	super := pgtest.Server(t)
	r, passwords := unusual(t, super)
	operator := "operator of bootstrap"
	exec(t, super, `create role `+quote(operator)+` login createrole createdb password 'op'`)
	t.Cleanup(func() { exec(t, super, `drop role if exists `+quote(operator)) })
	t.Cleanup(func() {
		// What it made is dropped first; unusual's own clean-up then finds nothing.
		exec(t, super, `drop database if exists `+quote(r.Database)+` with (force)`)
		for _, role := range []string{r.Service, r.Reader, r.Owner} {
			exec(t, super, `drop role if exists `+quote(role))
		}
	})
	admin := dsn(t, super, operator, "op", "")
	for range 2 {
		require.NoError(t, database.Bootstrap(t.Context(), admin, r, passwords))
		requireRights(t, super, r, passwords)
		require.Error(t, try(dsn(t, super, operator, "op", r.Database), `select`), "the operator kept its way in")
	}
}

func TestBootstrapRefusesRolesThatGrantsDoNotBind(t *testing.T) {
	t.Parallel()
	admin := pgtest.Server(t)
	r, passwords := unusual(t, admin)
	require.NoError(t, database.Bootstrap(t.Context(), admin, r, passwords))
	for _, change := range [][2]string{
		{`alter role %s superuser`, `alter role %s nosuperuser`},
		{`alter role %s createrole`, `alter role %s nocreaterole`},
		{`grant ` + quote(r.Owner) + ` to %s`, `revoke ` + quote(r.Owner) + ` from %s`},
	} {
		exec(t, admin, fmt.Sprintf(change[0], quote(r.Service)))
		require.ErrorContains(t, database.Bootstrap(t.Context(), admin, r, passwords), "grants would not bind it")
		exec(t, admin, fmt.Sprintf(change[1], quote(r.Service)))
	}
	require.NoError(t, database.Bootstrap(t.Context(), admin, r, passwords))
}

func TestBootstrapRefusesAForeignDatabase(t *testing.T) {
	t.Parallel()
	admin := pgtest.Server(t)
	r, passwords := unusual(t, admin)
	exec(t, admin, `create database `+quote(r.Database))
	require.ErrorContains(t, database.Bootstrap(t.Context(), admin, r, passwords), "belongs to the role postgres")
}

func TestBootstrapErrorsHoldNoSecret(t *testing.T) {
	t.Parallel()
	admin := pgtest.Server(t)
	r, _ := unusual(t, admin)
	require.ErrorContains(t, database.Bootstrap(t.Context(), admin, r, nil), "no password was given")

	err := database.Bootstrap(t.Context(), admin, r, map[string]string{r.Owner: "geheim-ü"})
	require.ErrorContains(t, err, "printable ASCII")
	require.NotContains(t, err.Error(), "geheim")

	wrong := dsn(t, admin, "postgres", "geheim", "")
	err = database.Bootstrap(t.Context(), wrong, r, nil)
	require.ErrorContains(t, err, "28P01")
	require.NotContains(t, err.Error(), "geheim")
}

func TestBootstrapSendsVerifiersOnly(t *testing.T) {
	t.Parallel()
	admin := pgtest.Server(t)
	r, passwords := unusual(t, admin)
	secret := "geheim-geheim"
	passwords[r.Service] = secret
	require.NoError(t, database.Bootstrap(t.Context(), admin, r, passwords))

	conn, err := pgx.Connect(t.Context(), admin)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var stored string
	require.NoError(t, conn.QueryRow(t.Context(), `select rolpassword from pg_authid where rolname = $1`, r.Service).Scan(&stored))
	require.True(t, strings.HasPrefix(stored, "SCRAM-SHA-256$4096:"), stored)
	require.NotContains(t, stored, secret)
}
