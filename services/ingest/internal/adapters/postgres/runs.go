package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/services/ingest/internal/app"
)

var errRunsUnavailable = refusal.New(refusal.RunsUnavailable, "runs are not available; apply migration 061")

// Runs implements [app.RunStore] with pgx: a turn costs two round trips, as an append does,
// and one more when it makes its conversation's thread.
type Runs struct{ uow *UnitOfWork }

// NewRuns returns the runs of the unit of work's database.
func NewRuns(uow *UnitOfWork) *Runs { return &Runs{uow: uow} }

// Do implements [app.RunStore].
func (s *Runs) Do(ctx context.Context, fn func(ctx context.Context, tx app.RunTx) error) error {
	return runsUnavailable(s.uow.transact(ctx, func(ctx context.Context, tx *transaction) error {
		return fn(ctx, runTransaction{tx})
	}))
}

// runsUnavailable words a table or a column that is missing: before migration 061, and
// before 059 for what a route's agents are told.
func runsUnavailable(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "42703") {
		return errRunsUnavailable
	}
	return err
}

const (
	// The surface is there as a whole or not at all.
	runsThere = `select to_regclass('bz_agent_run_jobs') is not null`
	// A route is told apart here to keep the work small; the member check decides.
	offeredRoutes = `
		select ` + factColumns + `, r.route_key, r.name, coalesce(r.instructions, '')
		from bz_agent_sessions s
		join bz_clients c on c.app_id = $2
		left join bz_routes r on r.enabled and r.agent_access and (r.route_key = $3 or $3 = '')
			and ('*' = any(c.allowed_routes) or r.route_key = any(c.allowed_routes))
			and ('*' = any(s.allowed_routes) or r.route_key = any(s.allowed_routes))
		where s.session_id = $1
		order by r.route_key`
)

// Offered implements [app.RunStore].
func (s *Runs) Offered(ctx context.Context, bearer identity.Bearer, routeKey string) (identity.Facts, []app.Offered, error) {
	var there bool
	var caller identity.Facts
	var routes []app.Offered
	b := &pgx.Batch{}
	b.Queue(runsThere).QueryRow(func(row pgx.Row) error { return row.Scan(&there) })
	b.Queue(offeredRoutes, bearer.SessionID, bearer.ClientAppID, routeKey).Query(func(rows pgx.Rows) error {
		var err error
		caller, routes, err = scanOffered(rows, bearer)
		return err
	})
	err := s.uow.pool.SendBatch(ctx, b).Close()
	if err == nil && !there {
		err = errRunsUnavailable
	}
	return caller, routes, runsUnavailable(err)
}

func scanOffered(rows pgx.Rows, bearer identity.Bearer) (caller identity.Facts, routes []app.Offered, err error) {
	for rows.Next() {
		var f facts
		var key, name *string
		var o app.Offered
		if err := rows.Scan(append(f.dest(), &key, &name, &o.Workspace.Instructions)...); err != nil {
			return caller, nil, fmt.Errorf("read a route: %w", err)
		}
		binding := identity.Binding{ClientAppID: bearer.ClientAppID}
		if key != nil {
			binding.RouteKey = *key
		}
		if caller, err = f.identity(bearer.SessionID, binding); err != nil {
			return caller, nil, err
		}
		if key != nil && caller.Route != nil {
			o.Route, o.Workspace.RouteKey, o.Workspace.Name = *caller.Route, *key, *name
			routes = append(routes, o)
		}
	}
	return caller, routes, rows.Err()
}
