// Package migration applies numbered SQL files and tells which are applied.
//
// Services never migrate: an operator's command does, as the owner role. Services only
// ask for the [Status] and work before and after each step.
package migration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"verbatim.internal/pkg/platform/database"
)

const (
	table = goose.DefaultTablename

	lockPeriod   = 1   // seconds between two tries for the lock
	lockAttempts = 300 // so a run waits up to five minutes for another one

	// tableLockWait is how long a migration waits for a table that is in use; then others
	// pass for tableLockPause, and it tries again, tableLockAttempts times in all.
	tableLockWait     = 2 * time.Second
	tableLockPause    = time.Second
	tableLockAttempts = 100
	lockNotAvailable  = "55P03"

	grantLock int64 = 0x766274_6772616e // "vbt" "gran"
)

// Set is one database's migrations: files NNN_name.sql at the root of FS, each with
// goose's Up section only.
type Set struct {
	FS fs.FS
}

// Applied is one migration that a run applied.
type Applied struct {
	// Version is the file's number.
	Version int64
	// Name is the file's name.
	Name string
	// Duration is how long it took.
	Duration time.Duration
}

// State is what a database has of a set of migrations.
type State struct {
	// Current is the highest version that is applied, 0 for none.
	Current int64
	// Pending names the files that are not applied, in order.
	Pending []string
	// Unknown has the applied versions that the set does not know: a newer release was here.
	Unknown []int64
}

// Up applies fsys's migrations in order, up to version to, which must exist; 0 means
// all. dsn connects as the owner role, directly (a session lock does not pass a
// transaction pooler).
//
// Each file runs in a transaction of its own, together with the note that it is applied,
// unless it says otherwise (goose's NO TRANSACTION). A crash leaves whole migrations
// applied; the next run goes on. Runs at the same time wait for each other, for up to
// five minutes. Whoever may connect may read the table of versions, so that services can
// report their status.
//
// A migration that needs a table which is in use, by a backup for one, waits two seconds
// at a time and lets others pass in between, for five minutes in all.
//
// With an error, the migrations that were applied before it are returned too. The error
// holds no part of dsn.
func Up(ctx context.Context, dsn string, fsys fs.FS, to int64) ([]Applied, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, database.ErrMalformedDSN
	}
	files, err := list(fsys)
	if err != nil {
		return nil, err
	}
	if to != 0 && !slices.ContainsFunc(files, func(f file) bool { return f.version == to }) {
		return nil, fmt.Errorf("migration: there is no version %d", to)
	}
	cfg.RuntimeParams["lock_timeout"] = strconv.FormatInt(tableLockWait.Milliseconds(), 10)
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPeriod, lockAttempts))
	if err != nil {
		return nil, fmt.Errorf("migration: prepare the lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, fsys,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("migration: read the files: %w", err)
	}
	// Makes the table of versions. It is published before the first migration, so that
	// services can tell their status while one runs or after one failed.
	if _, err := provider.GetDBVersion(ctx); err != nil {
		return nil, fmt.Errorf("migration: prepare the table of versions: %w", err)
	}
	if err := publish(ctx, db); err != nil {
		return nil, fmt.Errorf("migration: let services read the versions: %w", err)
	}
	return apply(ctx, provider, to)
}

// apply runs the provider until nothing is left. A migration that waits for a table
// makes everybody after it wait too, so it waits shortly, lets the others pass, and
// tries again.
func apply(ctx context.Context, provider *goose.Provider, to int64) ([]Applied, error) {
	var applied []Applied
	for attempt := 1; ; attempt++ {
		var results []*goose.MigrationResult
		var err error
		if to == 0 {
			results, err = provider.Up(ctx)
		} else {
			results, err = provider.UpTo(ctx, to)
		}
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			results = partial.Applied
		}
		for _, r := range results {
			applied = append(applied, Applied{Version: r.Source.Version, Name: r.Source.Path, Duration: r.Duration})
		}
		var pg *pgconn.PgError
		if err == nil {
			return applied, nil
		}
		if !errors.As(err, &pg) || pg.Code != lockNotAvailable || attempt == tableLockAttempts {
			return applied, fmt.Errorf("migration: apply: %w", err)
		}
		select {
		case <-time.After(tableLockPause):
		case <-ctx.Done():
			return applied, fmt.Errorf("migration: apply: %w", ctx.Err())
		}
	}
}

// publish lets everyone who may connect read the table of versions.
func publish(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	// Two GRANTs at once fail on the same catalog row.
	if _, err := tx.ExecContext(ctx, `select pg_advisory_xact_lock($1)`, grantLock); err != nil {
		return err
	}
	var granted bool
	err = tx.QueryRowContext(ctx, `select has_table_privilege('public', $1::regclass, 'select')`, table).Scan(&granted)
	if err != nil {
		return err
	}
	if !granted {
		if _, err := tx.ExecContext(ctx, `grant select on `+table+` to public`); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Status compares a database with fsys's migrations. It only reads, takes no lock that
// anyone waits for, and any role that may connect can ask. A database that was never
// migrated has nothing applied.
func Status(ctx context.Context, pool *pgxpool.Pool, fsys fs.FS) (State, error) {
	files, err := list(fsys)
	if err != nil {
		return State{}, err
	}
	versions, err := versions(ctx, pool)
	if err != nil {
		return State{}, fmt.Errorf("migration: read the versions: %w", err)
	}
	var state State
	if n := len(versions); n > 0 {
		state.Current = versions[n-1]
	}
	for _, f := range files {
		if !slices.Contains(versions, f.version) {
			state.Pending = append(state.Pending, f.name)
		}
	}
	for _, v := range versions {
		if !slices.ContainsFunc(files, func(f file) bool { return f.version == v }) {
			state.Unknown = append(state.Unknown, v)
		}
	}
	return state, nil
}

// versions returns the applied versions in order, without goose's own version 0.
func versions(ctx context.Context, pool *pgxpool.Pool) ([]int64, error) {
	var exists bool
	if err := pool.QueryRow(ctx, `select to_regclass($1) is not null`, table).Scan(&exists); err != nil || !exists {
		return nil, err
	}
	// A version that was rolled back has a later row that says so.
	rows, err := pool.Query(ctx, `
		select version_id from (
			select distinct on (version_id) version_id, is_applied from `+table+` order by version_id, id desc
		) latest
		where is_applied and version_id > 0
		order by version_id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

type file struct {
	version int64
	name    string
}

// list returns the set's files in the order of their versions.
func list(fsys fs.FS) ([]file, error) {
	names, err := fs.Glob(fsys, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("migration: list the files: %w", err)
	}
	files := make([]file, 0, len(names))
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("migration: %s is not named NNN_name.sql: %w", name, err)
		}
		files = append(files, file{version, name})
	}
	slices.SortFunc(files, func(a, b file) int { return int(a.version - b.version) })
	return files, nil
}
