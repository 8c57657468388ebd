package postgres

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/lineage"
)

// Graph implements app.ExecutionFacts. What is too large is noticed while it is read.
func (f *executionFacts) Graph(ctx context.Context, most app.GraphBounds) ([]lineage.Task, []lineage.Event, error) {
	tasks, err := f.tasks(ctx, most)
	if err != nil {
		return nil, nil, err
	}
	// The condition is the one of the index execution_events_graph.
	events, err := collect(ctx, f, func(row pgx.CollectableRow) (e lineage.Event, err error) {
		return e, row.Scan(&e.Position, &e.Type, &e.OccurredAt, &e.TaskID, &e.AgentInstanceID, &e.Payload)
	}, `
select position, event_type, occurred_at, task_id, agent_instance_id, payload::text
from execution_events
where execution_id = $1::uuid and position <= $2::integer and (event_type like 'handoff.%' or event_type = 'task.retried')
order by position
limit $3`, f.x.LastPosition, most.Events+1)
	if err == nil && len(events) > most.Events {
		err = app.ErrTooLarge
	}
	return tasks, events, err
}

func (f *executionFacts) tasks(ctx context.Context, most app.GraphBounds) ([]lineage.Task, error) {
	rows, err := f.tx.Query(ctx, `
select task_id, facts::text from execution_tasks where execution_id = $1::uuid order by task_id`, f.x.ExecutionID)
	if err != nil {
		return nil, readError(err)
	}
	defer rows.Close()
	var tasks []lineage.Task
	bytes, edges := 0, 0
	for rows.Next() {
		var t lineage.Task
		var stored []byte
		if err := rows.Scan(&t.ID, &stored); err != nil {
			return nil, readError(err)
		}
		if bytes += len(stored); bytes > most.Bytes {
			return nil, app.ErrTooLarge
		}
		if json.Unmarshal(stored, &t.Facts) != nil {
			return nil, errStoredFacts
		}
		if edges += 1 + len(t.Facts.ChildTaskIDs) + len(t.Facts.DependsOn); edges > most.Edges {
			return nil, app.ErrTooLarge
		}
		tasks = append(tasks, t)
	}
	return tasks, readError(rows.Err())
}
