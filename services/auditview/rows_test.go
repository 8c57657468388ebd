package auditview_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/services/auditview/internal/historytest"
)

// rows writes to the read model by hand, where a history of messages would only hide what
// a test is about.
type rows struct {
	tb    testing.TB
	admin *pgx.Conn
}

func (b *bundle) rows(t *testing.T) rows {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), b.db.AdminDSN)
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	return rows{t, admin}
}

func (r rows) exec(statement string, args ...any) {
	r.tb.Helper()
	_, err := r.admin.Exec(context.Background(), statement, args...)
	require.NoError(r.tb, err)
}

// run writes the n-th run, of a thread, made n seconds after the start.
func (r rows) run(n int, thread int64) {
	r.tb.Helper()
	r.exec(`insert into runs (run_id, session_id, client_app_id, route_key, thread_id, client_conversation_id, client_turn_id, created_at)
values ($1, $2, 'client-0', 'route-0', $3, $4, $5, $6)`,
		historytest.RunID(n), historytest.SessionID(0), thread, fmt.Sprintf("conv-%d", thread), fmt.Sprintf("turn-%d", n), second(n))
}

// complete ends a run.
func (r rows) complete(n int, status string, after time.Duration) {
	r.tb.Helper()
	r.exec(`update runs set status = $2, model = 'gpt-x', runtime = 'codex/1.2', completed_at = created_at + $3::interval,
	usage = '{"input_tokens":9007199254740991,"cost_usd":0.10}' where run_id = $1`, historytest.RunID(n), status, after.String())
}

// event is a stored event of a run.
type event struct{ name, at, job, metadata string }

// events writes the events of a run and makes them visible.
func (r rows) events(run int, events ...event) {
	r.tb.Helper()
	for i, e := range events {
		var job *string
		if e.job != "" {
			job = &e.job
		}
		if e.metadata == "" {
			e.metadata = "{}"
		}
		r.exec(`insert into run_trace_events (run_id, position, event_id, event, occurred_at, job_id, metadata, dropped_fields, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			historytest.RunID(run), i+1, fmt.Sprintf("event-%d", i+1), e.name, e.at, job, e.metadata, i%2, historytest.Start)
	}
	r.exec(`update runs set last_position = $2 where run_id = $1`, historytest.RunID(run), len(events))
}

func second(n int) time.Time { return historytest.Start.Add(time.Duration(n) * time.Second) }

// jobID returns the n-th id of a job.
func jobID(n int) string { return historytest.ID(0x5000, n) }
