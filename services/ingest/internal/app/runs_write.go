package app

import (
	"context"
	"time"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/run"
)

// RunCompleted tells when a run was completed, and whether that was before this request.
type RunCompleted struct {
	At     time.Time
	Replay bool
}

// Complete stores how a run ended, once and for good, or acknowledges the same completion
// again. Only the session that owns the run may, also when its route is closed by now: what
// was begun may be ended. Errors are ErrUnauthorized, refusals (RunNotFound,
// RunCompletionConflict, AssistantMessageConflict, RunsUnavailable) or failures of the
// store; after a failure the caller repeats the completion unchanged.
func (s *Runs) Complete(ctx context.Context, bearer identity.Bearer, runID identity.UUID, c run.Completion) (RunCompleted, error) {
	var done RunCompleted
	err := s.store.Do(ctx, func(ctx context.Context, tx RunTx) error {
		loaded, err := tx.LoadCompletion(ctx, bearer, runID, c.AssistantMessageID)
		if err != nil {
			return err
		}
		if err := owns(bearer, loaded.Caller, loaded.Run); err != nil {
			return err
		}
		replay, err := c.Complete(loaded.History)
		if err != nil {
			return err
		}
		if replay {
			done = RunCompleted{At: loaded.CompletedAt, Replay: true}
			return nil
		}
		done = RunCompleted{At: s.clock.Now()}
		return tx.InsertCompletion(*loaded.Run, c, done.At)
	})
	return done, err
}

// TraceRecorded tells what became of trace events.
type TraceRecorded struct {
	Accepted     int // new ones
	Skipped      int // stored before, or twice in the batch
	LastPosition int // of the run's last event, after the batch
}

// RecordTrace stores what a host says happened in a run, all of the batch or nothing, also
// after the run's completion. Events that are stored already are skipped. Errors are
// ErrUnauthorized, refusals (RunNotFound, TraceEventConflict, RunLimit, RunsUnavailable) or
// failures of the store; after a failure the caller repeats the batch unchanged.
func (s *Runs) RecordTrace(ctx context.Context, bearer identity.Bearer, runID identity.UUID, batch []run.TraceEvent) (TraceRecorded, error) {
	var done TraceRecorded
	err := s.store.Do(ctx, func(ctx context.Context, tx RunTx) error {
		loaded, err := tx.LoadTrace(ctx, bearer, runID, batch)
		if err != nil {
			return err
		}
		if err := owns(bearer, loaded.Caller, loaded.Run); err != nil {
			return err
		}
		fresh, err := run.Record(runID, batch, loaded.History)
		if err != nil {
			return err
		}
		done = TraceRecorded{
			Accepted: len(fresh), Skipped: len(batch) - len(fresh), LastPosition: loaded.History.LastPosition + len(fresh),
		}
		if len(fresh) == 0 {
			return nil
		}
		return tx.InsertTrace(*loaded.Run, fresh, s.clock.Now())
	})
	return done, err
}

// owns refuses a bearer that no longer holds, and a run that is not its session's.
func owns(bearer identity.Bearer, caller identity.Facts, r *OwnRun) error {
	if !holds(bearer, caller) {
		return ErrUnauthorized
	}
	if r == nil || r.SessionID != bearer.SessionID || r.Binding.ClientAppID != bearer.ClientAppID {
		return run.ErrNotFound
	}
	return nil
}
