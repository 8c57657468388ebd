// Package execution holds the rules of executions, the orchestrated runs of many
// sub-agents: what a client may say of one, what of that is kept, and when two sayings
// contradict each other.
//
// An execution is opened once with a lineage that never changes. Events are added and
// numbered 1, 2, 3 … in the order of their storage. Tasks, approvals and grants are facts
// that a later word replaces: a task for ever, but for its parent, root and source; an
// approval until it is decided; a grant until it is revoked. Callback attempts are added
// as events are. Everything may be repeated: the same again changes nothing.
//
// # Metadata only
//
// Nothing that a person or a model wrote gets through, and no secret: identifiers and kept
// strings have one narrow form ([IsName]), payloads keep scalars under known names only,
// a vault's secret is a reference azkv://vault/name, a webhook is its scheme, host and port.
// The one place for words is the reason of an approval, which is redacted. What is not of
// its form is refused, or dropped and counted.
//
// The package is pure: callers bring what is stored, read under locks. Facts are canonical
// JSON (RFC 8785), so that equal facts are equal bytes.
package execution

import "verbatim.internal/pkg/domain/refusal"

// Limits.
const (
	// MaxBatch is how many events or callback attempts one request may carry.
	MaxBatch = 200
	// MaxEvents is how many events an execution may have.
	MaxEvents = 1_000_000
	// MaxTasks is how many tasks an execution may have.
	MaxTasks = 100_000
	// MaxTaskIDs is how many children, or dependencies, a task may name.
	MaxTaskIDs = 10_000
	// MaxAllowedActions is how many actions a grant may allow.
	MaxAllowedActions = 64
	// MaxConstraints is how many constraints a grant may keep.
	MaxConstraints = 32
	// MaxReason is the length of an approval's redacted reason, in UTF-16 code units.
	MaxReason = 512
	// MaxSafeInteger is 2^53-1, the largest integer every JSON reader keeps.
	MaxSafeInteger = 1<<53 - 1
)

// The refusals of this package; see [refusal.CodeOf].
var (
	errOpening     = refusal.New(refusal.InvalidRequest, "a run is opened with identifiers that are no secrets, and a UUID where it names an authorization run")
	errAttribution = refusal.New(refusal.InvalidRequest, "an attribution header is one identifier of at most 128 printable ASCII characters that is no secret")
	errID          = refusal.New(refusal.InvalidRequest, "an id is an identifier that is no secret")
	// ErrNotFound is an execution that does not exist for this caller.
	ErrNotFound = refusal.New(refusal.RunNotFound, "there is no such run")
	// ErrOpened refuses to open an execution again with another lineage.
	ErrOpened = refusal.New(refusal.RunConflict, "this run was opened with other values")
	// ErrRunLink refuses an authorization run that is not one of the client's.
	ErrRunLink = refusal.New(refusal.RunConflict, "the authorization run is not one of this client's")

	errEvent  = refusal.New(refusal.InvalidRequest, "an event has identifiers, a dotted type, a time, and a payload whose kept values have their forms and are no secrets")
	errEvents = refusal.New(refusal.InvalidRequest, "a request has 1 to 200 events")
	// ErrEvent refuses an event id that is stored with something else.
	ErrEvent = refusal.New(refusal.RunConflict, "an event with this id is stored with another body")
	// ErrCorrelation refuses an event that says it belongs to another correlation.
	ErrCorrelation = refusal.New(refusal.RunConflict, "an event has another correlation than its run")
	errEventLimit  = refusal.New(refusal.RunLimit, "a run has at most 1,000,000 events")

	errTask      = refusal.New(refusal.InvalidRequest, "a task has identifiers, a known source, counts and times in their forms, and no secrets")
	errTaskLimit = refusal.New(refusal.RunLimit, "a run has at most 100,000 tasks")

	errApproval = refusal.New(refusal.InvalidRequest, "an approval has metadata in its forms, a credential as azkv://vault/name, and a reason of at most 512 characters")
	// ErrDecided refuses to change an approval that was decided.
	ErrDecided = refusal.New(refusal.RunConflict, "this approval was decided with other values")

	errGrant = refusal.New(refusal.InvalidRequest, "a grant has metadata in its forms, a secret as azkv://vault/name, at most 64 actions and 32 constraints")
	// ErrRevoked refuses to change a grant that was revoked.
	ErrRevoked = refusal.New(refusal.RunConflict, "this grant was revoked with other values")

	errAttempt  = refusal.New(refusal.InvalidRequest, "a callback attempt has identifiers, a dotted type, an http or https URL, a status, and a time")
	errAttempts = refusal.New(refusal.InvalidRequest, "a request has 1 to 200 callback attempts")
	// ErrAttempt refuses an attempt id that is stored with something else.
	ErrAttempt = refusal.New(refusal.RunConflict, "a callback attempt with this id is stored with another body")
)
