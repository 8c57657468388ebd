package app

import (
	"context"
	"time"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/run"
)

// Offered is a route that offers agent access, with what its agents are told.
type Offered struct {
	Route     identity.Route
	Workspace run.Workspace
}

// RunStore keeps the runs that agents open. Where its tables are missing every method
// answers with the refusal RunsUnavailable; nothing else is touched by that.
type RunStore interface {
	// Offered returns the bearer's session and client (nil for what does not exist) and the
	// enabled routes with agent access that the allowlists of both name, by key; only routeKey
	// unless that is "". It takes no locks.
	Offered(ctx context.Context, bearer identity.Bearer, routeKey string) (caller identity.Facts, routes []Offered, err error)
	// Do runs one transaction, as [UnitOfWork.Do] does.
	Do(ctx context.Context, fn func(ctx context.Context, tx RunTx) error) error
}

// LoadedTurn is what a turn is judged by.
type LoadedTurn struct {
	Facts        identity.Facts
	Instructions string // the route's, now
	ThreadID     int64  // the conversation's, 0 while it has none
	Stored       *StoredTurn
}

// StoredTurn is a turn that was answered before.
type StoredTurn struct {
	Opened
	InputHash [32]byte
}

// OwnRun is one run of the bearer's session, locked.
type OwnRun struct {
	identity.Run
	StreamVersion int64
}

// LoadedCompletion is what a completion is judged by.
type LoadedCompletion struct {
	Caller      identity.Facts // session and client
	Run         *OwnRun        // nil when the session has no such run
	History     run.CompletionHistory
	CompletedAt time.Time // of the stored completion
}

// LoadedTrace is what trace events are judged by.
type LoadedTrace struct {
	Caller  identity.Facts // session and client
	Run     *OwnRun        // nil when the session has no such run
	History run.TraceHistory
}

// RunTx is one transaction about runs. Loads take the locks of what authorizes the write
// (the client, then the route, by key), then that of the conversation's turns or of the
// run's row, and hold them until the end; writes are queued and sent with the commit, each
// with its outbox message. Not for concurrent use.
type RunTx interface {
	// LoadTurn returns what the turn is judged by. Turns of one (session, route, client
	// conversation) wait for each other here.
	LoadTurn(ctx context.Context, bearer identity.Bearer, routeKey string, turn run.Turn) (LoadedTurn, error)
	// NewThread makes the thread of a conversation that has none and returns its number,
	// which no other thread has or gets. A number may be lost with a rollback.
	NewThread(ctx context.Context, session identity.UUID, routeKey, conversation string, now time.Time) (int64, error)
	// InsertTurn queues a new run and the turn that opened it.
	InsertTurn(opened Opened, turn run.Turn) error
	// LoadCompletion returns what the completion of a run is judged by.
	LoadCompletion(ctx context.Context, bearer identity.Bearer, runID identity.UUID, messageID string) (LoadedCompletion, error)
	// InsertCompletion queues the completion of a run. The commit is refused with
	// AssistantMessageConflict when a rival in the thread takes the message id first.
	InsertCompletion(r OwnRun, c run.Completion, now time.Time) error
	// LoadTrace returns what trace events of a run are judged by.
	LoadTrace(ctx context.Context, bearer identity.Bearer, runID identity.UUID, batch []run.TraceEvent) (LoadedTrace, error)
	// InsertTrace queues new trace events of a run, numbered, and takes their jobs for it. The
	// commit is refused with TraceEventConflict when a rival takes a job first.
	InsertTrace(r OwnRun, fresh []run.TraceEvent, now time.Time) error
}
