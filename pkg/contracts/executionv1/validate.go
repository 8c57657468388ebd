package executionv1

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/timestamp"
	"verbatim.internal/pkg/domain/trace"
)

const (
	// maxNameBytes bounds an identifier and the type of an event.
	maxNameBytes = 128
	// maxCount bounds what is stored as an integer of 32 bits.
	maxCount = math.MaxInt32
)

var (
	uuidPattern  = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	keyPattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{1,63}$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,127}$`)
	eventPattern = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*){1,3}$`)
	fieldPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// FieldError is a field that breaks its rule. It carries no value.
type FieldError struct {
	Field string
	Rule  string
}

func (e *FieldError) Error() string { return "executionv1: " + e.Field + " " + e.Rule }

// checker collects broken rules of the fields below a path.
type checker struct {
	path string
	errs *[]error
}

func check(of func(c checker)) error {
	var errs []error
	of(checker{errs: &errs})
	return errors.Join(errs...)
}

// in returns the checker of what is in a member, an element where i is not negative.
func (c checker) in(member string, i int) checker {
	if i >= 0 {
		member = fmt.Sprintf("%s[%d]", member, i)
	}
	return checker{c.path + member + ".", c.errs}
}

func (c checker) require(ok bool, field, rule string) {
	if !ok {
		*c.errs = append(*c.errs, &FieldError{c.path + field, rule})
	}
}

func (c checker) executionID(v string) {
	c.require(uuidPattern.MatchString(v), "execution_id", "must be a lower-case UUID")
}

func (c checker) name(v, field string) {
	c.require(namePattern.MatchString(v), field, "must be an identifier")
}

// optional takes a name or "".
func (c checker) optional(v, field string) {
	c.require(v == "" || namePattern.MatchString(v), field, "must be an identifier or empty")
}

func (c checker) time(v time.Time, field string) {
	micros := !v.IsZero() && v.Location() == time.UTC && v.Nanosecond()%1000 == 0
	c.require(micros, field, "must be in UTC with at most microseconds")
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (m Execution) Validate() error { return check(m.check) }

func (m Execution) check(c checker) {
	c.executionID(m.ExecutionID)
	c.require(keyPattern.MatchString(m.ClientAppID), "client_app_id", "must be a resource key")
	c.name(m.SwarmID, "swarm_id")
	c.optional(m.ManagerDeploymentID, "manager_deployment_id")
	c.optional(m.DeploymentID, "deployment_id")
	c.optional(m.CorrelationID, "correlation_id")
	c.require(m.RunID == "" || uuidPattern.MatchString(m.RunID), "run_id", "must be a lower-case UUID or empty")
	c.optional(m.UserID, "user_id")
	c.optional(m.ChannelID, "channel_id")
	c.time(m.CreatedAt, "created_at")
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (m EventsRecorded) Validate() error {
	return check(func(c checker) {
		c.executionID(m.ExecutionID)
		c.require(len(m.Events) > 0, "events", "must not be empty")
		c.events(m.Events)
	})
}

// events asks for positions without a gap, beside the rules of each event.
func (c checker) events(events []Event) {
	for i := range events {
		e, c := &events[i], c.in("events", i)
		c.require(e.Position >= 1 && e.Position <= execution.MaxEvents && (i == 0 || e.Position == events[i-1].Position+1),
			"position", fmt.Sprintf("must follow the one before, from 1 to %d", execution.MaxEvents))
		c.name(e.EventID, "event_id")
		c.require(isEventType(e.EventType), "event_type", "must be a dotted name")
		c.require(isMoment(e.OccurredAt), "occurred_at", "must be RFC 3339 in UTC")
		c.optional(e.TaskID, "task_id")
		c.optional(e.AgentInstanceID, "agent_instance_id")
		c.optional(e.AgentRole, "agent_role")
		c.optional(e.UserID, "user_id")
		c.optional(e.ChannelID, "channel_id")
		c.require(isPayload(e.Payload), "payload", "must be a canonical JSON object of scalars that are metadata")
		c.require(slices.IsSorted(e.DroppedFields) && !slices.ContainsFunc(e.DroppedFields, func(name string) bool { return !fieldPattern.MatchString(name) }),
			"dropped_fields", "must be sorted names")
		c.require(e.DroppedCount >= len(e.DroppedFields) && e.DroppedCount <= maxCount, "dropped_count", "must count the names at least")
		c.time(e.RecordedAt, "recorded_at")
	}
}

func isEventType(s string) bool { return len(s) <= maxNameBytes && eventPattern.MatchString(s) }

// isMoment reports whether s is a moment in its stored spelling.
func isMoment(s string) bool {
	normal, ok := timestamp.Normalize(s)
	return ok && normal == s
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (m TaskRecorded) Validate() error {
	return check(func(c checker) {
		c.executionID(m.ExecutionID)
		if m.Task != nil {
			m.Task.check(c.in("task", -1))
		}
	})
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (m ApprovalRecorded) Validate() error {
	return check(func(c checker) {
		c.executionID(m.ExecutionID)
		if m.Approval != nil {
			m.Approval.check(c.in("approval", -1))
		}
	})
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (m GrantRecorded) Validate() error {
	return check(func(c checker) {
		c.executionID(m.ExecutionID)
		if m.Grant != nil {
			m.Grant.check(c.in("grant", -1))
		}
	})
}

func (t Task) id() string     { return t.TaskID }
func (a Approval) id() string { return a.ApprovalID }
func (g Grant) id() string    { return g.GrantID }

func (t Task) check(c checker) {
	c.name(t.TaskID, "task_id")
	c.word(t.Version, t.RecordedAt)
	c.require(isFacts[execution.Task](t.Facts, ""), fieldFacts, "must be the canonical JSON of a task")
}

func (a Approval) check(c checker) {
	c.name(a.ApprovalID, "approval_id")
	c.word(a.Version, a.RecordedAt)
	c.require(isFacts[execution.Approval](a.Facts, "reason"), fieldFacts, "must be the canonical JSON of an approval")
}

func (g Grant) check(c checker) {
	c.name(g.GrantID, "grant_id")
	c.word(g.Version, g.RecordedAt)
	c.require(isFacts[execution.Grant](g.Facts, ""), fieldFacts, "must be the canonical JSON of a grant")
}

// word checks what the facts of all kinds have.
func (c checker) word(version int64, at time.Time) {
	c.require(version >= 1, "version", "must be from 1 up")
	c.time(at, "recorded_at")
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (m CallbacksRecorded) Validate() error {
	return check(func(c checker) {
		c.executionID(m.ExecutionID)
		c.require(len(m.Attempts) > 0, "attempts", "must not be empty")
		c.attempts(m.Attempts)
	})
}

func (c checker) attempts(attempts []CallbackAttempt) {
	for i := range attempts {
		a, c := &attempts[i], c.in("attempts", i)
		c.require(a.Position >= 1 && a.Position <= maxCount && (i == 0 || a.Position == attempts[i-1].Position+1),
			"position", "must follow the one before, from 1 up")
		c.name(a.AttemptID, "attempt_id")
		c.require(isFacts[execution.AttemptFacts](a.Facts, "host"), fieldFacts, "must be the canonical JSON of a callback attempt")
		c.time(a.RecordedAt, "recorded_at")
	}
}

// Validate reports fields that break a rule, as joined FieldErrors.
func (m Snapshot) Validate() error {
	return check(func(c checker) {
		m.Execution.check(c.in("execution", -1))
		c.require(m.LastPosition >= 0 && m.LastPosition <= execution.MaxEvents, "last_position", fmt.Sprintf("must be from 0 to %d", execution.MaxEvents))
		n := m.Counts
		c.require(min(n.Tasks, n.Approvals, n.Grants, n.Attempts) >= 0, "counts", "must not be negative")
		c.require(slices.Contains([]trace.Result{trace.Success, trace.Failed, trace.Blocked, trace.Stopped, trace.Info}, m.Result),
			"result", "must be a result")
		c.time(m.LatestAt, "latest_at")
		c.events(m.Events)
		c.require(len(m.Events) == 0 || m.Events[len(m.Events)-1].Position <= m.LastPosition, "events", "must end at the last position")
		page(c.in("tasks", -1), m.Tasks)
		page(c.in("approvals", -1), m.Approvals)
		page(c.in("grants", -1), m.Grants)
		c.attempts(m.Attempts)
		c.require(len(m.Attempts) == 0 || m.Attempts[len(m.Attempts)-1].Position == n.Attempts, "attempts", "must end at their count")
	})
}

// page checks the bounds of a page and that its items are within, in order.
func page[F interface {
	id() string
	check(c checker)
}](c checker, p *Page[F]) {
	if p == nil {
		return
	}
	c.optional(p.After, "after")
	c.optional(p.UpTo, "up_to")
	c.require(p.UpTo == "" || p.UpTo > p.After, "up_to", "must be behind after")
	before := p.After
	for i, item := range p.Items {
		c := c.in("items", i)
		c.require(item.id() > before && (p.UpTo == "" || item.id() <= p.UpTo), "id", "must be within the page, in order")
		before = item.id()
		item.check(c)
	}
}

const fieldFacts = "facts"

// isPayload reports whether v may be the payload of an event.
func isPayload(v jsontext.Value) bool { return isMetadata(v, 1, "") }
