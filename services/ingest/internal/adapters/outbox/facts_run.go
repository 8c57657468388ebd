package outbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/contracts/runv1"
)

const (
	runColumns = `run_id::text, session_id::text, client_app_id, route_key, thread_id, client_conversation_id, client_turn_id, created_at`
	// Of a completion no hash goes out, nor the id of the message: only what administrators read.
	completionColumns = `run_id::text, status, coalesce(model, ''), coalesce(runtime, ''), usage::text, completed_at`
	traceColumns      = `e.position, e.event_id, e.event, e.occurred_at, coalesce(e.job_id::text, ''), e.metadata::text, e.dropped_fields, e.created_at`
)

const (
	runsByID        = `select ` + runColumns + ` from bz_agent_client_runs where run_id = any($1::uuid[])`
	completionsByID = `select ` + completionColumns + ` from bz_agent_run_completions where run_id = any($1::uuid[])`
	// The lateral join reads each range by the primary key.
	traceByRange = `
		select r.n, ` + traceColumns + `
		from unnest($1::int[], $2::uuid[], $3::int[], $4::int[]) as r (n, id, low, high)
		cross join lateral (
			select * from bz_agent_run_trace_events
			where run_id = r.id and position between r.low and r.high
		) e order by r.n, e.position`
)

// runNames are what rows name of runs.
type runNames struct {
	ids         []string
	completed   []string
	ranges      []string
	indexes     []int // the rows of ranges
	lows, highs []int
}

func (n *runNames) add(i int, r row) {
	switch r.eventType {
	case runv1.TypeRecorded:
		n.ids = append(n.ids, r.streamID)
	case runv1.TypeCompleted:
		n.completed = append(n.completed, r.streamID)
	default:
		if p, err := parsePayload[TracePayload](r); err == nil && p.inRange() {
			n.indexes, n.ranges = append(n.indexes, i), append(n.ranges, r.streamID)
			n.lows, n.highs = append(n.lows, p.FirstPosition), append(n.highs, p.LastPosition)
		}
	}
}

func (n *runNames) queue(b *pgx.Batch, f *facts) {
	if len(n.ids) > 0 {
		b.Queue(runsByID, n.ids).Query(f.scanRuns)
	}
	if len(n.completed) > 0 {
		b.Queue(completionsByID, n.completed).Query(f.scanCompletions)
	}
	if len(n.ranges) > 0 {
		b.Queue(traceByRange, n.indexes, n.ranges, n.lows, n.highs).Query(f.scanTrace)
	}
}

// runData makes the data of a row about a run.
func (f *facts) runData(i int, r row) (jsontext.Value, error) {
	switch r.eventType {
	case runv1.TypeRecorded:
		return runv1.Marshal(f.runs[r.streamID])
	case runv1.TypeCompleted:
		return runv1.Marshal(f.completions[r.streamID])
	default:
		p, err := parsePayload[TracePayload](r)
		if err != nil {
			return nil, err
		}
		if len(f.trace[i]) != p.LastPosition-p.FirstPosition+1 {
			return nil, errors.New("the trace events are not all stored")
		}
		return runv1.Marshal(runv1.TraceRecorded{RunID: r.streamID, Events: f.trace[i]})
	}
}

func (f *facts) scanRuns(rows pgx.Rows) error {
	for rows.Next() {
		var r runv1.Run
		if err := rows.Scan(runDest(&r)...); err != nil {
			return fmt.Errorf("read a run: %w", err)
		}
		r.CreatedAt = r.CreatedAt.UTC()
		f.runs[r.RunID] = r
	}
	return rows.Err()
}

func runDest(r *runv1.Run) []any {
	return []any{
		&r.RunID, &r.SessionID, &r.ClientAppID, &r.RouteKey, &r.ThreadID, &r.ClientConversationID, &r.ClientTurnID, &r.CreatedAt,
	}
}

func (f *facts) scanCompletions(rows pgx.Rows) error {
	for rows.Next() {
		c, err := scanCompletion(rows)
		if err != nil {
			return err
		}
		f.completions[c.RunID] = c
	}
	return rows.Err()
}

// scanCompletion reads a completion. A usage that cannot be read leaves it without a
// status, which no message may have.
func scanCompletion(row pgx.Row) (runv1.Completed, error) {
	var c runv1.Completed
	var usage *string
	if err := row.Scan(&c.RunID, &c.Status, &c.Model, &c.Runtime, &usage, &c.CompletedAt); err != nil {
		return c, fmt.Errorf("read a completion: %w", err)
	}
	c.CompletedAt = c.CompletedAt.UTC()
	if usage != nil {
		c.Usage = &runv1.Usage{}
		if err := json.Unmarshal([]byte(*usage), c.Usage, json.RejectUnknownMembers(true)); err != nil {
			c.Usage, c.Status = nil, ""
		}
	}
	return c, nil
}

func (f *facts) scanTrace(rows pgx.Rows) error {
	for rows.Next() {
		var n int
		e, err := scanTraceEvent(rows, &n)
		if err != nil {
			return err
		}
		f.trace[n] = append(f.trace[n], e)
	}
	return rows.Err()
}

// scanTraceEvent reads an event behind other columns.
func scanTraceEvent(row pgx.Row, before ...any) (runv1.TraceEvent, error) {
	var e runv1.TraceEvent
	var metadata string
	var createdAt time.Time
	dest := append(before, &e.Position, &e.EventID, &e.Event, &e.OccurredAt, &e.JobID, &metadata, &e.DroppedFields, &createdAt)
	if err := row.Scan(dest...); err != nil {
		return e, fmt.Errorf("read a trace event: %w", err)
	}
	e.Metadata, e.CreatedAt = jsontext.Value(metadata), createdAt.UTC()
	return e, nil
}
