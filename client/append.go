package client

import (
	"encoding/json"

	"go.etcd.io/bbolt"
)

// Append stores events at the archive's end, all or none, and returns them with their ids
// and sequences. They are on disk when it returns nil; the hub gets them by Sync or Run,
// whatever the state of the archive.
//
// An event whose id is stored already is not stored again when it is the same, so that a
// host with ids of its own may repeat an Append after a crash; events that are stored
// already come first then.
//
// Errors: ErrInvalid for what breaks a rule of the hub's; ErrLimit for more than 20,000
// events or 16 MiB of text; ErrConflict for another event under a stored id, for what does
// not fit the turns, and for a run that is linked already; and what the disk says.
func (a *Archive) Append(events ...Event) ([]Event, error) {
	if len(events) == 0 {
		return nil, invalid("there are no events")
	}
	checked := make([]wireEvent, len(events))
	for i, e := range events {
		var err error
		if checked[i], err = e.wire(); err != nil {
			return nil, err
		}
	}
	out := make([]Event, len(events))
	err := a.change("append", func(tx *bbolt.Tx, r *archiveRecord) error {
		w := newAppender(tx, a.id, r)
		for i := range checked {
			stored, err := w.append(checked[i], events[i].of)
			if err != nil {
				return err
			}
			out[i] = stored.event()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.spool.poke()
	return out, nil
}

// appender stores events within one transaction.
type appender struct {
	archiveID               string
	r                       *archiveRecord
	events, ids, turns, run *bbolt.Bucket
	last                    int // the sequence of the event before, within this Append
}

func newAppender(tx *bbolt.Tx, id string, r *archiveRecord) *appender {
	key := []byte(id)
	return &appender{
		archiveID: id, r: r, run: tx.Bucket(bucketRuns),
		events: tx.Bucket(bucketEvents).Bucket(key), ids: tx.Bucket(bucketIDs).Bucket(key), turns: tx.Bucket(bucketTurns).Bucket(key),
	}
}

func (w *appender) append(e wireEvent, of *binding) (wireEvent, error) {
	if key := w.ids.Get([]byte(e.EventID)); e.EventID != "" && key != nil {
		return w.repeat(e, key)
	}
	if err := w.check(e, of); err != nil {
		return e, err
	}
	for e.EventID == "" || w.ids.Get([]byte(e.EventID)) != nil {
		e.EventID = newUUID()
	}
	w.r.Last++
	w.r.TextBytes += int64(len(e.Content))
	e.Sequence, w.last = w.r.Last, w.r.Last
	key := sequenceKey(e.Sequence)
	value, err := encode(e)
	if err != nil {
		return e, err
	}
	if err := w.events.Put(key, value); err != nil {
		return e, err
	}
	return e, w.ids.Put([]byte(e.EventID), key)
}

// repeat returns the stored event that e is to be.
func (w *appender) repeat(e wireEvent, key []byte) (wireEvent, error) {
	var stored wireEvent
	if err := json.Unmarshal(w.events.Get(key), &stored); err != nil {
		return e, err
	}
	if !e.sameBody(stored) {
		return e, conflict("another event is stored under this id")
	}
	if stored.Sequence <= w.last {
		return e, conflict("events that are stored already come first, in their order")
	}
	w.last = stored.Sequence
	return stored, nil
}

// check holds e against what is stored, and moves the turn.
func (w *appender) check(e wireEvent, of *binding) error {
	if w.r.Last >= MaxEvents {
		return overLimit("an archive holds at most 20,000 events")
	}
	if w.r.TextBytes+int64(len(e.Content)) > MaxArchiveBytes {
		return overLimit("an archive holds at most 16 MiB of text")
	}
	turn := []byte(e.ClientTurnID)
	switch e.Kind {
	case TurnStart:
		if w.r.Turn != "" || w.turns.Get(turn) != nil {
			return conflict("a turn starts once, when no other one runs")
		}
		w.r.Turn = e.ClientTurnID
		return w.turns.Put(turn, []byte("started"))
	case RunLink:
		return w.checkLink(e, of)
	case UserMessage, AssistantMessage, TurnEnd:
	}
	if w.r.Turn != e.ClientTurnID {
		return conflict("a message or an end belongs to the running turn")
	}
	if e.Kind == TurnEnd {
		w.r.Turn = ""
	}
	return nil
}

func (w *appender) checkLink(e wireEvent, of *binding) error {
	m := w.r.member(e.MemberSessionID)
	switch {
	case w.turns.Get([]byte(e.ClientTurnID)) == nil:
		return conflict("a run link belongs to a turn that has started")
	case m == nil:
		return conflict("a run link names a member of the archive")
	case of != nil && *of != binding{w.r.ConversationID, m.Route, e.ClientTurnID}:
		return conflict("the run is of another conversation, turn or route than the member's in this archive")
	case w.run.Get([]byte(e.RunID)) != nil:
		return conflict("the run is linked already")
	}
	return w.run.Put([]byte(e.RunID), []byte(w.archiveID))
}
