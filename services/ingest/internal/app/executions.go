package app

import (
	"context"

	"verbatim.internal/pkg/domain/execution"
)

// Executions are the use cases of orchestrators, which tell what their runs of many
// sub-agents do. Every call names its execution by (client, swarm id); other clients'
// executions do not exist for it. All writes are all or nothing, and repeating one
// unchanged changes nothing. Safe for concurrent use.
type Executions struct {
	store ExecutionStore
	clock Clock
	ids   IDs
}

// NewExecutions returns the use cases over their ports.
func NewExecutions(store ExecutionStore, clock Clock, ids IDs) *Executions {
	return &Executions{store: store, clock: clock, ids: ids}
}

// Open opens an execution and freezes its lineage, or returns the one that the same opening
// opened before; concurrent identical openings give one. The authorization run, where one
// is named, is one of the client's. Errors are ErrUnauthorized, refusals (RunConflict,
// RunsUnavailable) or failures of the store; after a failure the caller repeats the
// opening unchanged.
func (s *Executions) Open(ctx context.Context, clientAppID string, o execution.Opening, by execution.Attribution) (e Execution, created bool, err error) {
	key := ExecutionKey{ClientAppID: clientAppID, SwarmID: o.SwarmID}
	err = s.store.Do(ctx, func(ctx context.Context, tx ExecutionTx) error {
		loaded, err := tx.LoadOpening(ctx, key, o.RunID)
		if err != nil {
			return err
		}
		created = false
		if !loaded.ClientEnabled {
			return ErrUnauthorized
		}
		if stored := loaded.Execution; stored != nil {
			e = *stored
			return o.Again(stored.Opening)
		}
		if o.RunID != "" && !loaded.OwnsRun {
			return execution.ErrRunLink
		}
		e = Execution{ID: s.ids.NewUUID(), Key: key, Opening: o, StreamVersion: 1, CreatedAt: s.clock.Now()}
		created = true
		return tx.InsertExecution(e, by)
	})
	return e, created, err
}

// Recorded tells what became of events or callback attempts.
type Recorded struct {
	Accepted     int // new ones
	Skipped      int // stored before, or twice in the request
	LastPosition int // of the execution's last one, after the request
}

// RecordEvents stores what happened in an execution, numbered in the order of storage
// without gaps, whoever else writes. Events that are stored already are skipped. Errors are
// ErrUnauthorized, refusals (RunNotFound, RunConflict, RunLimit, RunsUnavailable) or
// failures of the store; after a failure the caller repeats the batch unchanged.
func (s *Executions) RecordEvents(ctx context.Context, key ExecutionKey, batch []execution.Event) (Recorded, error) {
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].EventID
	}
	var done Recorded
	err := s.about(ctx, key, func(ctx context.Context, tx ExecutionTx) error {
		loaded, history, err := tx.LoadEvents(ctx, key, ids)
		if err != nil {
			return err
		}
		e, err := found(loaded)
		if err != nil {
			return err
		}
		history.CorrelationID, history.LastPosition = e.Opening.CorrelationID, e.LastPosition
		fresh, err := execution.Record(batch, history)
		if err != nil {
			return err
		}
		done = Recorded{Accepted: len(fresh), Skipped: len(batch) - len(fresh), LastPosition: e.LastPosition + len(fresh)}
		if len(fresh) == 0 {
			return nil
		}
		return tx.InsertEvents(e, fresh, s.clock.Now())
	})
	return done, err
}

// PutTask replaces what is known of a task, but for its parent, root and source once they
// are set, and reports whether that changed anything. Errors are ErrUnauthorized, refusals
// (RunNotFound, RunLimit, RunsUnavailable) or failures of the store; after a failure the
// caller repeats the task unchanged.
func (s *Executions) PutTask(ctx context.Context, key ExecutionKey, id string, t execution.Task) (changed bool, err error) {
	return s.put(ctx, key, TaskFact, id, t)
}

// PutApproval replaces what is known of an approval that is not decided yet, and reports
// whether that changed anything. Errors are ErrUnauthorized, refusals (RunNotFound,
// RunConflict, RunsUnavailable) or failures of the store; after a failure the caller
// repeats the approval unchanged.
func (s *Executions) PutApproval(ctx context.Context, key ExecutionKey, id string, a execution.Approval) (changed bool, err error) {
	return s.put(ctx, key, ApprovalFact, id, a)
}

// PutGrant replaces what is known of a grant that is not revoked yet, and reports whether
// that changed anything. Errors are ErrUnauthorized, refusals (RunNotFound, RunConflict,
// RunsUnavailable) or failures of the store; after a failure the caller repeats the grant
// unchanged.
func (s *Executions) PutGrant(ctx context.Context, key ExecutionKey, id string, g execution.Grant) (changed bool, err error) {
	return s.put(ctx, key, GrantFact, id, g)
}

func (s *Executions) put(ctx context.Context, key ExecutionKey, kind FactKind, id string, fact execution.Fact) (changed bool, err error) {
	err = s.about(ctx, key, func(ctx context.Context, tx ExecutionTx) error {
		changed = false
		loaded, stored, err := tx.LoadFact(ctx, key, kind, id)
		if err != nil {
			return err
		}
		e, err := found(loaded)
		if err != nil {
			return err
		}
		facts, differs, err := fact.Over(stored)
		if err != nil || !differs {
			return err
		}
		tasks := e.TaskCount
		if kind == TaskFact && stored == nil {
			if err := execution.MayAddTask(tasks); err != nil {
				return err
			}
			tasks++
		}
		changed = true
		return tx.PutFact(e, PutFact{Kind: kind, ID: id, Facts: facts, Final: fact.Final()}, tasks, s.clock.Now())
	})
	return changed, err
}

// RecordAttempts stores attempts to deliver callbacks, numbered as events are. Attempts
// that are stored already are skipped. Errors are ErrUnauthorized, refusals (RunNotFound,
// RunConflict, RunsUnavailable) or failures of the store; after a failure the caller
// repeats the attempts unchanged.
func (s *Executions) RecordAttempts(ctx context.Context, key ExecutionKey, attempts []execution.Attempt) (Recorded, error) {
	ids := make([]string, len(attempts))
	for i := range attempts {
		ids[i] = attempts[i].AttemptID
	}
	var done Recorded
	err := s.about(ctx, key, func(ctx context.Context, tx ExecutionTx) error {
		loaded, history, err := tx.LoadAttempts(ctx, key, ids)
		if err != nil {
			return err
		}
		e, err := found(loaded)
		if err != nil {
			return err
		}
		fresh, err := execution.RecordAttempts(attempts, history)
		if err != nil {
			return err
		}
		done = Recorded{Accepted: len(fresh), Skipped: len(attempts) - len(fresh), LastPosition: history.LastPosition + len(fresh)}
		if len(fresh) == 0 {
			return nil
		}
		return tx.InsertAttempts(e, fresh, s.clock.Now())
	})
	return done, err
}

// about runs a transaction about an execution that must exist: what no execution can be
// called is not asked for.
func (s *Executions) about(ctx context.Context, key ExecutionKey, fn func(ctx context.Context, tx ExecutionTx) error) error {
	if !execution.IsName(key.SwarmID) {
		return execution.ErrNotFound
	}
	return s.store.Do(ctx, fn)
}

// found returns the execution for the write, with the version that the write makes.
func found(loaded LoadedExecution) (Execution, error) {
	if !loaded.ClientEnabled {
		return Execution{}, ErrUnauthorized
	}
	if loaded.Execution == nil {
		return Execution{}, execution.ErrNotFound
	}
	e := *loaded.Execution
	e.StreamVersion++
	return e, nil
}
