package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/services/ingest/internal/app"
)

var errExecutionsUnavailable = refusal.New(refusal.RunsUnavailable, "runs are not available; apply migration 062")

// Executions implements [app.ExecutionStore] with pgx: a write costs two round trips, as
// an append does.
type Executions struct{ uow *UnitOfWork }

// NewExecutions returns the executions of the unit of work's database.
func NewExecutions(uow *UnitOfWork) *Executions { return &Executions{uow: uow} }

// Do implements [app.ExecutionStore].
func (s *Executions) Do(ctx context.Context, fn func(ctx context.Context, tx app.ExecutionTx) error) error {
	err := s.uow.transact(ctx, func(ctx context.Context, tx *transaction) error {
		return fn(ctx, executionTransaction{tx})
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "42703") {
		return errExecutionsUnavailable
	}
	return err
}

// executionTransaction implements [app.ExecutionTx] on a transaction.
type executionTransaction struct{ *transaction }

const (
	lockExecutionKey = `select pg_advisory_xact_lock(bz_lock_key('execution', $1))`
	clientEnabled    = `select enabled from bz_clients where app_id = $1`
	// Other clients' executions are neither found nor locked.
	lockExecution = `
		select execution_id, coalesce(manager_deployment_id, ''), coalesce(deployment_id, ''), coalesce(correlation_id, ''),
			coalesce(run_id::text, ''), last_position, task_count, stream_version, created_at
		from bz_executions where client_app_id = $1 and swarm_id = $2 for no key update`
	ownsRun = `select exists (select from bz_agent_client_runs where run_id = $1 and client_app_id = $2)`

	// What belongs to an execution is asked for in the round trip that finds it.
	ofExecution = ` where execution_id = (select execution_id from bz_executions where client_app_id = $1 and swarm_id = $2)`
	// Each id is a look-up of its own: a plan that was made while the table was small would
	// read all events of the run for every batch.
	usedExecutionEvents = `
		select e.event_id, e.event_hash from unnest($3::text[]) as q (event_id)
		cross join lateral (select event_id, event_hash from bz_execution_events` + ofExecution + ` and event_id = q.event_id limit 1) e`
	usedAttempts = `
		select a.attempt_id, a.facts::text from unnest($3::text[]) as q (attempt_id)
		cross join lateral (select attempt_id, facts from bz_execution_callback_attempts` + ofExecution + ` and attempt_id = q.attempt_id limit 1) a`
	lastAttempt = `select coalesce(max(position), 0) from bz_execution_callback_attempts` + ofExecution
)

// factStatements are the statements of one kind of facts.
type factStatements struct{ find, put string }

var factsOf = map[app.FactKind]factStatements{
	app.TaskFact:     newFactStatements("bz_execution_tasks", "task_id", ""),
	app.ApprovalFact: newFactStatements("bz_execution_approvals", "approval_id", "decided"),
	app.GrantFact:    newFactStatements("bz_execution_grants", "grant_id", "revoked"),
}

// newFactStatements writes the statements for a table whose facts are final where the
// column of that name is true; tasks have none.
func newFactStatements(table, id, final string) factStatements {
	column, value, update := "", "", ""
	if final != "" {
		column, value, update = ", "+final, ", $6", ", "+final+" = excluded."+final
	}
	return factStatements{
		find: `select facts::text from ` + table + ofExecution + ` and ` + id + ` = $3`,
		put: `insert into ` + table + ` (execution_id, ` + id + `, version, facts, recorded_at` + column + `)
			values ($1, $2, $3, $4, $5` + value + `)
			on conflict (execution_id, ` + id + `) do update
			set version = excluded.version, facts = excluded.facts, recorded_at = excluded.recorded_at` + update,
	}
}

// queueExecution queues what every write about one execution begins with: the lock of its
// client, whether that is enabled, and the execution's row under a lock.
func queueExecution(b *pgx.Batch, key app.ExecutionKey, out *app.LoadedExecution) {
	b.Queue(lockBindings, []string{"client"}, []string{key.ClientAppID})
	b.Queue(clientEnabled, key.ClientAppID).Query(func(rows pgx.Rows) error { return scanOne(rows, &out.ClientEnabled) })
	b.Queue(lockExecution, key.ClientAppID, key.SwarmID).Query(func(rows pgx.Rows) error {
		e := app.Execution{Key: key, Opening: execution.Opening{SwarmID: key.SwarmID}}
		o := &e.Opening
		found, err := scanRow(rows, &e.ID, &o.ManagerDeploymentID, &o.DeploymentID, &o.CorrelationID, &o.RunID,
			&e.LastPosition, &e.TaskCount, &e.StreamVersion, &e.CreatedAt)
		if found {
			out.Execution = &e
		}
		return err
	})
}

// LoadOpening implements [app.ExecutionTx].
func (t executionTransaction) LoadOpening(ctx context.Context, key app.ExecutionKey, runID identity.UUID) (app.LoadedOpening, error) {
	var out app.LoadedOpening
	err := t.read(ctx, func(b *pgx.Batch) {
		b.Queue(lockExecutionKey, key.ClientAppID+"/"+key.SwarmID)
		queueExecution(b, key, &out.LoadedExecution)
		if runID != "" {
			b.Queue(ownsRun, runID, key.ClientAppID).Query(func(rows pgx.Rows) error { return scanOne(rows, &out.OwnsRun) })
		}
	})
	return out, err
}

// LoadEvents implements [app.ExecutionTx].
func (t executionTransaction) LoadEvents(ctx context.Context, key app.ExecutionKey, eventIDs []string) (app.LoadedExecution, execution.EventHistory, error) {
	var out app.LoadedExecution
	h := execution.EventHistory{Stored: map[string][32]byte{}}
	err := t.read(ctx, func(b *pgx.Batch) {
		queueExecution(b, key, &out)
		b.Queue(usedExecutionEvents, key.ClientAppID, key.SwarmID, eventIDs).Query(func(rows pgx.Rows) error {
			return scanHashes(rows, h.Stored)
		})
	})
	return out, h, err
}

// LoadFact implements [app.ExecutionTx].
func (t executionTransaction) LoadFact(ctx context.Context, key app.ExecutionKey, kind app.FactKind, id string) (app.LoadedExecution, jsontext.Value, error) {
	var out app.LoadedExecution
	var facts string
	err := t.read(ctx, func(b *pgx.Batch) {
		queueExecution(b, key, &out)
		b.Queue(factsOf[kind].find, key.ClientAppID, key.SwarmID, id).Query(func(rows pgx.Rows) error { return scanOne(rows, &facts) })
	})
	if facts == "" {
		return out, nil, err
	}
	return out, jsontext.Value(facts), err
}

// LoadAttempts implements [app.ExecutionTx].
func (t executionTransaction) LoadAttempts(ctx context.Context, key app.ExecutionKey, attemptIDs []string) (app.LoadedExecution, execution.AttemptHistory, error) {
	var out app.LoadedExecution
	h := execution.AttemptHistory{Stored: map[string]jsontext.Value{}}
	err := t.read(ctx, func(b *pgx.Batch) {
		queueExecution(b, key, &out)
		b.Queue(lastAttempt, key.ClientAppID, key.SwarmID).Query(func(rows pgx.Rows) error { return scanOne(rows, &h.LastPosition) })
		b.Queue(usedAttempts, key.ClientAppID, key.SwarmID, attemptIDs).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var id, facts string
				if err := rows.Scan(&id, &facts); err != nil {
					return fmt.Errorf("read a callback attempt: %w", err)
				}
				h.Stored[id] = jsontext.Value(facts)
			}
			return rows.Err()
		})
	})
	return out, h, err
}

func scanHashes(rows pgx.Rows, into map[string][32]byte) error {
	for rows.Next() {
		var id string
		var stored []byte
		var hash [32]byte
		if err := rows.Scan(&id, &stored); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		if err := asHash(&hash, stored); err != nil {
			return err
		}
		into[id] = hash
	}
	return rows.Err()
}
