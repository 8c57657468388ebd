package runv1

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds.
const (
	// MaxThreadID is the greatest thread id.
	MaxThreadID = 1<<53 - 1
	// MaxTraceEvents is how many trace events a run has at most.
	MaxTraceEvents = 2000
	// MaxModelBytes bounds the names of a model and a runtime.
	MaxModelBytes = 128
	// maxMetadata bounds one event's metadata, in bytes.
	maxMetadata = 64 << 10
)

var (
	uuidPattern       = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	identifierPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)
	keyPattern        = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{1,63}$`)
	eventPattern      = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*){1,3}$`)
	metadataPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,127}$`)
	timePattern       = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$`)
)

// Statuses of a completed run.
const (
	StatusCompleted = "completed"
	StatusFailed    = "failed"
	StatusCancelled = "cancelled"
)

// Run is one authorized execution: who owns it and where it belongs.
type Run struct {
	RunID       string `json:"run_id"`
	SessionID   string `json:"session_id"`
	ClientAppID string `json:"client_app_id"`
	RouteKey    string `json:"route_key"`
	// ThreadID is from 1 to MaxThreadID, or 0 while the run has no thread.
	ThreadID             int64     `json:"thread_id"`
	ClientConversationID string    `json:"client_conversation_id"`
	ClientTurnID         string    `json:"client_turn_id"`
	CreatedAt            time.Time `json:"created_at"`
}

// Usage is what a run used, in tokens, calls and US dollars; what is unknown is nil.
type Usage struct {
	InputTokens       *int64   `json:"input_tokens,omitzero"`
	CachedInputTokens *int64   `json:"cached_input_tokens,omitzero"`
	OutputTokens      *int64   `json:"output_tokens,omitzero"`
	TotalTokens       *int64   `json:"total_tokens,omitzero"`
	ToolCalls         *int64   `json:"tool_calls,omitzero"`
	CostUSD           *float64 `json:"cost_usd,omitzero"`
}

// Completed says how a run ended. It holds no text of the conversation.
type Completed struct {
	RunID string `json:"run_id"`
	// Status is completed, failed or cancelled.
	Status string `json:"status"`
	// Model and Runtime are empty where the host did not say.
	Model       string    `json:"model,omitzero"`
	Runtime     string    `json:"runtime,omitzero"`
	Usage       *Usage    `json:"usage,omitzero"`
	CompletedAt time.Time `json:"completed_at"`
}

// TraceRecorded says what happened in a run: events, in order and without a gap.
type TraceRecorded struct {
	RunID  string       `json:"run_id"`
	Events []TraceEvent `json:"events"`
}

// TraceEvent is one thing that a host says happened in a run: metadata only.
type TraceEvent struct {
	// Position numbers the events of a run, from 1 to MaxTraceEvents.
	Position int    `json:"position"`
	EventID  string `json:"event_id"`
	// Event is the dotted type, such as tool.called.
	Event string `json:"event"`
	// OccurredAt is RFC 3339 in UTC with Z and 0 to 9 fractional digits, as the host sent them.
	OccurredAt string `json:"occurred_at"`
	// JobID groups the events of one tool call; empty for none.
	JobID string `json:"job_id,omitzero"`
	// Metadata is a JSON object of scalars, in canonical form.
	Metadata jsontext.Value `json:"metadata"`
	// DroppedFields is how many fields were dropped at the door.
	DroppedFields int       `json:"dropped_fields,omitzero"`
	CreatedAt     time.Time `json:"created_at"`
}

// Snapshot is one part of a run's whole content. Every part repeats run and completion;
// the events of all parts, in order, are those of the run. Only the last part has Last.
type Snapshot struct {
	Run        Run          `json:"run"`
	Completion *Completed   `json:"completion,omitzero"`
	Events     []TraceEvent `json:"events"`
	Last       bool         `json:"last"`
	// Replace is an operator's word that the sender is right even when the receiver is
	// further: the sender came back from a backup.
	Replace bool `json:"replace"`
}

// FieldError is a field that breaks its rule. It carries no value.
type FieldError struct {
	Field string
	Rule  string
}

func (e *FieldError) Error() string { return "runv1: " + e.Field + " " + e.Rule }

// checker collects broken rules.
type checker struct{ errs []error }

func (c *checker) check(ok bool, field, rule string) {
	if !ok {
		c.errs = append(c.errs, &FieldError{field, rule})
	}
}

func (c *checker) uuid(v, field string) {
	c.check(uuidPattern.MatchString(v), field, "must be a lower-case UUID")
}

func (c *checker) time(v time.Time, field string) {
	micros := !v.IsZero() && v.Location() == time.UTC && v.Nanosecond()%1000 == 0
	c.check(micros, field, "must be in UTC with at most microseconds")
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (r Run) Validate() error {
	var c checker
	c.uuid(r.RunID, "run_id")
	c.uuid(r.SessionID, "session_id")
	c.check(keyPattern.MatchString(r.ClientAppID), "client_app_id", "must be a resource key")
	c.check(keyPattern.MatchString(r.RouteKey), "route_key", "must be a resource key")
	c.check(r.ThreadID >= 0 && r.ThreadID <= MaxThreadID, "thread_id", fmt.Sprintf("must be from 0 to %d", int64(MaxThreadID)))
	c.check(identifierPattern.MatchString(r.ClientConversationID), "client_conversation_id", "must be an identifier")
	c.check(identifierPattern.MatchString(r.ClientTurnID), "client_turn_id", "must be an identifier")
	c.time(r.CreatedAt, "created_at")
	return errors.Join(c.errs...)
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (m Completed) Validate() error {
	var c checker
	c.uuid(m.RunID, "run_id")
	c.check(slices.Contains([]string{StatusCompleted, StatusFailed, StatusCancelled}, m.Status), "status", "must be completed, failed or cancelled")
	c.check(m.Model == "" || metadataPattern.MatchString(m.Model), "model", "must be metadata")
	c.check(m.Runtime == "" || metadataPattern.MatchString(m.Runtime), "runtime", "must be metadata")
	if u := m.Usage; u != nil {
		for _, n := range []*int64{u.InputTokens, u.CachedInputTokens, u.OutputTokens, u.TotalTokens, u.ToolCalls} {
			c.check(n == nil || *n >= 0 && *n <= MaxThreadID, "usage", "must be numbers from 0 to 2^53-1")
		}
		c.check(u.CostUSD == nil || *u.CostUSD >= 0 && *u.CostUSD <= 1e12, "usage.cost_usd", "must be from 0 to 1e12")
	}
	c.time(m.CompletedAt, "completed_at")
	return errors.Join(c.errs...)
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (m TraceRecorded) Validate() error {
	var c checker
	c.uuid(m.RunID, "run_id")
	c.check(len(m.Events) > 0, "events", "must not be empty")
	c.events(m.Events)
	return errors.Join(c.errs...)
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (m Snapshot) Validate() error {
	errs := []error{m.Run.Validate()}
	if m.Completion != nil {
		errs = append(errs, m.Completion.Validate())
		if m.Completion.RunID != m.Run.RunID {
			errs = append(errs, &FieldError{"completion.run_id", "must be the run's"})
		}
	}
	var c checker
	c.check(m.Last || len(m.Events) > 0, "events", "must not be empty before the last part")
	c.events(m.Events)
	return errors.Join(append(errs, c.errs...)...)
}

// events asks for positions without a gap, beside the rules of each event.
func (c *checker) events(events []TraceEvent) {
	for i, e := range events {
		field := func(name string) string { return fmt.Sprintf("events[%d].%s", i, name) }
		c.check(e.Position >= 1 && e.Position <= MaxTraceEvents && (i == 0 || e.Position == events[i-1].Position+1),
			field("position"), fmt.Sprintf("must follow the one before, from 1 to %d", MaxTraceEvents))
		c.check(identifierPattern.MatchString(e.EventID), field("event_id"), "must be an identifier")
		c.check(len(e.Event) <= MaxModelBytes && eventPattern.MatchString(e.Event), field("event"), "must be a dotted name")
		_, err := time.Parse(time.RFC3339Nano, e.OccurredAt)
		c.check(err == nil && timePattern.MatchString(e.OccurredAt), field("occurred_at"), "must be RFC 3339 in UTC")
		c.check(e.JobID == "" || uuidPattern.MatchString(e.JobID), field("job_id"), "must be a lower-case UUID")
		c.check(isMetadata(e.Metadata), field("metadata"), "must be a canonical JSON object of scalars")
		c.check(e.DroppedFields >= 0, field("dropped_fields"), "must not be negative")
		c.time(e.CreatedAt, field("created_at"))
	}
}

// isMetadata reports whether v is an object of scalars in canonical form (RFC 8785).
func isMetadata(v jsontext.Value) bool {
	if len(v) == 0 || len(v) > maxMetadata || v[0] != '{' {
		return false
	}
	canonical := v.Clone()
	if canonical.Canonicalize() != nil || !bytes.Equal(canonical, v) {
		return false
	}
	for d := jsontext.NewDecoder(bytes.NewReader(v)); ; {
		if _, err := d.ReadToken(); err != nil {
			return true // the end: it is valid
		}
		if d.StackDepth() > 1 {
			return false
		}
	}
}
