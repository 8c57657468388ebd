package readmodel

import (
	"slices"

	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/contracts/headsv1"
	"verbatim.internal/pkg/contracts/registryv1"
)

// Head is how far a stream is.
type Head struct {
	Applied int64 // 0: nothing yet
	// ParkedTo is the greatest version that is parked, 0 when none is.
	ParkedTo int64
	// Parts are the parked parts of snapshots.
	Parts []PartKey
}

// PartKey names a part of a snapshot within its stream.
type PartKey struct {
	Version int64
	Part    int
}

// MakePlan decides about messages, given the heads of their streams (a stream without
// one is new). Messages of a stream must come in the order of delivery; replaying says
// that they come from the parked messages themselves, oldest first: then those are no
// reason to park, and each message that is applied is forgotten there.
//
// The same heads and messages give the same plan.
func MakePlan(heads map[Stream]Head, messages []Message, replaying bool) Plan {
	byStream := make(map[Stream][]Message)
	var order []Stream
	for _, m := range messages {
		if _, ok := byStream[m.Stream]; !ok {
			order = append(order, m.Stream)
		}
		byStream[m.Stream] = append(byStream[m.Stream], m)
	}
	slices.SortFunc(order, Stream.Compare)

	var p Plan
	for _, s := range order {
		f := &folder{plan: &p, stream: s, head: heads[s], replaying: replaying}
		f.before = f.head.Applied
		for _, m := range byStream[s] {
			f.fold(m)
		}
		f.finish()
	}
	return p
}

// folder folds the messages of one stream into a plan.
type folder struct {
	plan      *Plan
	stream    Stream
	head      Head
	before    int64
	replaying bool
	gap       bool
	archive   archiveFold
	run       runFold
	execution executionFold

	change       *registryv1.Change
	changeExists bool // the change may exist already
}

func (f *folder) fold(m Message) {
	if _, ok := m.Body.(headsv1.Heads); ok {
		// An auditview that did not know the type parked it. What it would find, the next finds.
		f.plan.Summary.Skipped++
		if f.replaying {
			f.unpark(Unparked{f.stream, m.Version, 0})
		}
		return
	}
	if m.Snapshot() {
		f.foldSnapshot(m)
		return
	}
	reached := max(f.head.Applied, f.head.ParkedTo)
	if f.replaying {
		reached = f.head.Applied
	}
	switch {
	case m.Version <= f.head.Applied:
		f.plan.Summary.Skipped++
		if f.replaying {
			f.unpark(Unparked{f.stream, m.Version, 0})
		}
	case f.gap || m.Version > reached+1:
		f.gap = true
		f.plan.Summary.Refused++
	case f.head.ParkedTo > 0 && !f.replaying:
		f.park(m, m.Err)
	default:
		err := m.Err
		if err == nil {
			err = f.apply(m)
		}
		if err != nil {
			f.park(m, err)
			f.replaying = false // the later ones wait for this one
			return
		}
		f.head.Applied = m.Version
		f.plan.Summary.Applied++
		if f.replaying {
			f.unpark(Unparked{f.stream, m.Version, 0})
		}
	}
}

// foldSnapshot tries a part of a snapshot even in a parked stream: it is what makes the
// stream flow again. Only a part whose earlier part is parked waits with it. A snapshot
// that is older than what is applied is a late one, unless an operator asked for it.
func (f *folder) foldSnapshot(m Message) {
	if m.Version < f.head.Applied && !m.replaces() {
		f.plan.Summary.Skipped++
		if f.replaying {
			f.unpark(Unparked{f.stream, m.Version, m.Part})
		}
		return
	}
	waits := slices.ContainsFunc(f.head.Parts, func(k PartKey) bool {
		return k.Version == m.Version && k.Part < m.Part
	})
	if waits {
		f.park(m, m.Err)
		return
	}
	last, err := false, m.Err
	if err == nil {
		last, err = f.applySnapshot(m)
	}
	if err != nil {
		f.park(m, err)
		return
	}
	f.plan.Summary.Applied++
	if !last {
		if key := (PartKey{m.Version, m.Part}); slices.Contains(f.head.Parts, key) {
			f.head.Parts = slices.DeleteFunc(slices.Clone(f.head.Parts), func(k PartKey) bool { return k == key })
			f.unpark(Unparked{f.stream, m.Version, m.Part})
		}
		return
	}
	f.head.Applied, f.gap = m.Version, false
	f.head.Parts = slices.DeleteFunc(slices.Clone(f.head.Parts), func(k PartKey) bool { return k.Version <= m.Version })
	if f.head.ParkedTo > 0 {
		f.unpark(Unparked{f.stream, m.Version, 0})
	}
	if f.head.ParkedTo <= m.Version {
		f.head.ParkedTo = 0
	}
}

func (f *folder) park(m Message, err error) {
	f.plan.Summary.Parked++
	f.head.ParkedTo = max(f.head.ParkedTo, m.Version)
	if m.Part > 0 {
		f.head.Parts = append(slices.Clone(f.head.Parts), PartKey{m.Version, m.Part})
	}
	f.plan.Changes.Parked = append(f.plan.Changes.Parked, Parked{m.Stream, m.Version, m.Part, m.Event, err})
}

// unpark forgets parked messages, those that this plan itself would park included.
func (f *folder) unpark(u Unparked) {
	c := &f.plan.Changes
	c.Unparked = append(c.Unparked, u)
	c.Parked = slices.DeleteFunc(c.Parked, func(p Parked) bool {
		if p.Stream != u.Stream {
			return false
		}
		if u.Part > 0 {
			return p.Version == u.Version && p.Part == u.Part
		}
		return p.Version <= u.Version
	})
}

func (f *folder) finish() {
	c := &f.plan.Changes
	f.archive.finish(c, f.stream.ID)
	f.run.finish(c, f.stream.ID)
	f.finishChange(c)
	if f.stream.Kind == executionv1.StreamKind {
		f.execution.finish(&c.Executions, f.stream.ID, f.head.Applied, f.head.Applied != f.before)
	}
	if f.head.Applied != f.before {
		c.Versions = append(c.Versions, StreamVersion{f.stream, f.head.Applied})
	}
	if f.gap {
		reached := max(f.head.Applied, f.head.ParkedTo)
		f.plan.Gaps = append(f.plan.Gaps, Gap{f.stream, reached})
	}
}
