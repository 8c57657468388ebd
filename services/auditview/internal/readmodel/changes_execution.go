package readmodel

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/domain/trace"
)

// ExecutionChanges is what one transaction does to executions, as sets. The sets are made
// in the order of the fields.
type ExecutionChanges struct {
	// Replaced are the executions whose snapshots were completed: events and attempts above
	// what is kept go first, and afterwards an execution must have exactly the events up to
	// its last position, and what its counts say.
	Replaced []ReplacedExecution
	// Opened are executions that must not exist yet.
	Opened []ExecutionState
	// Extended are executions that must exist.
	Extended []ExecutionProgress
	// Cleared are ranges of facts that go before others take their place.
	ClearedTasks, ClearedApprovals, ClearedGrants []FactRange
	// Tasks, Approvals and Grants take the place of what is not of a later version.
	Tasks, Approvals, Grants []Fact
	// Events must not exist yet; RestoredEvents may. So with the attempts.
	Events           []ExecutionEventChange
	RestoredEvents   []ExecutionEventChange
	Attempts         []AttemptChange
	RestoredAttempts []AttemptChange
	// Attributions may exist already; each is there once.
	Attributions []Attribution

	attributed map[Attribution]bool // of Attributions
}

// ExecutionState is an execution as a whole.
type ExecutionState struct {
	Execution    executionv1.Execution
	LastPosition int
	Result       trace.Result
	LatestAt     time.Time
	Version      int64
}

// ReplacedExecution is an execution as a snapshot, and what followed it, left it.
type ReplacedExecution struct {
	ExecutionState
	// Replace is an operator's word: attributions are made anew, and another execution of
	// this client's with this swarm id goes.
	Replace      bool
	KeepEvents   int // events above this position go
	KeepAttempts int // attempts above this position go
	// Counts are how many attempts there must be afterwards, and how many facts of each
	// kind there must be at least: those that a later word replaced were not sent.
	Counts executionv1.Counts
}

// ExecutionProgress is how far an execution went.
type ExecutionProgress struct {
	ExecutionID string
	Version     int64
	Events      *EventProgress // nil: no new events
}

// EventProgress is what new events are to their execution.
type EventProgress struct {
	Before, Last int          // where its events ended, and where they end now
	Result       trace.Result // trace.Info: as it was
	LatestAt     time.Time
}

// FactRange are the facts of an execution with an id greater than After and at most UpTo
// ("": to the end).
type FactRange struct {
	ExecutionID, After, UpTo string
}

// Fact is the last word about a task, an approval or a grant.
type Fact struct {
	ExecutionID string
	ID          string
	Version     int64
	Facts       jsontext.Value
	RecordedAt  time.Time
}

// ExecutionEventChange is an event of an execution.
type ExecutionEventChange struct {
	ExecutionID string
	Event       executionv1.Event
}

// AttemptChange is a callback attempt of an execution.
type AttemptChange struct {
	ExecutionID string
	Attempt     executionv1.CallbackAttempt
}

// Axes of attributions.
const (
	AxisUser    = "user"
	AxisChannel = "channel"
)

// Attribution says that an execution acted on somebody's behalf, or through a channel.
type Attribution struct {
	Axis, Value, ExecutionID string
}
