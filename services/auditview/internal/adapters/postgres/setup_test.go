package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/auditview/internal/adapters/postgres"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/readmodel"
	"verbatim.internal/sql/auditview"
)

// bundle is a read model on a real server, and what projects into it.
type bundle struct {
	dsn       pgtest.Database
	db        *database.DB
	store     *postgres.Store
	projector *app.Projector
	admin     *pgxpool.Pool
}

var parkedAt = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

func now() time.Time { return parkedAt }

func setup(tb testing.TB) *bundle {
	tb.Helper()
	return setupTo(tb, 0)
}

// setupTo returns a read model that is migrated up to a version, 0 for all.
func setupTo(tb testing.TB, version int64) *bundle {
	tb.Helper()
	dsn := pgtest.New(tb, database.Auditview, auditview.FS, version)
	db, err := database.Open(tb.Context(), database.Config{DSN: config.Secret(dsn.ServiceDSN), MaxConns: 8})
	require.NoError(tb, err)
	tb.Cleanup(db.Close)
	admin, err := pgxpool.New(tb.Context(), dsn.AdminDSN)
	require.NoError(tb, err)
	tb.Cleanup(admin.Close)
	store := postgres.New(db, now)
	return &bundle{dsn: dsn, db: db, store: store, projector: app.NewProjector(store, nil), admin: admin}
}

func decode(events ...cloudevent.Event) []readmodel.Message {
	messages := make([]readmodel.Message, len(events))
	for i, e := range events {
		messages[i] = readmodel.Decode(e)
	}
	return messages
}

// apply delivers one batch, which must not fail.
func (b *bundle) apply(t require.TestingT, events ...cloudevent.Event) app.Result {
	result, err := b.projector.Apply(context.Background(), decode(events...))
	require.NoError(t, err)
	return result
}

var tables = []string{
	"streams", "archives", "archive_members", "archive_events", "run_links", "runs", "run_trace_events",
	"registry_changes", "parked_messages", "executions", "execution_events", "execution_tasks", "execution_attributions",
	"execution_approvals", "execution_grants", "execution_callback_attempts",
}

// content returns every byte of the read model.
func (b *bundle) content(t require.TestingT) string {
	var all strings.Builder
	for _, table := range tables {
		var rows string
		query := fmt.Sprintf(`select coalesce(string_agg(t::text, e'\n' order by t::text), '') from %s t`, table)
		if table == "streams" {
			query += ` where version > 0`
		}
		require.NoError(t, b.admin.QueryRow(context.Background(), query).Scan(&rows))
		fmt.Fprintf(&all, "%s:\n%s\n", table, rows)
	}
	return all.String()
}

func (b *bundle) clear(t require.TestingT) {
	b.exec(t, "truncate "+strings.Join(tables, ", "))
}

func (b *bundle) exec(t require.TestingT, statement string, args ...any) {
	_, err := b.admin.Exec(context.Background(), statement, args...)
	require.NoError(t, err)
}

// version returns the applied version of a stream.
func (b *bundle) version(t require.TestingT, id string) (version int64) {
	require.NoError(t, b.admin.QueryRow(context.Background(),
		`select coalesce((select version from streams where stream_id = $1), 0)`, id).Scan(&version))
	return version
}

func (b *bundle) parked(t require.TestingT) []app.ParkedStream {
	parked, err := b.store.Parked(context.Background())
	require.NoError(t, err)
	return parked
}

// statementCounter counts what a connection sends.
type statementCounter struct{ n int }

func (c *statementCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n++
	return ctx
}

func (c *statementCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *statementCounter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	c.n += data.Batch.Len()
	return ctx
}

func (c *statementCounter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (c *statementCounter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// traced returns a projector whose statements are counted.
func (b *bundle) traced(t *testing.T, counter *statementCounter) *app.Projector {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(b.dsn.ServiceDSN)
	require.NoError(t, err)
	cfg.ConnConfig.Tracer = counter
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return app.NewProjector(postgres.New(&database.DB{Pool: pool}, now), nil)
}
