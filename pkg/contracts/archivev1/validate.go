package archivev1

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
)

// FieldError is a field that breaks its rule. It carries no value.
type FieldError struct {
	Field string // JSON path, such as events[3].sequence
	Rule  string
}

func (e *FieldError) Error() string { return "archivev1: " + e.Field + " " + e.Rule }

var keyPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{1,63}$`)

// checker collects broken rules.
type checker struct {
	errs []error
	// number is the number of the event that is checked, from 1: its fields are named by
	// their ends, and in full only when a rule is broken.
	number int
}

func (c *checker) check(ok bool, field, rule string) {
	if !ok {
		if c.number > 0 {
			field = fmt.Sprintf("events[%d]%s", c.number-1, field)
		}
		c.errs = append(c.errs, &FieldError{field, rule})
	}
}

func (c *checker) uuid(v, field string) {
	id, ok := identity.ParseUUID(v)
	c.check(ok && string(id) == v, field, "must be a lower-case UUID")
}

func (c *checker) identifier(v, field string) {
	c.check(archive.IsIdentifier(v), field, "must be an identifier")
}

func (c *checker) key(v, field string) {
	c.check(keyPattern.MatchString(v), field, "must be a resource key")
}

func (c *checker) within(v, low, high int64, field string) {
	if v < low || v > high {
		c.check(false, field, fmt.Sprintf("must be from %d to %d", low, high))
	}
}

func (c *checker) time(v time.Time, field string) {
	ok := !v.IsZero() && v.Location() == time.UTC && v.Nanosecond()%1000 == 0
	c.check(ok, field, "must be in UTC with at most microseconds")
}

func (c *checker) text(v string, maxUnits int, field string) {
	if v == "" || !utf8.ValidString(v) || len(v) > maxUnits && utf16Units(v) > maxUnits {
		c.check(false, field, fmt.Sprintf("must have 1 to %d UTF-16 code units", maxUnits))
	}
}

func (c *checker) err() error { return errors.Join(c.errs...) }

func utf16Units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// Validate implements Message.
func (m Created) Validate() error {
	var c checker
	c.header(m.Header)
	c.members(m.Header, m.Members)
	c.check(m.Header.State.ConfirmedCount == 1, "header.state.confirmed_count", "must be 1")
	c.check(m.Header.State.LastSequence == 0, "header.state.last_sequence", "must be 0")
	creator := slices.IndexFunc(m.Members, func(x Member) bool { return x.SessionID == m.Header.CreatorSessionID })
	c.check(creator >= 0 && m.Members[creator].ConfirmedAt != nil, "members", "must have the confirmed creator")
	return c.err()
}

// Validate implements Message.
func (m MemberConfirmed) Validate() error {
	var c checker
	c.state(m.State, "state")
	c.member(m.Member, "member")
	c.check(m.Member.ConfirmedAt != nil, "member.confirmed_at", "must be present")
	c.check(m.State.ConfirmedCount > 1, "state.confirmed_count", "must be greater than 1")
	c.check(m.State.LastSequence == 0, "state.last_sequence", "must be 0")
	return c.err()
}

// Validate implements Message.
func (m EventsAppended) Validate() error {
	var c checker
	c.state(m.State, "state")
	c.check(m.State.State == StateReady, "state.state", "must be "+StateReady)
	c.within(int64(len(m.Events)), 1, MaxBatchEvents, "events")
	c.events(m.Events)
	if n := len(m.Events); n > 0 {
		c.check(m.Events[n-1].Sequence == m.State.LastSequence, "state.last_sequence", "must be the last event's")
	}
	return c.err()
}

// Validate implements Message.
func (m Snapshot) Validate() error {
	var c checker
	c.header(m.Header)
	c.members(m.Header, m.Members)
	c.events(m.Events)
	last := m.Header.State.LastSequence
	if n := len(m.Events); n > 0 {
		end := m.Events[n-1].Sequence
		c.check(end <= last && (!m.Last || end == last), "events", "must end at last_sequence with the last part")
	} else {
		c.check(m.Last && last == 0, "events", "must not be empty")
	}
	return c.err()
}
