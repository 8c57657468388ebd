package archive

import (
	"time"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// Kind says what an event records.
type Kind string

// The event kinds of the contract ("Append visible events").
const (
	TurnStart        Kind = "turn_start"
	UserMessage      Kind = "user_message"
	AssistantMessage Kind = "assistant_message"
	RunLink          Kind = "run_link"
	TurnEnd          Kind = "turn_end"
)

// TurnStatus is how the last turn stands.
type TurnStatus string

// The turn statuses. NoTurn stands for null: no turn has started yet.
const (
	NoTurn    TurnStatus = ""
	Running   TurnStatus = "running"
	Completed TurnStatus = "completed"
	Failed    TurnStatus = "failed"
	Cancelled TurnStatus = "cancelled"
)

// Fields are an event as a caller sent it, absent fields nil.
type Fields struct {
	EventID         string
	Sequence        int64
	ClientTurnID    string
	Kind            string
	Content         *string
	Status          *string
	RunID           *string
	MemberSessionID *string
}

// Event is one valid numbered entry of an archive. Fields that its kind does
// not have are empty.
type Event struct {
	EventID         string
	Sequence        int // 1 to MaxEvents
	ClientTurnID    string
	Kind            Kind
	Content         string     // messages: the exact visible text
	Status          TurnStatus // turn_end: Completed, Failed or Cancelled
	RunID           identity.UUID
	MemberSessionID identity.UUID
	// ThreadID and CreatedAt are the server's; they are no part of the body
	// that a retry must repeat.
	ThreadID  int64
	CreatedAt time.Time
}

var (
	errEvent    = refusal.New(refusal.InvalidRequest, "an event breaks its schema")
	errSequence = refusal.New(refusal.Limit, "an archive holds at most 20000 events")
	errBatch    = refusal.New(refusal.Limit, "the texts of one batch have at most 256 KiB")
	errCount    = refusal.New(refusal.InvalidRequest, "a batch has 1 to 50 events")
)

// NewBatch validates the events of one append: 1 to MaxBatchEvents of them, each
// with exactly the fields of its kind. It refuses with InvalidRequest when an
// event breaks its schema, else with Limit when a sequence is above MaxEvents
// or the texts exceed MaxBatchBytes.
func NewBatch(fields []Fields) ([]Event, error) {
	if len(fields) == 0 || len(fields) > MaxBatchEvents {
		return nil, errCount
	}
	events := make([]Event, len(fields))
	bytes, tooMany := 0, false
	for i := range fields {
		var ok bool
		if events[i], ok = newEvent(&fields[i]); !ok {
			return nil, errEvent
		}
		bytes += len(events[i].Content)
		tooMany = tooMany || fields[i].Sequence > MaxEvents
	}
	if tooMany {
		return nil, errSequence
	}
	if bytes > MaxBatchBytes {
		return nil, errBatch
	}
	return events, nil
}

// newEvent reports false for an event that breaks its schema.
func newEvent(f *Fields) (Event, bool) {
	e := Event{EventID: f.EventID, Sequence: int(f.Sequence), ClientTurnID: f.ClientTurnID, Kind: Kind(f.Kind)}
	if !IsIdentifier(f.EventID) || !IsIdentifier(f.ClientTurnID) || f.Sequence < 1 || f.Sequence > MaxSafeInteger {
		return e, false
	}
	var hasContent, hasStatus, hasRun bool
	ok := true
	switch e.Kind {
	case TurnStart:
	case UserMessage, AssistantMessage:
		hasContent = true
		if f.Content != nil {
			e.Content = *f.Content
			ok = IsText(e.Content, MaxContentUnits)
		}
	case TurnEnd:
		hasStatus = true
		if f.Status != nil {
			e.Status = TurnStatus(*f.Status)
			ok = e.Status == Completed || e.Status == Failed || e.Status == Cancelled
		}
	case RunLink:
		hasRun = true
		if f.RunID != nil && f.MemberSessionID != nil {
			var okRun, okMember bool
			e.RunID, okRun = identity.ParseUUID(*f.RunID)
			e.MemberSessionID, okMember = identity.ParseUUID(*f.MemberSessionID)
			ok = okRun && okMember
		}
	default:
		return e, false
	}
	ok = ok && (f.Content != nil) == hasContent && (f.Status != nil) == hasStatus &&
		(f.RunID != nil) == hasRun && (f.MemberSessionID != nil) == hasRun
	return e, ok
}

// SameBody reports whether a retry repeats e: sequence, event id and every
// submitted field. ThreadID and CreatedAt are the server's and do not count.
func (e Event) SameBody(other Event) bool {
	e.ThreadID, other.ThreadID = 0, 0
	e.CreatedAt, other.CreatedAt = time.Time{}, time.Time{}
	return e == other
}
