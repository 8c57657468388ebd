package client

// Kind says what an event records.
type Kind string

// The kinds of events.
const (
	TurnStart        Kind = "turn_start"
	UserMessage      Kind = "user_message"
	AssistantMessage Kind = "assistant_message"
	RunLink          Kind = "run_link"
	TurnEnd          Kind = "turn_end"
)

// TurnStatus is how a turn or a run ended.
type TurnStatus string

// The statuses.
const (
	Completed TurnStatus = "completed"
	Failed    TurnStatus = "failed"
	Cancelled TurnStatus = "cancelled"
)

// Event is one entry of an archive: what the user saw, or what belongs to it. It has the
// fields of its kind and no others. Make it with StartTurn, UserSaid, AssistantSaid,
// EndTurn and TurnContext.Link, or field by field.
type Event struct {
	// ID is the event's stable identifier, unique in its archive. Left empty, Append draws
	// one. With ids of its own a host may repeat an Append of which it does not know
	// whether it was done.
	ID string
	// Sequence is the event's number in its archive, from 1; Append assigns it.
	Sequence int
	// TurnID is the host's identifier of the turn.
	TurnID string
	Kind   Kind
	// Content is the exact visible text of a message.
	Content string
	// Status is how the turn of a TurnEnd ended.
	Status TurnStatus
	// RunID and MemberSessionID are those of a RunLink.
	RunID, MemberSessionID string

	of *binding // where the run of a RunLink belongs, when it is known
}

// binding is where a run belongs.
type binding struct{ conversationID, route, turnID string }

// StartTurn begins a turn.
func StartTurn(turnID string) Event { return Event{TurnID: turnID, Kind: TurnStart} }

// UserSaid is a user's exact visible text in the running turn.
func UserSaid(turnID, content string) Event {
	return Event{TurnID: turnID, Kind: UserMessage, Content: content}
}

// AssistantSaid is an assistant's exact visible text in the running turn.
func AssistantSaid(turnID, content string) Event {
	return Event{TurnID: turnID, Kind: AssistantMessage, Content: content}
}

// EndTurn ends the running turn.
func EndTurn(turnID string, status TurnStatus) Event {
	return Event{TurnID: turnID, Kind: TurnEnd, Status: status}
}

// WithID returns the event with a host's own id.
func (e Event) WithID(id string) Event {
	e.ID = id
	return e
}

// wireEvent is an event as it is stored and sent.
type wireEvent struct {
	EventID         string     `json:"event_id"`
	Sequence        int        `json:"sequence"`
	ClientTurnID    string     `json:"client_turn_id"`
	Kind            Kind       `json:"kind"`
	Content         string     `json:"content,omitempty"`
	Status          TurnStatus `json:"status,omitempty"`
	RunID           string     `json:"run_id,omitempty"`
	MemberSessionID string     `json:"member_session_id,omitempty"`
}

// wire checks the event by itself; its id may still be empty. UUIDs become lower-case.
func (e Event) wire() (wireEvent, error) {
	w := wireEvent{EventID: e.ID, ClientTurnID: e.TurnID, Kind: e.Kind, Content: e.Content, Status: e.Status}
	if e.ID != "" && !isIdentifier(e.ID) {
		return w, invalid("an event's id is no identifier")
	}
	if !isIdentifier(e.TurnID) {
		return w, invalid("a turn's id is no identifier")
	}
	switch e.Kind {
	case TurnStart:
	case UserMessage, AssistantMessage:
		if !isText(e.Content, MaxContentUnits) {
			return w, invalid("a message's content is no visible text of at most %d UTF-16 code units", MaxContentUnits)
		}
	case TurnEnd:
		if e.Status != Completed && e.Status != Failed && e.Status != Cancelled {
			return w, invalid("a turn ends completed, failed or cancelled")
		}
	case RunLink:
		var okRun, okMember bool
		w.RunID, okRun = parseUUID(e.RunID)
		w.MemberSessionID, okMember = parseUUID(e.MemberSessionID)
		if !okRun || !okMember {
			return w, invalid("a run link names a run and a member by their UUIDs")
		}
	default:
		return w, invalid("an event is of no known kind")
	}
	isMessage := e.Kind == UserMessage || e.Kind == AssistantMessage
	if e.Content != "" && !isMessage || e.Status != "" && e.Kind != TurnEnd || (e.RunID != "" || e.MemberSessionID != "") && e.Kind != RunLink {
		return w, invalid("an event has fields that its kind does not have")
	}
	return w, nil
}

// event gives a stored event back.
func (w wireEvent) event() Event {
	return Event{
		ID: w.EventID, Sequence: w.Sequence, TurnID: w.ClientTurnID, Kind: w.Kind, Content: w.Content, Status: w.Status,
		RunID: w.RunID, MemberSessionID: w.MemberSessionID,
	}
}

// sameBody reports whether w repeats the stored event.
func (w wireEvent) sameBody(stored wireEvent) bool {
	w.Sequence = stored.Sequence
	return w == stored
}
