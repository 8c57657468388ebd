package archive

import (
	"time"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// History is what an append needs to know of the archive's stored events, for
// the sequences, event ids, turns and runs that its batch names. It is read
// after the archive's lock was taken.
type History struct {
	// Stored holds the stored events within the batch's sequences.
	Stored map[int]Event
	// EventIDs gives the sequence under which an event id of the batch is stored.
	EventIDs map[string]int
	// StartedTurns holds the turn ids of the batch that have started.
	StartedTurns map[string]bool
	// Runs holds the runs that the batch links, as persisted.
	Runs map[identity.UUID]identity.Run
	// LinkedRuns holds those that are linked already, in whatever archive.
	LinkedRuns map[identity.UUID]bool
}

func conflict(message string) error { return refusal.New(refusal.Conflict, message) }

// What the store sees too, when two writers race, or when it finds an event id or a
// turn that History did not have.
var (
	ErrTurn        = conflict("an event does not fit the turns of the archive")
	ErrEventIDUsed = conflict("an event_id is stored under another sequence")
	ErrRunLink     = conflict("a run link does not match the persisted run, or the run is linked already")
)

var (
	errGap       = conflict("the sequences are not contiguous")
	errRepeated  = conflict("a sequence or event_id is repeated in the batch")
	errChanged   = conflict("an event differs from the one stored under its sequence")
	errTotalText = refusal.New(refusal.Limit, "an archive holds at most 16 MiB of text")
)

// MayAppend reports whether the bearer may append now: only the creator
// (NotFound), only when all members have confirmed (NotReady), and only while
// the whole group passes the member check (AuthorizationInvalid). A pure retry
// is checked like any other batch.
func (a *Archive) MayAppend(bearer identity.UUID, group Group, now time.Time) error {
	if bearer != a.CreatorSessionID {
		return ErrNotFound
	}
	if a.State != Ready {
		return errNotReady
	}
	return group.checkAll(a.Members, now)
}

// Append applies a batch that MayAppend has let through.
//
// It returns the events that are new, numbered contiguously from
// LastSequence+1, with ThreadID and CreatedAt set; events that repeat stored
// ones exactly are skipped, so a batch may mix old and new, and a pure retry
// returns none. The header of a moves with the new events, and StreamVersion by
// one when there is any. A batch that breaks a rule is refused whole, with
// Conflict or Limit, and leaves a as it was.
func (a *Archive) Append(batch []Event, h History, now time.Time) ([]Event, error) {
	if err := checkBatch(batch); err != nil {
		return nil, err
	}
	next := *a // members are not touched
	fresh := make([]Event, 0, len(batch))
	started := h.StartedTurns
	linked := make(map[identity.UUID]bool)
	for _, e := range batch {
		if e.Sequence <= a.LastSequence {
			if stored, ok := h.Stored[e.Sequence]; !ok || !stored.SameBody(e) {
				return nil, errChanged
			}
			continue
		}
		if e.Sequence != next.LastSequence+1 {
			return nil, errGap
		}
		if _, used := h.EventIDs[e.EventID]; used {
			return nil, ErrEventIDUsed
		}
		if e.Kind == RunLink {
			if err := next.checkLink(&e, h, started, linked); err != nil {
				return nil, err
			}
		} else if !next.moveTurn(e, &started) {
			return nil, ErrTurn
		}
		next.TextBytes += int64(len(e.Content))
		if next.TextBytes > MaxArchiveBytes {
			return nil, errTotalText
		}
		next.LastSequence = e.Sequence
		e.CreatedAt = now
		fresh = append(fresh, e)
	}
	if len(fresh) > 0 {
		next.StreamVersion++
		next.UpdatedAt = now
		*a = next
	}
	return fresh, nil
}

// checkBatch looks for what is wrong inside the batch, whatever is stored.
func checkBatch(batch []Event) error {
	ids := make(map[string]bool, len(batch))
	for i, e := range batch {
		if i > 0 && e.Sequence == batch[i-1].Sequence || ids[e.EventID] {
			return errRepeated
		}
		if i > 0 && e.Sequence != batch[i-1].Sequence+1 {
			return errGap
		}
		ids[e.EventID] = true
	}
	return nil
}

// moveTurn lets e move the turn, and reports whether it fits. started is copied
// before it is changed.
func (a *Archive) moveTurn(e Event, started *map[string]bool) bool {
	if e.Kind == TurnStart {
		if a.CurrentTurnID != "" || (*started)[e.ClientTurnID] {
			return false
		}
		grown := map[string]bool{e.ClientTurnID: true}
		for id := range *started {
			grown[id] = true
		}
		*started = grown
		a.CurrentTurnID, a.LastTurnStatus = e.ClientTurnID, Running
		a.TurnCount++
		return true
	}
	if a.CurrentTurnID != e.ClientTurnID { // also when none runs: an id is never empty
		return false
	}
	if e.Kind == TurnEnd {
		a.CurrentTurnID, a.LastTurnStatus = "", e.Status
	} else {
		a.MessageCount++
	}
	return true
}

// checkLink verifies a run link against the persisted run and takes its thread.
// It never moves a turn: late evidence joins its own turn.
func (a *Archive) checkLink(e *Event, h History, started map[string]bool, linked map[identity.UUID]bool) error {
	if !started[e.ClientTurnID] {
		return ErrTurn
	}
	m := a.Member(e.MemberSessionID)
	run, exists := h.Runs[e.RunID]
	if m == nil || !exists || h.LinkedRuns[e.RunID] || linked[e.RunID] ||
		run.SessionID != m.SessionID || run.Binding != m.Binding || run.ThreadID == 0 ||
		run.ClientConversationID != a.ClientConversationID || run.ClientTurnID != e.ClientTurnID {
		return ErrRunLink
	}
	linked[e.RunID] = true
	e.ThreadID = run.ThreadID
	return nil
}
