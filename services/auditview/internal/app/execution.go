package app

import (
	"context"
	"fmt"
	"time"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/services/auditview/internal/lineage"
)

// Execution is the header of an orchestrated run.
type Execution struct {
	ExecutionID  string
	ClientAppID  string
	Lineage      trace.Lineage // the swarm id is always known
	RunID        *string       // the authorization run that it belongs to
	LastPosition int64         // how many events it has
	Result       trace.Result
	// Version is the stream's: whatever is projected of an execution moves it.
	Version   int64
	CreatedAt time.Time
	LatestAt  time.Time // of the latest stored event, else CreatedAt
}

// SwarmID returns the id that its orchestrator calls it by.
func (x Execution) SwarmID() string { return *x.Lineage.SwarmID }

// ExecutionLink is where the authorization run of an execution belongs. ThreadID is nil
// without a thread, ConversationID without a verified link.
type ExecutionLink struct {
	ThreadID       *int64
	ConversationID *string
}

// LinkedExecution is an execution with its links.
type LinkedExecution struct {
	Execution
	ExecutionLink
}

// ExecutionRef is what somebody calls an execution by: a swarm id, or the id of its
// deployment, of the manager's deployment, of its correlation or of its authorization run.
// An exact swarm id wins. ClientAppID narrows; "" does not.
type ExecutionRef struct {
	ID          string
	ClientAppID string
}

// MaxCandidates bounds the executions that an ambiguous id is answered with.
const MaxCandidates = 100

// AmbiguousRunError says that an id means several executions.
type AmbiguousRunError struct {
	Candidates []Execution // the latest ones, at most MaxCandidates, the latest first
}

func (e *AmbiguousRunError) Error() string {
	return fmt.Sprintf("the id means several runs, %d of them are named", len(e.Candidates))
}

// Step is a stored event with the facts that its audit record is made of.
type Step struct {
	Position int64
	Event    trace.Event
	Task     trace.Task
	Decision trace.Decision // the stored one
	// Ahead tells that a fact is from a later version than the execution's: one that
	// a snapshot brought before its last part.
	Ahead bool
}

// ExecutionEvent is a stored event. What it does not say is nil.
type ExecutionEvent struct {
	Position        int64
	EventID         string
	EventType       string
	OccurredAt      string
	TaskID          *string
	AgentInstanceID *string
	AgentRole       *string
	UserID          *string
	ChannelID       *string
	Payload         string // a canonical JSON object of scalars
	DroppedFields   []string
	DroppedCount    int
	RecordedAt      time.Time
}

// Approval is an approval of an execution.
type Approval struct {
	ID    string
	Facts execution.Approval
}

// Grant is a grant of an execution.
type Grant struct {
	ID    string
	Facts execution.Grant
}

// Attempt is a callback attempt of an execution.
type Attempt struct {
	Position  int64
	ID        string
	Facts     execution.AttemptFacts
	Delivered bool
}

// Delivery is what all attempts for one event came to.
type Delivery struct {
	EventID    string
	Attempts   int64
	LastStatus string // JSON: a string or a number
	Delivered  bool   // by one of them
}

// DeliveryTotals counts the attempts of an execution and the events that they were for.
type DeliveryTotals struct {
	Attempts, Failed  int64
	Events, Delivered int64
}

// ExecutionStore is the part of ReadStore about executions.
type ExecutionStore interface {
	// Executions returns at most limit executions, the latest stored event first.
	Executions(ctx context.Context, filter ExecutionFilter, limit int) ([]LinkedExecution, error)
	// InExecution finds the execution that a ref means and calls read once; what facts
	// returns is as of the moment of x. The error is ErrRunNotFound, an AmbiguousRunError
	// or read's own. A long read holds a connection and a snapshot of the database.
	InExecution(ctx context.Context, ref ExecutionRef, read func(ctx context.Context, x Execution, facts ExecutionFacts) error) error
	// Usage sums what tasks used, at most limit keys.
	Usage(ctx context.Context, filter UsageFilter, limit int) ([]UsageSum, error)
}

// ExecutionFacts are the facts of one execution as of one moment. Not safe for concurrent
// use, and of no use after the read that it was given to.
type ExecutionFacts interface {
	// Link returns where the execution belongs.
	Link(ctx context.Context) (ExecutionLink, error)
	// Steps calls each for the events with after < position <= upTo in order. It costs the
	// same at the end of an execution as at its beginning.
	Steps(ctx context.Context, after, upTo int64, each func(Step)) error
	// Ahead reports whether any fact is from a later version than the execution's.
	Ahead(ctx context.Context) (bool, error)
	// Events returns the events with after < position <= upTo in order.
	Events(ctx context.Context, after, upTo int64) ([]ExecutionEvent, error)
	// Graph returns all tasks, and the events about hand-overs and retries, or
	// ErrTooLarge.
	Graph(ctx context.Context, most GraphBounds) ([]lineage.Task, []lineage.Event, error)
	// Approvals and Grants return at most limit of those whose ids are greater than after,
	// by id.
	Approvals(ctx context.Context, after string, limit int) ([]Approval, error)
	Grants(ctx context.Context, after string, limit int) ([]Grant, error)
	// Attempts returns at most limit attempts with greater positions than after, in order.
	Attempts(ctx context.Context, after int64, limit int) ([]Attempt, error)
	// Deliveries returns what all attempts for the events came to, by event id, and counts
	// all attempts.
	Deliveries(ctx context.Context, eventIDs []string) ([]Delivery, DeliveryTotals, error)
}

// GraphBounds bound what is read for one task graph.
type GraphBounds struct {
	Bytes  int // of the facts of tasks
	Edges  int // as tasks name them
	Events int
}
