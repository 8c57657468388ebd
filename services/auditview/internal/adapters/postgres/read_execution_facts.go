package postgres

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/services/auditview/internal/app"
)

// errStoredFacts are facts that somebody changed by hand.
var errStoredFacts = errors.New("facts of an execution are not the JSON of their fields")

// executionFacts implements app.ExecutionFacts in one transaction.
type executionFacts struct {
	tx pgx.Tx
	x  app.Execution
}

// collect reads rows of one statement about the execution, whose id is $1.
func collect[T any](ctx context.Context, f *executionFacts, scan pgx.RowToFunc[T], statement string, args ...any) ([]T, error) {
	rows, err := f.tx.Query(ctx, statement, append([]any{f.x.ExecutionID}, args...)...)
	if err != nil {
		return nil, readError(err)
	}
	all, err := pgx.CollectRows(rows, scan)
	return all, readError(err)
}

// Link implements app.ExecutionFacts.
func (f *executionFacts) Link(ctx context.Context) (link app.ExecutionLink, err error) {
	err = f.tx.QueryRow(ctx, `
select `+sqlLinkColumns+`
from executions x`+sqlExecutionLink+`
where x.execution_id = $1`, f.x.ExecutionID).Scan(&link.ThreadID, &link.ConversationID)
	return link, readError(err)
}

// sqlSteps joins a window of events with what their records take from task and approval.
// The limits make each fact a look-up of its own, however the server prepared the
// statement: no page reads more facts than it shows. An event that names no approval looks
// none up, which a plan for a small table would otherwise do by reading all of it.
const sqlSteps = `
select e.position, e.event_type, e.occurred_at, e.task_id, e.agent_instance_id, e.approval_id, coalesce(e.decision, ''),
       t.agent_role, t.model_id, t.tool_count, coalesce(a.decision, ''), coalesce(greatest(t.version, a.version), 0)
from (
	select position, event_type, occurred_at, task_id, agent_instance_id,
	       payload ->> 'approval_id' as approval_id, payload ->> 'decision' as decision
	from execution_events
	where execution_id = $1::uuid and position > $2::integer and position <= $3::integer
	order by position
	offset 0
) e
left join lateral (
	select agent_role, model_id, tool_count, version
	from execution_tasks where execution_id = $1::uuid and task_id = e.task_id limit 1
) t on true
left join lateral (
	select decision, version
	from execution_approvals
	where e.approval_id is not null and execution_id = $1::uuid and approval_id = e.approval_id limit 1
) a on true
order by e.position`

// Steps implements app.ExecutionFacts.
func (f *executionFacts) Steps(ctx context.Context, after, upTo int64, each func(app.Step)) error {
	if after >= upTo {
		return nil
	}
	rows, err := f.tx.Query(ctx, sqlSteps, f.x.ExecutionID, after, upTo)
	if err != nil {
		return readError(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s app.Step
		var model *string
		var calls *int64
		var version int64
		if err := rows.Scan(
			&s.Position, &s.Event.Type, &s.Event.OccurredAt, &s.Event.TaskID, &s.Event.AgentInstanceID, &s.Event.ApprovalID,
			&s.Event.Decision, &s.Task.AgentRole, &model, &calls, &s.Decision, &version,
		); err != nil {
			return readError(err)
		}
		if model != nil {
			s.Task.Model = &trace.Model{ModelID: *model}
		}
		if calls != nil {
			s.Task.Tool = &trace.Tool{Count: *calls}
		}
		s.Ahead = version > f.x.Version
		each(s)
	}
	return readError(rows.Err())
}

// Ahead implements app.ExecutionFacts.
func (f *executionFacts) Ahead(ctx context.Context) (ahead bool, err error) {
	err = f.tx.QueryRow(ctx, `
select exists (select from execution_tasks where execution_id = $1 and version > $2)
    or exists (select from execution_approvals where execution_id = $1 and version > $2)`,
		f.x.ExecutionID, f.x.Version).Scan(&ahead)
	return ahead, readError(err)
}

// Events implements app.ExecutionFacts.
func (f *executionFacts) Events(ctx context.Context, after, upTo int64) ([]app.ExecutionEvent, error) {
	return collect(ctx, f, func(row pgx.CollectableRow) (e app.ExecutionEvent, err error) {
		return e, row.Scan(
			&e.Position, &e.EventID, &e.EventType, &e.OccurredAt, &e.TaskID, &e.AgentInstanceID, &e.AgentRole, &e.UserID,
			&e.ChannelID, &e.Payload, &e.DroppedFields, &e.DroppedCount, &e.RecordedAt,
		)
	}, `
select position, event_id, event_type, occurred_at, task_id, agent_instance_id, agent_role, user_id, channel_id,
       payload::text, dropped_fields, dropped_count, recorded_at
from execution_events
where execution_id = $1::uuid and position > $2::integer and position <= $3::integer
order by position`, after, upTo)
}

// Approvals implements app.ExecutionFacts.
func (f *executionFacts) Approvals(ctx context.Context, after string, limit int) ([]app.Approval, error) {
	return collect(ctx, f, func(row pgx.CollectableRow) (a app.Approval, err error) {
		return a, scanFacts(row, &a.Facts, &a.ID)
	}, `
select approval_id, facts::text from execution_approvals
where execution_id = $1::uuid and approval_id > $2::text
order by approval_id
limit $3`, after, limit)
}

// Grants implements app.ExecutionFacts.
func (f *executionFacts) Grants(ctx context.Context, after string, limit int) ([]app.Grant, error) {
	return collect(ctx, f, func(row pgx.CollectableRow) (g app.Grant, err error) {
		return g, scanFacts(row, &g.Facts, &g.ID)
	}, `
select grant_id, facts::text from execution_grants
where execution_id = $1::uuid and grant_id > $2::text
order by grant_id
limit $3`, after, limit)
}

// scanFacts reads a row that ends with facts.
func scanFacts(row pgx.CollectableRow, facts any, columns ...any) error {
	var stored []byte
	if err := row.Scan(append(columns, &stored)...); err != nil {
		return err
	}
	if json.Unmarshal(stored, facts) != nil {
		return errStoredFacts
	}
	return nil
}
