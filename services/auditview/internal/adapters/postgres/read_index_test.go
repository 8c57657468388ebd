package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/services/auditview/internal/adapters/postgres"
	"verbatim.internal/services/auditview/internal/app"
)

// many rows: ten runs in each thread, the last of them large; five events of one job in
// each of some runs; changes of the registry, of which one kind has few.
var many = []string{
	`insert into runs (run_id, session_id, client_app_id, route_key, thread_id, client_conversation_id, client_turn_id, created_at, last_position)
select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, '40020000-e89b-42d3-a456-426614174000', 'client-0', 'route-0',
       case when n > 27000 then 2701 else n / 10 end, 'conv-1', 'turn-' || n, timestamptz '2026-01-01' + n * interval '1 second', 5
from generate_series(1, 30000) n`,
	`insert into archives values ('40000000-e89b-42d3-a456-426614174000', '40010000-e89b-42d3-a456-426614174000', 'conv-1',
	'40020000-e89b-42d3-a456-426614174000', 'client-0', 'route-0', 1, 1, 'ready', 1, 1, 0, 0, null, 0, now(), now())`,
	`insert into archive_members values ('40000000-e89b-42d3-a456-426614174000', '40020000-e89b-42d3-a456-426614174000', '')`,
	`insert into run_links
select run_id, '40000000-e89b-42d3-a456-426614174000', 1, session_id, client_turn_id, thread_id from runs`,
	`insert into run_trace_events
select ('00000000-0000-4000-8000-' || lpad((n / 5 + 1)::text, 12, '0'))::uuid, n % 5 + 1, 'e', 'tool.called', '2026-01-01T00:00:00Z',
       ('00000000-0000-4000-9000-' || lpad((n / 5 + 1)::text, 12, '0'))::uuid, '{}', 0, now()
from generate_series(0, 29999) n`,
	`insert into registry_changes
select gen_random_uuid(), n, case when n % 3000 = 1 then 'client' else 'session' end, 'name-' || n % 300, 'updated', '{}', '[]', 'operator', '', now()
from generate_series(1, 30000) n`,
	`vacuum analyze`,
}

// Every list and every trace reads from an index little more than what it shows, however
// often its statement was prepared and however many rows there are.
func TestReadsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fill(t, many)
	const run, job = "00000000-0000-4000-8000-000000002999", "00000000-0000-4000-9000-000000002999"
	last := int64(1 << 53)
	changes := func(filter app.RegistryFilter) func(context.Context, *postgres.Store) (int, error) {
		return func(ctx context.Context, s *postgres.Store) (int, error) {
			page, err := s.RegistryChanges(ctx, filter, 101, last)
			return len(page), err
		}
	}
	b.byIndex(t, []string{"runs", "run_links", "run_trace_events", "registry_changes"}, []indexedRead{
		{"threads", "runs_thread", 101, 2000, func(ctx context.Context, s *postgres.Store) (int, error) {
			page, err := s.Threads(ctx, 101, 2000)
			return len(page), err
		}},
		{"threads, with a large one", "runs_thread", 11, 4_000, func(ctx context.Context, s *postgres.Store) (int, error) {
			page, err := s.Threads(ctx, 11, last)
			return len(page), err
		}},
		{"a thread", "runs_thread", 10, 200, func(ctx context.Context, s *postgres.Store) (int, error) {
			_, runs, err := s.Thread(ctx, 1711, 101, 0)
			return len(runs), err
		}},
		{"the runs of a large thread", "runs_thread", 101, 4_000, func(ctx context.Context, s *postgres.Store) (int, error) {
			_, runs, err := s.Thread(ctx, 2701, 101, 0)
			return len(runs), err
		}},
		{"a run's trace", "run_trace_events_pkey", 5, 20, func(ctx context.Context, s *postgres.Store) (int, error) {
			_, events, _, err := s.Run(ctx, 299, run)
			return len(events), err
		}},
		{"a job's trace", "run_trace_events_job", 5, 20, func(ctx context.Context, s *postgres.Store) (int, error) {
			_, events, err := s.Job(ctx, job)
			return len(events), err
		}},
		{"changes", "registry_changes_number_key", 101, 120, changes(app.RegistryFilter{})},
		{"changes of a kind", "registry_changes_kind", 10, 20, changes(app.RegistryFilter{Kind: "client"})},
		{"changes of a name", "registry_changes_name", 100, 120, changes(app.RegistryFilter{Name: "name-7"})},
		{"changes of an entry", "registry_changes_entry", 10, 20, changes(app.RegistryFilter{Kind: "client", Name: "name-1"})},
	})
}

// indexedRead is a read that must come from an index.
type indexedRead struct {
	name, index string
	shown       int
	most        int64 // index entries that are read
	do          func(context.Context, *postgres.Store) (int, error)
}

// byIndex does each read so often that its statement is prepared, and requires that none
// reads a large table whole, or more of the indexes than it may.
func (b *bundle) byIndex(t *testing.T, large []string, reads []indexedRead) {
	t.Helper()
	for _, read := range reads {
		// More often than a prepared statement has plans of its own for its parameters.
		const times = 12
		before := b.counters(t, large, read.index)
		name := "reads of " + read.name
		db, err := database.Open(t.Context(), database.Config{DSN: config.Secret(b.dsn.ServiceDSN), MaxConns: 1, ApplicationName: name})
		require.NoError(t, err)
		store := postgres.New(db, now)
		for range times {
			shown, err := read.do(t.Context(), store)
			require.NoError(t, err, read.name)
			require.Equal(t, read.shown, shown, read.name)
		}
		db.Close()
		b.left(t, name)
		after := b.counters(t, large, read.index)
		require.Equal(t, before.sequential, after.sequential, "%s: no table is read whole", read.name)
		require.GreaterOrEqual(t, after.scans-before.scans, int64(times), "%s: by its index", read.name)
		require.LessOrEqual(t, after.entries-before.entries, times*read.most, "%s: little more than it shows", read.name)
	}
}

// counters are the server's: whole readings of large tables, scans of one index, and
// index entries that were read in large tables.
type counters struct{ sequential, scans, entries int64 }

func (b *bundle) counters(t *testing.T, large []string, index string) (c counters) {
	t.Helper()
	require.NoError(t, b.admin.QueryRow(t.Context(), `
select (select sum(seq_scan) from pg_stat_user_tables where relname = any($1)),
       (select idx_scan from pg_stat_user_indexes where indexrelname = $2),
       (select sum(idx_tup_read) from pg_stat_user_indexes where relname = any($1))`, large, index).Scan(&c.sequential, &c.scans, &c.entries))
	return c
}

// fill runs the statements in a session that has gone when it returns: what they read
// themselves, which the server counts late, is counted by then.
func (b *bundle) fill(tb testing.TB, statements []string) {
	tb.Helper()
	const name = "fill"
	cfg, err := pgx.ParseConfig(b.dsn.AdminDSN)
	require.NoError(tb, err)
	cfg.RuntimeParams["application_name"] = name
	conn, err := pgx.ConnectConfig(tb.Context(), cfg)
	require.NoError(tb, err)
	for _, statement := range statements {
		_, err := conn.Exec(tb.Context(), statement)
		require.NoError(tb, err)
	}
	require.NoError(tb, conn.Close(tb.Context()))
	b.left(tb, name)
}

// left waits until the sessions of an application have gone. They have told by then what
// they read.
func (b *bundle) left(tb testing.TB, application string) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		var gone bool
		err := b.admin.QueryRow(tb.Context(), `select not exists (select from pg_stat_activity where application_name = $1)`, application).Scan(&gone)
		return err == nil && gone
	}, 20*time.Second, time.Millisecond)
}
