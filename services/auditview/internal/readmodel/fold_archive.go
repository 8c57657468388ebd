package readmodel

import (
	"maps"
	"slices"

	"verbatim.internal/pkg/contracts/archivev1"
)

// archiveFold is the net effect of an archive's messages.
type archiveFold struct {
	known    bool               // header holds the whole header
	created  bool               // header is that of a new archive
	replaced bool               // a snapshot was completed
	keep     int                // with replaced: stored events above it go
	header   archivev1.Header   // with known
	state    *archivev1.State   // the last state, without a known header
	before   int                // with state: the last sequence before it
	members  []archivev1.Member // with known
	confirms []archivev1.Member // without

	events   []archivev1.Event
	links    []archivev1.Event
	restored map[int]archivev1.Event // by sequence, once there is a part of a snapshot
}

func (a *archiveFold) create(c archivev1.Created) {
	a.known, a.created = true, true
	a.header, a.members = c.Header, slices.Clone(c.Members)
}

// last returns the sequence that the archive has in this plan; ok is false when the plan
// does not know it yet.
func (a *archiveFold) last() (sequence int, ok bool) {
	switch {
	case a.known:
		return a.header.State.LastSequence, true
	case a.state != nil:
		return a.state.LastSequence, true
	default:
		return 0, false
	}
}

func (a *archiveFold) setState(s archivev1.State, before int) error {
	if last, ok := a.last(); ok && last != before {
		return ErrInconsistent
	}
	switch {
	case a.known:
		a.header.State = s
	case a.state == nil:
		a.state, a.before = &s, before
	default:
		a.state = &s
	}
	return nil
}

func (a *archiveFold) confirm(c archivev1.MemberConfirmed) error {
	at := slices.IndexFunc(a.members, func(m archivev1.Member) bool { return m.SessionID == c.Member.SessionID })
	if a.known && (at < 0 || c.State.ConfirmedCount > a.header.MemberCount) {
		return ErrInconsistent
	}
	if err := a.setState(c.State, 0); err != nil {
		return err
	}
	if a.known {
		a.members[at] = c.Member
	} else {
		a.confirms = append(a.confirms, c.Member)
	}
	return nil
}

func (a *archiveFold) appendEvents(e archivev1.EventsAppended) error {
	if err := a.setState(e.State, e.Events[0].Sequence-1); err != nil {
		return err
	}
	for _, event := range e.Events {
		if a.restored != nil {
			a.restored[event.Sequence] = event
		} else {
			a.events = append(a.events, event)
		}
		if event.Kind == archivev1.KindRunLink {
			a.links = append(a.links, event)
		}
	}
	return nil
}

func (a *archiveFold) restore(s archivev1.Snapshot) {
	if a.restored == nil { // from here on, events may exist already
		a.restored = make(map[int]archivev1.Event, len(a.events)+len(s.Events))
		for _, event := range a.events {
			a.restored[event.Sequence] = event
		}
		a.events = nil
	}
	for _, event := range s.Events {
		a.restored[event.Sequence] = event
	}
	if !s.Last {
		return
	}
	end := s.Header.State.LastSequence
	if !a.replaced || end < a.keep {
		a.keep = end
	}
	maps.DeleteFunc(a.restored, func(sequence int, _ archivev1.Event) bool { return sequence > end })
	a.known, a.created, a.replaced = true, false, true
	a.header, a.members = s.Header, slices.Clone(s.Members)
	a.state, a.confirms, a.links = nil, nil, nil
}

func (a *archiveFold) finish(c *Changes, id string) {
	if a.replaced {
		c.Replaced = append(c.Replaced, Replaced{id, a.keep, a.header.State.LastSequence})
	}
	switch {
	case a.created:
		c.Created = append(c.Created, a.header)
	case a.known:
		c.Headers = append(c.Headers, a.header)
	case a.state != nil:
		c.States = append(c.States, StateChange{id, a.before, *a.state})
	}
	for _, m := range a.members {
		c.Members = append(c.Members, MemberChange{id, m})
	}
	for _, m := range a.confirms {
		c.Confirmed = append(c.Confirmed, MemberChange{id, m})
	}
	for _, e := range a.events {
		c.Events = append(c.Events, EventChange{id, e})
	}
	for _, sequence := range slices.Sorted(maps.Keys(a.restored)) {
		c.Restored = append(c.Restored, EventChange{id, a.restored[sequence]})
	}
	if !a.replaced { // the links of a replaced archive are made from its events
		for _, e := range a.links {
			c.Links = append(c.Links, EventChange{id, e})
		}
	}
}
