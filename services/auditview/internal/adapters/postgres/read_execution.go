package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/auditview/internal/app"
)

const (
	sqlExecutionColumns = `x.execution_id::text, x.client_app_id, x.swarm_id, x.manager_deployment_id, x.deployment_id, x.correlation_id,
	x.run_id::text, x.last_position, x.result, x.version, x.created_at, x.latest_at`

	// The authorization run of an execution x, which is its client's. A run whose link does
	// not hold is shown nowhere.
	sqlExecutionLink = `
left join runs r on r.run_id = x.run_id and r.client_app_id = x.client_app_id` + sqlVerifiedLink
	sqlLinkColumns = `case when l.run_id is null or m.conversation_id is not null then nullif(r.thread_id, 0) end, m.conversation_id::text`

	sqlLatestFirst = ` order by x.latest_at desc, x.execution_id desc`
)

// planned makes the server plan a statement for its values, whatever it has prepared: the
// best way to an execution depends on how rare a value is.
const planned = pgx.QueryExecModeCacheDescribe

// columns are where a row's values of sqlExecutionColumns go.
func columns(x *app.Execution) []any {
	return []any{
		&x.ExecutionID, &x.ClientAppID, &x.Lineage.SwarmID, &x.Lineage.ManagerDeploymentID, &x.Lineage.DeploymentID,
		&x.Lineage.CorrelationID, &x.RunID, &x.LastPosition, &x.Result, &x.Version, &x.CreatedAt, &x.LatestAt,
	}
}

func scanExecution(row pgx.CollectableRow) (x app.Execution, err error) {
	return x, row.Scan(columns(&x)...)
}

// conditions are those of a statement, with their values.
type conditions struct {
	where strings.Builder
	args  []any
}

// add joins a condition, in which %d is the number of its value.
func (c *conditions) add(condition string, value any) {
	c.args = append(c.args, value)
	if c.where.Len() > 0 {
		c.where.WriteString(" and ")
	}
	fmt.Fprintf(&c.where, condition, len(c.args))
}

// text returns the conditions after a keyword, or "" for none.
func (c *conditions) text(keyword string) string {
	if c.where.Len() == 0 {
		return ""
	}
	return " " + keyword + " " + c.where.String()
}

// Executions implements app.ExecutionStore. Each combination of filters is a statement of
// its own.
func (s *Store) Executions(ctx context.Context, filter app.ExecutionFilter, limit int) ([]app.LinkedExecution, error) {
	var c conditions
	for _, is := range []struct{ condition, value string }{
		{"x.client_app_id = $%d::text", filter.ClientAppID},
		{"x.result = $%d::text", filter.Result},
		{"x.execution_id in (select t.execution_id from execution_tasks t where t.agent_role = $%d::text)", filter.AgentRole},
		{"x.execution_id in (select t.execution_id from execution_tasks t where t.model_id = $%d::text)", filter.ModelID},
	} {
		if is.value != "" {
			c.add(is.condition, is.value)
		}
	}
	for _, of := range []struct{ axis, value string }{{"user", filter.UserID}, {"channel", filter.ChannelID}} {
		if of.value == "" {
			continue
		}
		condition, err := s.attributed(ctx, of.axis, of.value)
		if err != nil {
			return nil, readError(err)
		}
		c.add(condition, of.value)
	}
	if filter.Since != nil {
		c.add("x.latest_at >= $%d::timestamptz", *filter.Since)
	}
	if filter.Until != nil {
		c.add("x.latest_at < $%d::timestamptz", *filter.Until)
	}
	if after := filter.After; after != nil {
		c.args = append(c.args, after.ExecutionID)
		c.add(fmt.Sprintf("(x.latest_at, x.execution_id) < ($%%d::timestamptz, $%d::uuid)", len(c.args)), after.LatestAt)
	}
	where := c.text("where")
	c.args = append(c.args, limit)
	rows, err := s.db.Pool.Query(ctx, `
with page as (
	select x.* from executions x`+where+sqlLatestFirst+fmt.Sprintf(` limit $%d::integer`, len(c.args))+`
)
select `+sqlExecutionColumns+`, `+sqlLinkColumns+`
from page x`+sqlExecutionLink+sqlLatestFirst, append([]any{planned}, c.args...)...)
	if err != nil {
		return nil, readError(err)
	}
	executions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (x app.LinkedExecution, err error) {
		return x, row.Scan(append(columns(&x.Execution), &x.ThreadID, &x.ConversationID)...)
	})
	return executions, readError(err)
}

const (
	// sqlFew counts what is attributed to a value, up to one more than few. The orders make
	// each part stop early in its index.
	sqlFew = `
select (select count(*) from (select from execution_attributions where axis = '%[1]s' and value = $1 order by execution_id limit %[2]d) a)
     + (select count(*) from (select from execution_tasks where %[1]s_id = $1 order by execution_id limit %[2]d) t)`
	few = 500

	// A rare value leads to its executions. With a usual one they are met soon in the order
	// of the list, so each is asked for it; the union keeps the server from joining instead.
	sqlOfRare = `x.execution_id in (
		select a.execution_id from execution_attributions a where a.axis = '%[1]s' and a.value = $%%[1]d::text
		union all select t.execution_id from execution_tasks t where t.%[1]s_id = $%%[1]d::text)`
	sqlOfUsual = `exists (
		select from execution_attributions a where a.axis = '%[1]s' and a.value = $%%[1]d::text and a.execution_id = x.execution_id
		union all select from execution_tasks t where t.%[1]s_id = $%%[1]d::text and t.execution_id = x.execution_id)`
)

// attributed returns the condition that an execution x is attributed to a value, whose
// number is its only verb.
func (s *Store) attributed(ctx context.Context, axis, value string) (string, error) {
	var n int
	if err := s.db.Pool.QueryRow(ctx, fmt.Sprintf(sqlFew, axis, few+1), planned, value).Scan(&n); err != nil {
		return "", err
	}
	if n > few {
		return fmt.Sprintf(sqlOfUsual, axis), nil
	}
	return fmt.Sprintf(sqlOfRare, axis), nil
}

// InExecution implements app.ExecutionStore.
func (s *Store) InExecution(ctx context.Context, ref app.ExecutionRef,
	read func(ctx context.Context, x app.Execution, facts app.ExecutionFacts) error,
) error {
	tx, err := s.db.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return readError(err)
	}
	// Nothing was written, so that it does not matter how it ends.
	defer func() { _ = tx.Rollback(ctx) }()
	found, err := resolve(ctx, tx, ref)
	switch {
	case err != nil:
		return readError(err)
	case len(found) == 0:
		return app.ErrRunNotFound
	case len(found) > 1:
		return &app.AmbiguousRunError{Candidates: found}
	default:
		return read(ctx, found[0], &executionFacts{tx, found[0]})
	}
}

// resolve returns the executions that a ref may mean, at most app.MaxCandidates.
func resolve(ctx context.Context, tx pgx.Tx, ref app.ExecutionRef) ([]app.Execution, error) {
	find := func(condition string, args ...any) ([]app.Execution, error) {
		if ref.ClientAppID != "" {
			args = append(args, ref.ClientAppID)
			condition = fmt.Sprintf("(%s) and x.client_app_id = $%d::text", condition, len(args))
		}
		rows, err := tx.Query(ctx, `select `+sqlExecutionColumns+` from executions x where `+condition+sqlLatestFirst+
			fmt.Sprintf(` limit %d`, app.MaxCandidates), append([]any{planned}, args...)...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, scanExecution)
	}
	found, err := find(`x.swarm_id = $1::text`, ref.ID)
	if err != nil || len(found) > 0 {
		return found, err
	}
	condition := `x.deployment_id = $1::text or x.correlation_id = $1::text or x.manager_deployment_id = $1::text`
	if run, ok := identity.ParseUUID(ref.ID); ok {
		return find(condition+` or x.run_id = $2::uuid`, ref.ID, string(run))
	}
	return find(condition, ref.ID)
}
