package readmodel

import (
	"maps"
	"slices"
	"time"

	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/domain/trace"
)

// executionFold is the net effect of an execution's messages.
type executionFold struct {
	opened   *executionv1.Execution
	replaced *executionv1.Snapshot // the last part, once a snapshot was completed
	replace  bool                  // with replaced: an operator asked for it, or for one before it
	// With replaced: what is stored above these positions goes.
	keepEvents, keepAttempts int

	extended    bool         // events were added
	before, end int          // with extended: where the events ended before; with opened or replaced, too: where they end
	result      trace.Result // of what is known here; "" for nothing
	latest      time.Time    // the same; zero for nothing

	attempted   bool // attempts were added, or with replaced
	attemptsEnd int  // with attempted: where they end

	tasks, approvals, grants factFold

	events           []executionv1.Event
	attempts         []executionv1.CallbackAttempt
	restored         map[int]executionv1.Event // by position, once there is a part of a snapshot
	restoredAttempts map[int]executionv1.CallbackAttempt
}

func (x *executionFold) open(e executionv1.Execution, version int64) error {
	if version != 1 || x.opened != nil {
		return ErrInconsistent
	}
	x.opened = &e
	return nil
}

func (x *executionFold) record(m executionv1.EventsRecorded) error {
	before := m.Events[0].Position - 1
	if (x.extended || x.opened != nil || x.replaced != nil) && x.end != before {
		return ErrInconsistent
	}
	if !x.extended {
		x.extended, x.before = true, before
	}
	x.end = before + len(m.Events)
	for i := range m.Events {
		if result := trace.ResultOf(m.Events[i].EventType); result != trace.Info {
			x.result = result
		}
	}
	x.latest = m.Events[len(m.Events)-1].RecordedAt
	if x.restored == nil {
		x.events = append(x.events, m.Events...)
	}
	x.keep(m.Events, nil)
	return nil
}

func (x *executionFold) attempt(m executionv1.CallbacksRecorded) error {
	before := m.Attempts[0].Position - 1
	if x.attempted && x.attemptsEnd != before {
		return ErrInconsistent
	}
	x.attempted, x.attemptsEnd = true, before+len(m.Attempts)
	if x.restored == nil {
		x.attempts = append(x.attempts, m.Attempts...)
	}
	x.keep(nil, m.Attempts)
	return nil
}

// keep keeps what may exist already, once there is a part of a snapshot.
func (x *executionFold) keep(events []executionv1.Event, attempts []executionv1.CallbackAttempt) {
	if x.restored == nil {
		return
	}
	for i := range events {
		x.restored[events[i].Position] = events[i]
	}
	for _, a := range attempts {
		x.restoredAttempts[a.Position] = a
	}
}

func (x *executionFold) restore(s executionv1.Snapshot, part int) error {
	begins := len(s.Events) > 0 && s.Events[0].Position == 1
	if begins != (part == 1 && s.LastPosition > 0) {
		return ErrInconsistent
	}
	if x.restored == nil {
		x.restored = make(map[int]executionv1.Event, len(x.events)+len(s.Events))
		x.restoredAttempts = make(map[int]executionv1.CallbackAttempt, len(x.attempts)+len(s.Attempts))
		x.keep(x.events, x.attempts)
		x.events, x.attempts = nil, nil
	}
	x.keep(s.Events, s.Attempts)
	id := s.Execution.ExecutionID
	if p := s.Tasks; p != nil {
		x.tasks.restore(FactRange{id, p.After, p.UpTo}, facts(id, p.Items, taskFact), s.Replace)
	}
	if p := s.Approvals; p != nil {
		x.approvals.restore(FactRange{id, p.After, p.UpTo}, facts(id, p.Items, approvalFact), s.Replace)
	}
	if p := s.Grants; p != nil {
		x.grants.restore(FactRange{id, p.After, p.UpTo}, facts(id, p.Items, grantFact), s.Replace)
	}
	if s.Last {
		x.complete(s)
	}
	return nil
}

// complete takes the last part of a snapshot for the whole.
func (x *executionFold) complete(s executionv1.Snapshot) {
	events, attempts := s.LastPosition, s.Counts.Attempts
	maps.DeleteFunc(x.restored, func(position int, _ executionv1.Event) bool { return position > events })
	maps.DeleteFunc(x.restoredAttempts, func(position int, _ executionv1.CallbackAttempt) bool { return position > attempts })
	if x.replaced != nil {
		x.keepEvents, x.keepAttempts = min(x.keepEvents, events), min(x.keepAttempts, attempts)
	} else {
		x.keepEvents, x.keepAttempts = events, attempts
	}
	x.replaced, x.replace = &s, x.replace || s.Replace
	x.opened, x.extended = nil, false
	x.end, x.result, x.latest = events, s.Result, s.LatestAt
	x.attempted, x.attemptsEnd = true, attempts
}

func (x *executionFold) finish(c *ExecutionChanges, id string, version int64, moved bool) {
	switch {
	case x.replaced != nil:
		counts := x.replaced.Counts
		counts.Attempts = x.attemptsEnd
		c.Replaced = append(c.Replaced, ReplacedExecution{
			ExecutionState: x.state(x.replaced.Execution, version), Replace: x.replace,
			KeepEvents: x.keepEvents, KeepAttempts: x.keepAttempts, Counts: counts,
		})
		c.attribute(id, x.replaced.Execution.UserID, x.replaced.Execution.ChannelID)
	case x.opened != nil:
		c.Opened = append(c.Opened, x.state(*x.opened, version))
		c.attribute(id, x.opened.UserID, x.opened.ChannelID)
	case moved:
		c.Extended = append(c.Extended, x.progress(id, version))
	}
	x.tasks.finish(&c.ClearedTasks, &c.Tasks)
	x.approvals.finish(&c.ClearedApprovals, &c.Approvals)
	x.grants.finish(&c.ClearedGrants, &c.Grants)
	for i := range x.events {
		c.Events = append(c.Events, ExecutionEventChange{id, x.events[i]})
		c.attribute(id, x.events[i].UserID, x.events[i].ChannelID)
	}
	for _, position := range slices.Sorted(maps.Keys(x.restored)) {
		e := x.restored[position]
		c.RestoredEvents = append(c.RestoredEvents, ExecutionEventChange{id, e})
		c.attribute(id, e.UserID, e.ChannelID)
	}
	for _, a := range x.attempts {
		c.Attempts = append(c.Attempts, AttemptChange{id, a})
	}
	for _, position := range slices.Sorted(maps.Keys(x.restoredAttempts)) {
		c.RestoredAttempts = append(c.RestoredAttempts, AttemptChange{id, x.restoredAttempts[position]})
	}
}

func (x *executionFold) state(e executionv1.Execution, version int64) ExecutionState {
	s := ExecutionState{Execution: e, LastPosition: x.end, Result: trace.Info, LatestAt: e.CreatedAt, Version: version}
	if x.result != "" {
		s.Result = x.result
	}
	if !x.latest.IsZero() {
		s.LatestAt = x.latest
	}
	return s
}

func (x *executionFold) progress(id string, version int64) ExecutionProgress {
	p := ExecutionProgress{ExecutionID: id, Version: version}
	if x.extended {
		p.Events = &EventProgress{Before: x.before, Last: x.end, Result: trace.Info, LatestAt: x.latest}
		if x.result != "" {
			p.Events.Result = x.result
		}
	}
	return p
}

// attribute adds attributions that are not there yet. Those of one execution come one after
// the other, and are mostly the same.
func (c *ExecutionChanges) attribute(id, user, channel string) {
	for _, a := range []Attribution{{AxisUser, user, id}, {AxisChannel, channel, id}} {
		if a.Value == "" {
			continue
		}
		if c.attributed == nil {
			c.attributed = map[Attribution]bool{}
		}
		if !c.attributed[a] {
			c.attributed[a] = true
			c.Attributions = append(c.Attributions, a)
		}
	}
}

// factFold is the net effect on the facts of one kind.
type factFold struct {
	facts   map[string]Fact
	cleared []FactRange
}

// put takes a word, unless a later one is there: a part of a snapshot may be ahead of the
// messages that come after it.
func (f *factFold) put(w Fact) {
	if f.facts == nil {
		f.facts = map[string]Fact{}
	}
	if stored, ok := f.facts[w.ID]; !ok || w.Version >= stored.Version {
		f.facts[w.ID] = w
	}
}

// restore takes a page of a snapshot. With replace, nothing else of its range remains.
func (f *factFold) restore(page FactRange, words []Fact, replace bool) {
	if replace {
		f.cleared = append(f.cleared, page)
		maps.DeleteFunc(f.facts, func(id string, _ Fact) bool {
			return id > page.After && (page.UpTo == "" || id <= page.UpTo)
		})
	}
	for _, w := range words {
		f.put(w)
	}
}

func (f *factFold) finish(cleared *[]FactRange, facts *[]Fact) {
	*cleared = append(*cleared, f.cleared...)
	for _, id := range slices.Sorted(maps.Keys(f.facts)) {
		*facts = append(*facts, f.facts[id])
	}
}

func taskFact(id string, t executionv1.Task) Fact {
	return Fact{id, t.TaskID, t.Version, t.Facts, t.RecordedAt}
}

func approvalFact(id string, a executionv1.Approval) Fact {
	return Fact{id, a.ApprovalID, a.Version, a.Facts, a.RecordedAt}
}

func grantFact(id string, g executionv1.Grant) Fact {
	return Fact{id, g.GrantID, g.Version, g.Facts, g.RecordedAt}
}

// facts makes facts of an execution from those of a message.
func facts[F any](id string, items []F, as func(id string, item F) Fact) []Fact {
	made := make([]Fact, len(items))
	for i, item := range items {
		made[i] = as(id, item)
	}
	return made
}
