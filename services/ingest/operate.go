package ingest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/contracts/headsv1"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/services/ingest/internal/adapters/outbox"
	"verbatim.internal/services/ingest/internal/adapters/postgres"
	"verbatim.internal/services/ingest/internal/adapters/system"
	"verbatim.internal/services/ingest/internal/app"
	"verbatim.internal/services/ingest/internal/registryfile"
	"verbatim.internal/sql"
)

type (
	// Change tells what became of one entry of a registry.
	Change = app.Change
	// Token is a generated secret, to be shown once.
	Token = app.Token
	// Result is what an application of a registry did.
	Result = app.RegistryResult
)

// Apply stores the registry file (YAML or JSON) in the database that dsn reaches
// as the service role: in one transaction, all of it or nothing. What the file
// does not name stays as it is. Tokens that the file does not give, and that
// were never given, are generated; the result is the only place they are in.
func Apply(ctx context.Context, dsn config.Secret, file []byte) (Result, error) {
	registry, err := registryfile.Parse(file)
	if err != nil {
		return Result{}, err
	}
	db, err := open(ctx, dsn)
	if err != nil {
		return Result{}, err
	}
	defer db.Close()
	waker := outbox.NewWaker() // of no relay: all partitions are somebody else's
	result, err := app.ApplyRegistry(ctx, postgres.NewRegistry(db.Gorm, waker), system.Clock{}, registry)
	if err != nil {
		return Result{}, err
	}
	// A notice that fails costs a second: the relay's safety net finds the rows.
	_ = outbox.NewNotifier(db.Pool, waker, slog.New(slog.DiscardHandler)).Flush(ctx)
	return result, nil
}

// MigrateUp applies ingest's migrations up to version to, 0 for all. dsn reaches
// the database as its owner role.
func MigrateUp(ctx context.Context, dsn config.Secret, to int64) ([]migration.Applied, error) {
	return migration.Up(ctx, dsn.Reveal(), sql.FS, to)
}

// MigrateStatus compares the database with ingest's migrations.
func MigrateStatus(ctx context.Context, dsn config.Secret) (migration.State, error) {
	db, err := open(ctx, dsn)
	if err != nil {
		return migration.State{}, err
	}
	defer db.Close()
	return migration.Status(ctx, db.Pool, sql.FS)
}

// Waiting is what one partition of the outbox still has to send.
type Waiting = outbox.Waiting

// RelayStatus returns the partitions of the outbox that have something to send.
func RelayStatus(ctx context.Context, dsn config.Secret) ([]Waiting, error) {
	return withPool(ctx, dsn, outbox.Status)
}

// ErrNoStream is a stream that ingest does not have.
var ErrNoStream = outbox.ErrNoStream

// Rebuild asks the relay to send streams whole, so that auditview replaces what
// it has of them: all when stream is empty, else the archive, run or registry
// change of that id (ErrNoStream when there is none). It returns how many it asked
// for; the relay sends them in its turn, and `RelayStatus` shows how far it is.
func Rebuild(ctx context.Context, dsn config.Secret, stream string) (int, error) {
	return withPool(ctx, dsn, func(ctx context.Context, pool *pgxpool.Pool) (int, error) {
		return outbox.Rebuild(ctx, pool, stream)
	})
}

// Head is a stream and the version that it has.
type Head = headsv1.Head

// Streams is what ingest has stored, for a comparison with auditview.
type Streams struct {
	*outbox.Streams
	db *database.DB
}

// OpenStreams connects to the database that dsn reaches as the service role.
func OpenStreams(ctx context.Context, dsn config.Secret) (*Streams, error) {
	db, err := open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return &Streams{outbox.NewStreams(db.Pool), db}, nil
}

// Close ends the connections.
func (s *Streams) Close() { s.db.Close() }

func withPool[T any](ctx context.Context, dsn config.Secret, fn func(context.Context, *pgxpool.Pool) (T, error)) (T, error) {
	db, err := open(ctx, dsn)
	if err != nil {
		var zero T
		return zero, err
	}
	defer db.Close()
	return fn(ctx, db.Pool)
}

func open(ctx context.Context, dsn config.Secret) (*database.DB, error) {
	if dsn == "" {
		return nil, errors.New("no database is named: set VERBATIM_INGEST_DSN")
	}
	return database.Open(ctx, database.Config{DSN: dsn, MaxConns: 2, ApplicationName: "verbatim", LockTimeout: 30 * time.Second})
}
