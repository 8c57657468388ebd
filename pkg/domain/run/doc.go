// Package run holds the rules of runs that agents open themselves: what a turn, a
// completion and a trace event may say, what makes two of them the same, and what of
// them may be kept.
//
// A run's state is small. It is opened by a turn; it is completed at most once; trace
// events are added before and after that, numbered 1, 2, 3 … in the order of their
// arrival. Everything may be repeated: the same again changes nothing, something else
// under the same name is refused.
//
// Texts pass through this package and leave it as SHA-256 only. It is pure: callers bring
// what is stored, read under locks.
package run

import "verbatim.internal/pkg/domain/refusal"

// Limits.
const (
	// MaxPageContextBytes is the size of a page context in its canonical form.
	MaxPageContextBytes = 16 << 10
	// MaxRenderers is how many renderers a turn may name.
	MaxRenderers = 32
	// MaxBatchEvents is how many trace events one request may carry.
	MaxBatchEvents = 200
	// MaxTraceEvents is how many trace events a run may have.
	MaxTraceEvents = 2000
	// MaxSafeInteger is 2^53-1, the largest integer every JSON reader keeps.
	MaxSafeInteger = 1<<53 - 1
	// maxTextUnits is beyond any text that a request can carry: its own limit is the body's.
	maxTextUnits = 512 << 10
)

// The refusals of this package; see [refusal.CodeOf].
var (
	errTurn        = refusal.New(refusal.InvalidRequest, "a turn has identifiers, a visible user input, a page context that is an object, and known forms of renderers")
	errPageContext = refusal.New(refusal.RunLimit, "a page context has at most 16 KiB")
	// ErrTurn refuses a turn that is repeated with another input.
	ErrTurn = refusal.New(refusal.TurnConflict, "this turn was opened with another input")

	errCompletion = refusal.New(refusal.InvalidRequest, "a completion has a message id, a status, a content that fits it, and metadata in their forms")
	// ErrNotFound is a run that does not exist for this caller.
	ErrNotFound = refusal.New(refusal.RunNotFound, "there is no such run")
	// ErrCompleted refuses a completion that differs from the stored one.
	ErrCompleted = refusal.New(refusal.RunCompletionConflict, "this run was completed with other content")
	// ErrMessage refuses a message id that another run of the thread has.
	ErrMessage = refusal.New(refusal.AssistantMessageConflict, "this assistant message belongs to another run of the thread")

	errTraceEvent  = refusal.New(refusal.InvalidRequest, "a trace event has an id, a dotted name, a time, and metadata without secrets in their forms")
	errTraceEvents = refusal.New(refusal.InvalidRequest, "a request has 1 to 200 trace events")
	// ErrTraceEvent refuses an event id that is stored with something else.
	ErrTraceEvent = refusal.New(refusal.TraceEventConflict, "a trace event with this id is stored with another body")
	// ErrJob refuses a job that belongs to another run.
	ErrJob        = refusal.New(refusal.TraceEventConflict, "a job belongs to another run")
	errTraceLimit = refusal.New(refusal.RunLimit, "a run has at most 2,000 trace events")
)
