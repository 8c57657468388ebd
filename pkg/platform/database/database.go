package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"verbatim.internal/pkg/platform/config"
)

// ErrMalformedDSN says that a data source name cannot be parsed. It is returned as it
// is, without the parser's own text, which quotes the name.
var ErrMalformedDSN = errors.New("database: the data source name is malformed")

// Config says how to reach a database and which limits its sessions have.
type Config struct {
	// DSN is a PostgreSQL URL or keyword/value string. Required.
	DSN config.Secret
	// MaxConns bounds the pool. Zero means the DSN's pool_max_conns or pgx's default,
	// the larger of 4 and the number of CPUs.
	MaxConns int32
	// ApplicationName is shown in pg_stat_activity. Empty means the DSN's own.
	ApplicationName string
	// LockTimeout ends a statement that waits longer for one lock. Zero means the server's setting.
	LockTimeout time.Duration
	// StatementTimeout ends a statement that runs longer. Zero means the server's setting.
	StatementTimeout time.Duration
	// IdleInTransactionTimeout ends a session that sits longer in an open transaction.
	// Zero means the server's setting.
	IdleInTransactionTimeout time.Duration
	// AsyncCommit lets commits return before they are on disk. A crash of the server may then
	// undo the last of them, so it is only for work that is safe to do again.
	AsyncCommit bool
	// Repeats says that whoever uses the pool repeats what fails: then a connection that has
	// rested is used without asking first whether it still works, which is a round trip.
	Repeats bool
	// Logger gets slow queries, without their values. Nil means slog.Default().
	Logger *slog.Logger
	// SlowQuery is the duration from which gorm's queries are logged. Zero means 500 ms.
	SlowQuery time.Duration
}

// DB is one pool, seen through pgx and through gorm. Both are safe for concurrent use.
type DB struct {
	// Pool is the pool itself, with pgx's statement cache and traced without parameters.
	Pool *pgxpool.Pool
	// Gorm runs over Pool. Its writes open no transaction of their own.
	Gorm *gorm.DB

	sql *sql.DB
}

// Open prepares a pool. It connects only when a connection is first needed, so it
// succeeds while the server is away. Its only errors are [ErrMalformedDSN] and a ctx
// that is done; ctx is not kept.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("database: open: %w", err)
	}
	pc, err := pgxpool.ParseConfig(cfg.DSN.Reveal())
	if err != nil {
		return nil, ErrMalformedDSN
	}
	if cfg.MaxConns > 0 {
		pc.MaxConns = cfg.MaxConns
		pc.MinConns = min(pc.MinConns, pc.MaxConns)
		pc.MinIdleConns = min(pc.MinIdleConns, pc.MaxConns)
	}
	params := pc.ConnConfig.RuntimeParams
	if cfg.ApplicationName != "" {
		params["application_name"] = cfg.ApplicationName
	}
	if cfg.AsyncCommit {
		params["synchronous_commit"] = "off"
	}
	setTimeout(params, "lock_timeout", cfg.LockTimeout)
	setTimeout(params, "statement_timeout", cfg.StatementTimeout)
	setTimeout(params, "idle_in_transaction_session_timeout", cfg.IdleInTransactionTimeout)
	if cfg.Repeats {
		pc.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	}
	pc.ConnConfig.Tracer = newTracer()
	// The pool's background work belongs to the pool, not to the caller's start-up deadline.
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), pc)
	if err != nil {
		return nil, ErrMalformedDSN
	}
	std := stdlib.OpenDBFromPool(pool)
	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: std}), &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		Logger:                 newQueryLog(cfg.Logger, cfg.SlowQuery),
	})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("database: open gorm: %w", err)
	}
	return &DB{Pool: pool, Gorm: orm, sql: std}, nil
}

// Close ends the pool. It waits for connections that are in use, so it comes after the
// work that uses them has ended. To close twice does nothing.
func (db *DB) Close() {
	// The only error that the pool's adapter has is that it was closed before.
	_ = db.sql.Close()
	db.Pool.Close()
}

// setTimeout sets a parameter in milliseconds, rounded up: below one it would mean "none".
func setTimeout(params map[string]string, name string, d time.Duration) {
	if d > 0 {
		ms := (d + time.Millisecond - 1) / time.Millisecond
		params[name] = strconv.FormatInt(int64(ms), 10)
	}
}
