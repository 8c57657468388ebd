package database_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
)

const text = "what-the-user-said"

func noteTable() fstest.MapFS {
	return fstest.MapFS{"001_note.sql": {Data: []byte(`-- +goose Up
create table note (id bigint primary key, text text not null);
grant select, insert on note to verbatim_ingest;
`)}}
}

type note struct {
	ID   int64
	Text string
}

func (note) TableName() string { return "note" }

// syncBuffer takes log lines from several goroutines.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func open(t *testing.T, cfg database.Config) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db
}

func TestOpenSetsTheSessionsLimits(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t, database.Ingest, noteTable(), 0)
	db := open(t, database.Config{
		DSN: config.Secret(pg.ServiceDSN), MaxConns: 3, ApplicationName: "verbatim-test",
		LockTimeout: 1500 * time.Microsecond, StatementTimeout: time.Minute, IdleInTransactionTimeout: 2 * time.Second,
	})
	require.EqualValues(t, 3, db.Pool.Config().MaxConns)
	for name, want := range map[string]string{
		"application_name": "verbatim-test", "lock_timeout": "2ms", "statement_timeout": "1min", "idle_in_transaction_session_timeout": "2s",
	} {
		var got string
		require.NoError(t, db.Pool.QueryRow(t.Context(), `select current_setting($1)`, name).Scan(&got))
		require.Equal(t, want, got, name)
		require.NoError(t, db.Gorm.WithContext(t.Context()).Raw(`select current_setting(?)`, name).Scan(&got).Error)
		require.Equal(t, want, got, "%s, through gorm", name)
	}
}

func TestGormUsesThePool(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t, database.Ingest, noteTable(), 0)
	db := open(t, database.Config{DSN: config.Secret(pg.ServiceDSN), MaxConns: 1})

	conn, err := db.Pool.Acquire(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = db.Gorm.WithContext(ctx).Create(&note{1, text}).Error
	require.ErrorIs(t, err, context.DeadlineExceeded, "gorm had a connection beside the pool's only one")
	require.Equal(t, database.Transient, database.Classify(err))
	conn.Release()

	require.NoError(t, db.Gorm.WithContext(t.Context()).Create(&note{1, text}).Error)
	var got note
	require.NoError(t, db.Gorm.WithContext(t.Context()).First(&got, 1).Error)
	require.Equal(t, note{1, text}, got)
	require.EqualValues(t, 1, db.Pool.Stat().TotalConns())
	require.Equal(t, database.Permanent, database.Classify(db.Gorm.WithContext(t.Context()).Create(&note{1, text}).Error))
}

func TestOpenIsLazy(t *testing.T) {
	t.Parallel()
	db := open(t, database.Config{DSN: "postgres://u:geheim@127.0.0.1:1/db?sslmode=disable&pool_min_conns=0"})
	err := db.Gorm.WithContext(t.Context()).Exec(`select 1`).Error
	require.Equal(t, database.Transient, database.Classify(err))
	require.NotContains(t, err.Error(), "geheim")

	_, err = db.Pool.Exec(t.Context(), `select 1`)
	require.Equal(t, database.Transient, database.Classify(err))

	db.Close()
	_, err = db.Pool.Exec(t.Context(), `select 1`)
	require.Equal(t, database.Transient, database.Classify(err), "after Close: %v", err)
}

func TestQueriesAreLoggedWithoutValues(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t, database.Ingest, noteTable(), 0)
	var out syncBuffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	db := open(t, database.Config{DSN: config.Secret(pg.ServiceDSN), Logger: log, SlowQuery: time.Nanosecond})
	gorm := db.Gorm.WithContext(t.Context())

	require.NoError(t, gorm.Create(&note{1, text}).Error)
	require.Error(t, gorm.Create(&note{1, text}).Error)
	require.ErrorContains(t, gorm.Exec(`select ?::text::uuid`, text).Error, text, "the server no longer quotes values; the guard is moot")
	require.Error(t, gorm.Where("text = ?", text).First(&note{}, "no such column = ?", text).Error)
	var scanned string // through gorm's recorder, which has a filter of its own
	require.NoError(t, gorm.Raw(`select ?::text as scanned`, text).Scan(&scanned).Error)
	require.Equal(t, text, scanned)
	require.Contains(t, out.String(), "scanned")

	require.NotContains(t, out.String(), text)
	require.Contains(t, out.String(), `INSERT INTO`)
	require.Contains(t, out.String(), "SQLSTATE 23505")
	require.Contains(t, out.String(), "SQLSTATE 22P02")
}

// It is not parallel: the tracer provider is the process's.
//
//nolint:paralleltest // see above
func TestSpansHoldNoValues(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	defer otel.SetTracerProvider(before)

	pg := pgtest.New(t, database.Ingest, noteTable(), 0)
	db := open(t, database.Config{DSN: config.Secret(pg.ServiceDSN)})
	ctx, span := provider.Tracer("test").Start(t.Context(), "root")
	require.NoError(t, db.Gorm.WithContext(ctx).Create(&note{1, text}).Error)
	require.Error(t, db.Gorm.WithContext(ctx).Exec(`select ?::text::uuid`, text).Error)
	_, err := db.Pool.Exec(ctx, `select $1::text::uuid`, text)
	require.ErrorContains(t, err, text, "the caller keeps the server's words")
	span.End()

	stubs := tracetest.SpanStubsFromReadOnlySpans(recorder.Ended())
	require.Greater(t, len(stubs), 4)
	failed := 0
	for _, stub := range stubs {
		// Resource and scope are the process's own.
		raw, err := json.Marshal([]any{stub.Name, stub.Attributes, stub.Events, stub.Status})
		require.NoError(t, err)
		require.NotContains(t, string(raw), text)
		require.NotContains(t, string(raw), pgtest.Password(database.Ingest.Service))
		if bytes.Contains(raw, []byte("22P02")) {
			failed++
		}
	}
	require.Positive(t, failed, "the SQLSTATE is missing")
}
