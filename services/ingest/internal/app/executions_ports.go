package app

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/identity"
)

// ExecutionKey names an execution to its client.
type ExecutionKey struct {
	ClientAppID string
	SwarmID     string
}

// Execution is one stored execution.
type Execution struct {
	ID            identity.UUID
	Key           ExecutionKey
	Opening       execution.Opening
	LastPosition  int // of its last event
	TaskCount     int
	StreamVersion int64
	CreatedAt     time.Time
}

// LoadedExecution is what every write about an execution is judged by.
type LoadedExecution struct {
	ClientEnabled bool
	Execution     *Execution // locked; nil when the client has no such execution
}

// LoadedOpening is what an opening is judged by.
type LoadedOpening struct {
	LoadedExecution
	OwnsRun bool // the authorization run is one of the client's
}

// FactKind is a kind of facts that later ones replace.
type FactKind int

// The kinds of facts.
const (
	TaskFact FactKind = iota
	ApprovalFact
	GrantFact
)

// PutFact is a fact that replaces what is stored.
type PutFact struct {
	Kind  FactKind
	ID    string
	Facts jsontext.Value
	Final bool // no other may come after it
}

// ExecutionStore keeps executions. Where its tables are missing it answers with the
// refusal RunsUnavailable.
type ExecutionStore interface {
	// Do runs one transaction, as [UnitOfWork.Do] does.
	Do(ctx context.Context, fn func(ctx context.Context, tx ExecutionTx) error) error
}

// ExecutionTx is one transaction about one execution. A load takes a shared lock of the
// client and then the lock of the execution's row, and holds them until the end: writers of
// one execution wait for each other there. Writes are queued and sent with the commit; each
// makes the next version of the execution's stream, with its outbox message. Not for
// concurrent use.
type ExecutionTx interface {
	// LoadOpening returns what an opening is judged by; runID may be "". Openings of one key
	// wait for each other here.
	LoadOpening(ctx context.Context, key ExecutionKey, runID identity.UUID) (LoadedOpening, error)
	// InsertExecution queues a new execution, and who opened it.
	InsertExecution(e Execution, by execution.Attribution) error
	// LoadEvents returns the execution and the hashes of those events that it has.
	LoadEvents(ctx context.Context, key ExecutionKey, eventIDs []string) (LoadedExecution, execution.EventHistory, error)
	// InsertEvents queues numbered events.
	InsertEvents(e Execution, fresh []execution.Event, now time.Time) error
	// LoadFact returns the execution and what is stored of one fact, nil for nothing.
	LoadFact(ctx context.Context, key ExecutionKey, kind FactKind, id string) (LoadedExecution, jsontext.Value, error)
	// PutFact queues a fact in place of what is stored; tasks is how many tasks there are then.
	PutFact(e Execution, f PutFact, tasks int, now time.Time) error
	// LoadAttempts returns the execution and the facts of those callback attempts that it has.
	LoadAttempts(ctx context.Context, key ExecutionKey, attemptIDs []string) (LoadedExecution, execution.AttemptHistory, error)
	// InsertAttempts queues numbered callback attempts.
	InsertAttempts(e Execution, fresh []execution.Attempt, now time.Time) error
}
