package auditview

import (
	"context"
	"errors"
	"time"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/services/auditview/internal/adapters/postgres"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/clock"
	"verbatim.internal/services/auditview/internal/readmodel"
	auditviewsql "verbatim.internal/sql/auditview"
)

type (
	// Change says what applying a file did with one administrator.
	Change = app.Change
	// Token is a token that was generated. It is shown once and stored nowhere.
	Token = app.Token
	// Result is what applying a file of administrators did.
	Result = app.ApplyResult
)

// ApplyAdmins upserts the administrators of a file (YAML or JSON, of the form admins:
// [{name, token, permissions}]) in the database that dsn reaches as the service role: in
// one transaction, all of it or nothing. Who is not named stays as it is. A token is
// generated for whoever has none; the result is the only place it is in.
func ApplyAdmins(ctx context.Context, dsn config.Secret, file []byte) (Result, error) {
	return withStore(ctx, dsn, func(store *postgres.Store) (Result, error) {
		return app.NewAdministrators(store, clock.Now).Apply(ctx, file)
	})
}

// MigrateUp applies auditview's migrations up to version to, 0 for all. dsn reaches the
// database as its owner role.
func MigrateUp(ctx context.Context, dsn config.Secret, to int64) ([]migration.Applied, error) {
	return migration.Up(ctx, dsn.Reveal(), auditviewsql.FS, to)
}

// MigrateStatus compares the database with auditview's migrations.
func MigrateStatus(ctx context.Context, dsn config.Secret) (migration.State, error) {
	db, err := open(ctx, dsn)
	if err != nil {
		return migration.State{}, err
	}
	defer db.Close()
	return migration.Status(ctx, db.Pool, auditviewsql.FS)
}

// ParkedStream is a stream that waits because a message of it could never be applied.
type ParkedStream struct {
	// Kind and ID name the stream.
	Kind, ID string
	// FromVersion and ToVersion are the first and the last parked version.
	FromVersion, ToVersion int64
	// Count is the number of parked messages.
	Count int64
	// Error is the reason of the first that has one. It never quotes a conversation.
	Error string
	// Since is when the first one was parked.
	Since time.Time
}

// Relay is the receiving end of the relay.
type Relay struct {
	// Streams is the number of streams of which something is applied.
	Streams int64
	// Parked are the streams with parked messages, in key order.
	Parked []ParkedStream
}

// RelayStatus tells what is applied and what is parked. Any role that may read the read
// model can ask.
func RelayStatus(ctx context.Context, dsn config.Secret) (Relay, error) {
	return withStore(ctx, dsn, func(store *postgres.Store) (Relay, error) {
		streams, err := store.CountStreams(ctx)
		if err != nil {
			return Relay{}, err
		}
		parked, err := store.Parked(ctx)
		if err != nil {
			return Relay{}, err
		}
		relay := Relay{Streams: streams}
		for _, p := range parked {
			relay.Parked = append(relay.Parked, ParkedStream{
				Kind: p.Stream.Kind, ID: p.Stream.ID, FromVersion: p.FromVersion, ToVersion: p.ToVersion,
				Count: p.Count, Error: p.Error, Since: p.Since,
			})
		}
		return relay, nil
	})
}

// ReplayParked tries parked messages again, in order: all of them when stream is empty,
// else those of the stream with that id or kind/id. In each stream it stops at the first
// that still fails. It may run beside the service, and be repeated.
func ReplayParked(ctx context.Context, dsn config.Secret, stream string) (replayed, stillParked int, err error) {
	type counts struct{ replayed, still int }
	n, err := withStore(ctx, dsn, func(store *postgres.Store) (counts, error) {
		replayed, still, err := app.NewReplayer(store).Replay(ctx, stream)
		return counts{replayed, still}, err
	})
	return n.replayed, n.still, err
}

type (
	// Stream names a stream.
	Stream = readmodel.Stream
	// StreamState is how far a stream is.
	StreamState = app.StreamState
)

// Streams is what auditview has applied, for a comparison with ingest.
type Streams struct {
	*postgres.Store
	db *database.DB
}

// OpenStreams connects to the database that dsn reaches. Any role that may read the read
// model will do.
func OpenStreams(ctx context.Context, dsn config.Secret) (*Streams, error) {
	db, err := open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return &Streams{postgres.New(db, clock.Now), db}, nil
}

// Close ends the connections.
func (s *Streams) Close() { s.db.Close() }

func withStore[T any](ctx context.Context, dsn config.Secret, fn func(*postgres.Store) (T, error)) (T, error) {
	db, err := open(ctx, dsn)
	if err != nil {
		var zero T
		return zero, err
	}
	defer db.Close()
	return fn(postgres.New(db, clock.Now))
}

func open(ctx context.Context, dsn config.Secret) (*database.DB, error) {
	if dsn == "" {
		return nil, errors.New("no database is named: set VERBATIM_AUDITVIEW_DSN")
	}
	return database.Open(ctx, database.Config{DSN: dsn, MaxConns: 2, ApplicationName: "verbatim", LockTimeout: 30 * time.Second})
}
