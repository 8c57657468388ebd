package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/services/auditview/internal/adapters/postgres"
	"verbatim.internal/services/auditview/internal/app"
)

// bigRun is how many events the one big execution has.
const bigRun = 100_000

// manyExecutions are rows of many executions, of which the first is big, the 2999th linked,
// and some have a rare client, result, role, model, user or channel.
var manyExecutions = []string{
	`insert into executions
select ('60000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, case when n % 1000 = 7 then 'client-7' else 'client-0' end, 'swarm-' || n,
       'mgr-' || n / 10, 'dep-' || n, 'corr-' || n, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, case when n = 1 then 100000 else 1 end,
       case when n % 1000 = 8 then 'blocked' else 'success' end, 5, timestamptz '2026-01-01', timestamptz '2026-01-01' + n * interval '1 second'
from generate_series(1, 30000) n`,
	`insert into execution_events
select '60000000-0000-4000-8000-000000000001', p, 'ev-' || p, case when p % 10000 = 0 then 'task.retried' else 'task.running' end, '2026-01-01T00:00:00Z',
       't-' || p % 20000, null, null, null, null, case when p % 2 = 0 then '{}' else json_build_object('approval_id', 'ap-' || p % 5000) end, '{}', 0, now()
from generate_series(1, 100000) p`,
	`insert into execution_tasks
select '60000000-0000-4000-8000-000000000001', 't-' || n, 1, 'impl', 'gpt-x', 1, 1, 2, 1, 'u-0', 'c-0', timestamptz '2026-01-01' + n * interval '1 second', '{}'
from generate_series(0, 19999) n`,
	`insert into execution_tasks
select ('60000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 't-1', 1, case when n % 1000 = 9 then 'rare' else 'impl' end,
       case when n % 1000 = 9 then 'rare' end, 1, 1, 2, 1, 'u-0', 'c-0', timestamptz '2026-02-01' + n * interval '1 second', '{}'
from generate_series(2, 30000) n`,
	`insert into execution_approvals
select '60000000-0000-4000-8000-000000000001', 'ap-' || n, 1, 'approved', '{}' from generate_series(0, 4999) n`,
	`insert into execution_grants
select '60000000-0000-4000-8000-000000000001', 'g-' || n, 1, '{}' from generate_series(0, 4999) n`,
	`insert into execution_callback_attempts
select ('60000000-0000-4000-8000-' || lpad((n / 1000 + 1)::text, 12, '0'))::uuid, n % 1000 + 1, 'at-' || n, 'ev-' || n,
       '{"attempted_at":"2026-01-01T00:00:00Z","event_id":"ev","event_type":"task.failed","host":"h","port":1,"scheme":"https","status":200,"url_sha256":"ab"}'
from generate_series(0, 29999) n`,
	`insert into execution_attributions
select case when n % 2 = 0 then 'user' else 'channel' end, case when n % 1000 < 2 then 'rare' else 'usual' end,
       ('60000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid from generate_series(1, 30000) n`,
	`insert into runs (run_id, session_id, client_app_id, route_key, thread_id, client_conversation_id, client_turn_id, created_at)
select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, '40020000-e89b-42d3-a456-426614174000', 'client-0', 'route-0',
       n, 'conv-1', 'turn-' || n, timestamptz '2026-01-01' from generate_series(1, 30000) n`,
	`insert into run_links
select run_id, '40000000-e89b-42d3-a456-426614174000', 1, session_id, client_turn_id, thread_id from runs`,
	`vacuum analyze`,
}

// inBig reads something of the big execution.
func inBig(read func(ctx context.Context, facts app.ExecutionFacts) (int, error)) func(context.Context, *postgres.Store) (int, error) {
	return in("swarm-1", read)
}

func in(id string, read func(ctx context.Context, facts app.ExecutionFacts) (int, error)) func(context.Context, *postgres.Store) (int, error) {
	return func(ctx context.Context, s *postgres.Store) (shown int, err error) {
		err = s.InExecution(ctx, app.ExecutionRef{ID: id}, func(ctx context.Context, _ app.Execution, facts app.ExecutionFacts) error {
			shown, err = read(ctx, facts)
			return err
		})
		return shown, err
	}
}

func steps(after, upTo int64) func(ctx context.Context, facts app.ExecutionFacts) (int, error) {
	return func(ctx context.Context, facts app.ExecutionFacts) (shown int, err error) {
		err = facts.Steps(ctx, after, upTo, func(app.Step) { shown++ })
		return shown, err
	}
}

func list(filter app.ExecutionFilter) func(context.Context, *postgres.Store) (int, error) {
	return func(ctx context.Context, s *postgres.Store) (int, error) {
		page, err := s.Executions(ctx, filter, 101)
		return len(page), err
	}
}

func found(context.Context, app.ExecutionFacts) (int, error) { return 1, nil }

func executionReads() []indexedRead {
	at := func(s string) *time.Time {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			panic(err)
		}
		return &t
	}
	usage := func(by string) func(context.Context, *postgres.Store) (int, error) {
		return func(ctx context.Context, s *postgres.Store) (int, error) {
			sums, err := s.Usage(ctx, app.UsageFilter{By: by, Since: at("2026-02-01T01:00:00Z"), Until: at("2026-02-01T01:02:00Z")}, 10)
			return len(sums), err
		}
	}
	return []indexedRead{
		{"a swarm id", "executions_swarm_id_client_app_id_key", 1, 5, in("swarm-17", found)},
		{"a deployment", "executions_deployment", 1, 10, in("dep-17", found)},
		{"a correlation", "executions_correlation", 1, 10, in("corr-17", found)},
		{"an authorization run", "executions_run", 1, 10, in("00000000-0000-4000-8000-000000000017", found)},
		// Each of the 1,000 events looks up its task, every second one its approval.
		{"the first page of records", "execution_events_pkey", 1000, 3_000, inBig(steps(0, 1000))},
		{"the last page of records", "execution_events_pkey", 1000, 3_000, inBig(steps(bigRun-1000, bigRun))},
		{"one record", "execution_events_pkey", 1, 10, inBig(steps(bigRun/2, bigRun/2+1))},
		{"the last page of events", "execution_events_pkey", 200, 250, inBig(func(ctx context.Context, facts app.ExecutionFacts) (int, error) {
			events, err := facts.Events(ctx, bigRun-200, bigRun)
			return len(events), err
		})},
		{"the events of a graph", "execution_events_graph", 10, 20_100, inBig(func(ctx context.Context, facts app.ExecutionFacts) (int, error) {
			_, events, err := facts.Graph(ctx, app.GraphBounds{Bytes: 1 << 20, Edges: 1 << 20, Events: 100})
			return len(events), err
		})},
		{"the last page of approvals", "execution_approvals_pkey", 100, 120, inBig(func(ctx context.Context, facts app.ExecutionFacts) (int, error) {
			approvals, err := facts.Approvals(ctx, "ap-99", 100)
			return len(approvals) + 90, err
		})},
		{"a page of grants", "execution_grants_pkey", 101, 120, inBig(func(ctx context.Context, facts app.ExecutionFacts) (int, error) {
			grants, err := facts.Grants(ctx, "g-1", 101)
			return len(grants), err
		})},
		{"the last page of attempts", "execution_callback_attempts_pkey", 100, 120, inBig(func(ctx context.Context, facts app.ExecutionFacts) (int, error) {
			attempts, err := facts.Attempts(ctx, 900, 101)
			return len(attempts), err
		})},
		{"deliveries", "execution_callback_attempts_pkey", 1, 1_100, inBig(func(ctx context.Context, facts app.ExecutionFacts) (int, error) {
			events, _, err := facts.Deliveries(ctx, []string{"ev-7"})
			return len(events), err
		})},
		{"the list", "executions_latest", 101, 600, list(app.ExecutionFilter{})},
		{"a later page of the list", "executions_latest", 101, 600, list(app.ExecutionFilter{
			After: &app.ExecutionCursor{LatestAt: *at("2026-01-01T01:00:00Z"), ExecutionID: "60000000-0000-4000-8000-000000003600"},
		})},
		{"the list of a time", "executions_latest", 101, 600, list(app.ExecutionFilter{Since: at("2026-01-01T01:00:00Z"), Until: at("2026-01-01T02:00:00Z")})},
		{"the list of a client", "executions_client", 30, 200, list(app.ExecutionFilter{ClientAppID: "client-7"})},
		{"the list of a result", "executions_result", 30, 200, list(app.ExecutionFilter{Result: "blocked"})},
		{"the list of a role", "execution_tasks_role", 30, 250, list(app.ExecutionFilter{AgentRole: "rare"})},
		{"the list of a model", "execution_tasks_model", 30, 250, list(app.ExecutionFilter{ModelID: "rare"})},
		{"the list of a user", "execution_attributions_pkey", 30, 250, list(app.ExecutionFilter{UserID: "rare"})},
		{"the list of a usual user", "executions_latest", 101, 1_500, list(app.ExecutionFilter{UserID: "usual"})},
		{"the link of an execution", "run_links_pkey", 1, 10, in("swarm-2999", func(ctx context.Context, facts app.ExecutionFacts) (int, error) {
			_, err := facts.Link(ctx)
			return 1, err
		})},
		{"usage by user", "execution_tasks_used", 1, 130, usage(app.UsageByUser)},
		{"usage by channel", "execution_tasks_used", 1, 130, usage(app.UsageByChannel)},
		{"usage by role", "execution_tasks_used", 1, 130, usage(app.UsageByRole)},
		{"usage by model", "execution_tasks_used", 1, 130, usage(app.UsageByModel)},
		{"usage by client", "execution_tasks_used", 1, 260, usage(app.UsageByClient)},
	}
}

// Whatever is asked about executions is read from an index, little more of it than is
// shown, however often a statement was prepared: the last page costs what the first does.
func TestReadsOfExecutionsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fill(t, manyExecutions)
	b.byIndex(t, []string{
		"executions", "execution_events", "execution_tasks", "execution_attributions", "execution_approvals", "execution_grants",
		"execution_callback_attempts", "runs", "run_links",
	}, executionReads())
}

// BenchmarkAuditPage reads the first and the last page of 1,000 records of a big
// execution: the last costs what the first does.
func BenchmarkAuditPage(b *testing.B) {
	bundle := setup(b)
	bundle.fill(b, manyExecutions)
	reader := app.NewReader(bundle.store)
	for name, cursor := range map[string]int64{"first": 0, "last": bigRun - 1000} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				page, err := reader.Audit(b.Context(), app.ExecutionRef{ID: "swarm-1"}, cursor, 1000, func(string) bool { return false })
				require.NoError(b, err)
				require.Len(b, page.Records, 1000)
			}
		})
	}
}

// BenchmarkAuditStream reads all records of a big execution.
func BenchmarkAuditStream(b *testing.B) {
	bundle := setup(b)
	bundle.fill(b, manyExecutions)
	reader := app.NewReader(bundle.store)
	for b.Loop() {
		require.NoError(b, reader.AuditStream(b.Context(), app.ExecutionRef{ID: "swarm-1"}, 0,
			func(string) bool { return true }, func([]trace.Record) error { return nil }))
	}
	b.ReportMetric(float64(bigRun)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
