package database

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// bootstrapLock is the advisory lock that lets one Bootstrap at a time work through the
// same administration database.
const bootstrapLock int64 = 0x766274_626f6f74 // "vbt" "boot"

// bootstrapAttempts bounds the retries against a Bootstrap that works through another
// administration database: advisory locks reach no further than one database.
const bootstrapAttempts = 5

// Bootstrap makes the roles and the database of r, with the rights that everything else
// rests on: each role may log in and do nothing else in the cluster; the database and
// its schema public belong to the owner; only the three roles may connect; only the
// owner may create.
//
// adminDSN connects as a superuser or as a role with CREATEROLE and CREATEDB, to any
// database of a PostgreSQL 15 or later. passwords is keyed by role name; a role that
// exists keeps its password when it has no entry, a new one needs an entry. Only
// SCRAM-SHA-256 verifiers are sent, computed here, so that no password reaches the
// server's logs; passwords are printable ASCII.
//
// Bootstrap is idempotent and safe to run several times at once. Its steps commit one
// by one, because a database cannot be created in a transaction: after a crash at any
// point, another run completes it. It refuses a service or reader role that is a
// superuser, may create roles, or is a member of the owner role.
func Bootstrap(ctx context.Context, adminDSN string, r Roles, passwords map[string]string) error {
	if slices.Contains(append(r.names(), r.Database), "") {
		return errors.New("database: bootstrap: a role or the database has no name")
	}
	var err error
	for range bootstrapAttempts {
		if err = bootstrap(ctx, adminDSN, r, passwords); err == nil || !lostRace(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("database: bootstrap %s: %w", r.Database, err)
	}
	return nil
}

// lostRace tells that another run made or changed the same object at the same time.
func lostRace(err error) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	switch pgErr.Code {
	case "42710", "42P04", "23505": // the role or database is there by now
		return true
	case "XX000": // "tuple concurrently updated": two changes of one catalog row
		return true
	default:
		return false
	}
}

func bootstrap(ctx context.Context, adminDSN string, r Roles, passwords map[string]string) error {
	admin, err := connect(ctx, adminDSN, "")
	if err != nil {
		return err
	}
	defer closeConn(ctx, admin)
	// Session scope, since CREATE DATABASE takes no transaction; closing the connection releases it.
	if _, err := admin.Exec(ctx, `select pg_advisory_lock($1)`, bootstrapLock); err != nil {
		return fmt.Errorf("wait for another bootstrap: %w", err)
	}
	for _, role := range r.names() {
		if err := ensureRole(ctx, admin, role, passwords[role]); err != nil {
			return fmt.Errorf("role %s: %w", role, err)
		}
	}
	if err := refuseStrongRoles(ctx, admin, r); err != nil {
		return err
	}
	leave, err := joinOwner(ctx, admin, r.Owner)
	if err != nil {
		return fmt.Errorf("role %s: %w", r.Owner, err)
	}
	err = ensureDatabase(ctx, admin, r)
	if err == nil {
		err = ensureSchema(ctx, adminDSN, r)
	}
	return errors.Join(err, leave())
}

// connect opens one plain connection; an empty database keeps the DSN's.
func connect(ctx context.Context, dsn, database string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, ErrMalformedDSN
	}
	if database != "" {
		cfg.Database = database
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect as the administrator: %w", err)
	}
	return conn, nil
}

// closeConn says goodbye even when the caller's context has ended.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	_ = conn.Close(context.WithoutCancel(ctx))
}

// ensureRole makes a role that may log in. CREATE ROLE's defaults deny everything else,
// and an ALTER ROLE that repeats them needs a superuser even to say "no".
func ensureRole(ctx context.Context, admin *pgx.Conn, role, password string) error {
	var exists bool
	err := admin.QueryRow(ctx, `select exists (select from pg_catalog.pg_roles where rolname = $1)`, role).Scan(&exists)
	if err != nil {
		return fmt.Errorf("look it up: %w", err)
	}
	if password == "" {
		if !exists {
			return errors.New("it does not exist and no password was given for it")
		}
		return nil
	}
	verifier, err := scramVerifier(password)
	if err != nil {
		return err
	}
	verb := "create"
	if exists {
		verb = "alter"
	}
	// Utility statements take no parameters. The verifier's alphabet has no quotes.
	statement := fmt.Sprintf(`%s role %s login password '%s'`, verb, quote(role), verifier)
	if _, err := admin.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s it: %w", verb, err)
	}
	return nil
}

// refuseStrongRoles guards the premise of append-only by grant.
func refuseStrongRoles(ctx context.Context, admin *pgx.Conn, r Roles) error {
	rows, err := admin.Query(ctx, `
		select rolname from pg_catalog.pg_roles
		where rolname = any($1)
		  and (rolsuper or rolcreaterole or rolbypassrls or pg_catalog.pg_has_role(oid, $2, 'member'))
		order by rolname`, []string{r.Service, r.Reader}, r.Owner)
	if err != nil {
		return fmt.Errorf("check the roles: %w", err)
	}
	strong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("check the roles: %w", err)
	}
	if len(strong) > 0 {
		return fmt.Errorf("the role %s is a superuser, may create roles, or is a member of %s, so grants would not bind it; take that away first", strong[0], r.Owner)
	}
	return nil
}

// joinOwner makes the administrator a member of the owner role for as long as it has to
// act for it, unless it may already. A superuser always may.
func joinOwner(ctx context.Context, admin *pgx.Conn, owner string) (leave func() error, err error) {
	var (
		version int
		may     bool
	)
	err = admin.QueryRow(ctx, `select current_setting('server_version_num')::int`).Scan(&version)
	if err != nil {
		return nil, fmt.Errorf("ask for the server's version: %w", err)
	}
	// From 16 on a membership may lack the right to SET ROLE or to inherit: the one that
	// CREATE ROLE gives to its creator lacks both.
	options, check := "", `select pg_has_role($1, 'member')`
	if version >= 160000 {
		options, check = " with set true, inherit true", `select pg_has_role($1, 'set') and pg_has_role($1, 'usage')`
	}
	if err := admin.QueryRow(ctx, check, owner).Scan(&may); err != nil {
		return nil, fmt.Errorf("look for a membership: %w", err)
	}
	if may {
		return func() error { return nil }, nil
	}
	if _, err := admin.Exec(ctx, `grant `+quote(owner)+` to current_user`+options); err != nil {
		return nil, fmt.Errorf("act for it: %w", err)
	}
	return func() error {
		if _, err := admin.Exec(context.WithoutCancel(ctx), `revoke `+quote(owner)+` from current_user`); err != nil {
			return fmt.Errorf("stop acting for %s: %w", owner, err)
		}
		return nil
	}, nil
}

// ensureDatabase makes the database and says who may connect. Text sorts by code point,
// so that an index never depends on the operating system's collation version.
func ensureDatabase(ctx context.Context, admin *pgx.Conn, r Roles) error {
	var owner string
	err := admin.QueryRow(ctx, `select pg_catalog.pg_get_userbyid(datdba) from pg_catalog.pg_database where datname = $1`, r.Database).Scan(&owner)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		statement := `create database ` + quote(r.Database) + ` owner ` + quote(r.Owner) + ` template template0 encoding 'UTF8' lc_collate 'C'`
		if _, err := admin.Exec(ctx, statement); err != nil {
			return fmt.Errorf("create the database: %w", err)
		}
	case err != nil:
		return fmt.Errorf("look for the database: %w", err)
	case owner != r.Owner:
		return fmt.Errorf("the database exists and belongs to the role %s, not to %s", owner, r.Owner)
	}
	return actAs(ctx, admin, r.Owner,
		`revoke all on database `+quote(r.Database)+` from public`,
		`grant connect on database `+quote(r.Database)+` to `+quote(r.Service)+`, `+quote(r.Reader))
}

func ensureSchema(ctx context.Context, adminDSN string, r Roles) error {
	conn, err := connect(ctx, adminDSN, r.Database)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	return actAs(ctx, conn, r.Owner,
		`alter schema public owner to `+quote(r.Owner),
		`revoke create on schema public from public`,
		`grant usage on schema public to `+quote(r.Service)+`, `+quote(r.Reader))
}

// actAs runs statements as a role, in one transaction.
func actAs(ctx context.Context, conn *pgx.Conn, role string, statements ...string) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, statement := range append([]string{`set local role ` + quote(role)}, statements...) {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set rights as %s: %w", role, err)
	}
	return nil
}

func quote(identifier string) string { return pgx.Identifier{identifier}.Sanitize() }
