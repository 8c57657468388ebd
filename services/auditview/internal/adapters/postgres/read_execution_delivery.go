package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/services/auditview/internal/app"
)

// sqlDelivered tells whether the status in facts says that a callback arrived: an HTTP
// status of class 2, or a word for success.
const sqlDelivered = `(facts ->> 'status' ~ '^2[0-9][0-9]$'
	or lower(facts ->> 'status') in ('delivered', 'success', 'succeeded', 'ok', 'completed', 'accepted'))`

// Attempts implements app.ExecutionFacts.
func (f *executionFacts) Attempts(ctx context.Context, after int64, limit int) ([]app.Attempt, error) {
	return collect(ctx, f, func(row pgx.CollectableRow) (a app.Attempt, err error) {
		return a, scanFacts(row, &a.Facts, &a.Position, &a.ID, &a.Delivered)
	}, `
select position, attempt_id, `+sqlDelivered+`, facts::text
from execution_callback_attempts
where execution_id = $1::uuid and position > $2::bigint
order by position
limit $3`, after, limit)
}

// Deliveries implements app.ExecutionFacts. The attempts are read once, all of them.
func (f *executionFacts) Deliveries(ctx context.Context, eventIDs []string) ([]app.Delivery, app.DeliveryTotals, error) {
	var totals app.DeliveryTotals
	deliveries, err := collect(ctx, f, func(row pgx.CollectableRow) (d app.Delivery, err error) {
		return d, row.Scan(
			&d.EventID, &d.Attempts, &d.LastStatus, &d.Delivered, &totals.Attempts, &totals.Failed, &totals.Events, &totals.Delivered,
		)
	}, `
with events as materialized (
	select event_id, count(*) as attempts, count(*) filter (where delivered) as arrived, max(position) as last
	from (select event_id, position, `+sqlDelivered+` as delivered from execution_callback_attempts where execution_id = $1::uuid) a
	group by event_id
), totals as (
	select coalesce(sum(attempts), 0)::bigint as attempts, coalesce(sum(attempts - arrived), 0)::bigint as failed,
	       count(*) as events, count(*) filter (where arrived > 0) as delivered
	from events
)
select e.event_id, e.attempts, a.facts -> 'status', e.arrived > 0, t.attempts, t.failed, t.events, t.delivered
from events e
cross join totals t
join lateral (
	select facts from execution_callback_attempts where execution_id = $1::uuid and position = e.last limit 1
) a on true
where e.event_id = any($2::text[])
order by e.event_id`, eventIDs)
	if err != nil || len(deliveries) > 0 {
		return deliveries, totals, err
	}
	return nil, totals, f.deliveryTotals(ctx, &totals)
}

// deliveryTotals counts where no event is shown.
func (f *executionFacts) deliveryTotals(ctx context.Context, totals *app.DeliveryTotals) error {
	err := f.tx.QueryRow(ctx, `
select coalesce(sum(attempts), 0)::bigint, coalesce(sum(attempts - arrived), 0)::bigint, count(*), count(*) filter (where arrived > 0)
from (
	select count(*) as attempts, count(*) filter (where `+sqlDelivered+`) as arrived
	from execution_callback_attempts where execution_id = $1::uuid
	group by event_id
) e`, f.x.ExecutionID).Scan(&totals.Attempts, &totals.Failed, &totals.Events, &totals.Delivered)
	return readError(err)
}

// errAxis is a programmer's error.
var errAxis = errors.New("usage is not summed by that")

// Usage implements app.ExecutionStore.
func (s *Store) Usage(ctx context.Context, filter app.UsageFilter, limit int) ([]app.UsageSum, error) {
	from := "execution_tasks t"
	var key string
	switch filter.By {
	case app.UsageByUser:
		key = "t.user_id"
	case app.UsageByChannel:
		key = "t.channel_id"
	case app.UsageByRole:
		key = "t.agent_role"
	case app.UsageByModel:
		key = "t.model_id"
	case app.UsageByClient:
		key, from = "x.client_app_id", from+" join executions x on x.execution_id = t.execution_id"
	default:
		return nil, errAxis
	}
	var c conditions
	if filter.Since != nil {
		c.add("t.used_at >= $%d::timestamptz", *filter.Since)
	}
	if filter.Until != nil {
		c.add("t.used_at < $%d::timestamptz", *filter.Until)
	}
	if filter.After != "" {
		c.add("("+key+" > $%d::text or "+key+" is null)", filter.After)
	}
	where := c.text("where")
	c.args = append(c.args, limit)
	rows, err := s.db.Pool.Query(ctx, `
select `+key+`, count(*), coalesce(sum(t.input_tokens), 0)::text, coalesce(sum(t.output_tokens), 0)::text,
       coalesce(sum(t.total_tokens), 0)::text, coalesce(sum(t.tool_count), 0)::text
from `+from+where+`
group by `+key+`
order by `+key+` nulls last
limit `+fmt.Sprintf("$%d::integer", len(c.args)), append([]any{planned}, c.args...)...)
	if err != nil {
		return nil, readError(err)
	}
	sums, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u app.UsageSum, err error) {
		return u, row.Scan(&u.Key, &u.Tasks, &u.InputTokens, &u.OutputTokens, &u.TotalTokens, &u.ToolCalls)
	})
	return sums, readError(err)
}
