package readmodel

import (
	"maps"
	"slices"

	"verbatim.internal/pkg/contracts/runv1"
)

// runFold is the net effect of a run's messages.
type runFold struct {
	run      *runv1.Run
	exists   bool // the run may exist already
	replaced bool // a snapshot was completed: run, completion and end are the run's
	keep     int  // with replaced: stored trace events above it go

	completion *runv1.Completed
	traced     bool // trace events were added
	before     int  // with traced: where the trace ended before them
	end        int  // with traced or replaced: where the trace ends

	events   []runv1.TraceEvent
	restored map[int]runv1.TraceEvent // by position, once there is a part of a snapshot
}

func (r *runFold) record(run runv1.Run, exists bool) {
	r.run, r.exists = &run, r.exists || exists
}

func (r *runFold) complete(c runv1.Completed) error {
	if r.completion != nil {
		return ErrInconsistent
	}
	r.completion = &c
	return nil
}

func (r *runFold) trace(t runv1.TraceRecorded) error {
	before := t.Events[0].Position - 1
	if (r.traced || r.replaced) && r.end != before {
		return ErrInconsistent
	}
	if !r.traced {
		r.traced, r.before = true, before
	}
	r.end = before + len(t.Events)
	if r.restored == nil {
		r.events = append(r.events, t.Events...)
	}
	r.put(t.Events)
	return nil
}

// put keeps events that may exist already, once there is a part of a snapshot.
func (r *runFold) put(events []runv1.TraceEvent) {
	if r.restored == nil {
		return
	}
	for _, e := range events {
		r.restored[e.Position] = e
	}
}

func (r *runFold) restore(s runv1.Snapshot, part int) error {
	// Only a run without a trace has a part without events: its only one.
	if first := len(s.Events) == 0 || s.Events[0].Position == 1; first != (part == 1) {
		return ErrInconsistent
	}
	if r.restored == nil {
		r.restored = make(map[int]runv1.TraceEvent, len(r.events)+len(s.Events))
		r.put(r.events)
		r.events = nil
	}
	r.put(s.Events)
	if !s.Last {
		return nil
	}
	end := 0
	if n := len(s.Events); n > 0 {
		end = s.Events[n-1].Position
	}
	if !r.replaced || end < r.keep {
		r.keep = end
	}
	maps.DeleteFunc(r.restored, func(position int, _ runv1.TraceEvent) bool { return position > end })
	r.run, r.replaced = &s.Run, true
	r.completion, r.traced, r.end = s.Completion, false, end
	return nil
}

func (r *runFold) finish(c *Changes, id string) {
	for _, e := range r.events {
		c.TraceEvents = append(c.TraceEvents, TraceEventChange{id, e})
	}
	for _, position := range slices.Sorted(maps.Keys(r.restored)) {
		c.RestoredTrace = append(c.RestoredTrace, TraceEventChange{id, r.restored[position]})
	}
	if r.replaced {
		c.ReplacedRuns = append(c.ReplacedRuns, ReplacedRun{*r.run, r.completion, r.keep, r.end})
		return
	}
	switch {
	case r.run == nil:
	case r.exists:
		c.Runs = append(c.Runs, *r.run)
	default:
		c.Recorded = append(c.Recorded, *r.run)
	}
	if r.completion != nil {
		c.Completed = append(c.Completed, *r.completion)
	}
	if r.traced {
		c.Traced = append(c.Traced, TraceChange{id, r.before, r.end})
	}
}
