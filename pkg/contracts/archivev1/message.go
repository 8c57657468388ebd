package archivev1

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// StreamKind is the kind of every archive's stream.
const StreamKind = "archive"

// Types of messages.
const (
	TypeCreated         = "verbatim.archive.created.v1"
	TypeMemberConfirmed = "verbatim.archive.member_confirmed.v1"
	TypeEventsAppended  = "verbatim.archive.events_appended.v1"
	TypeSnapshot        = "verbatim.archive.snapshot.v1"
)

// Message is the data of one type of event.
type Message interface {
	Created | MemberConfirmed | EventsAppended | Snapshot
	// Type is the event's type.
	Type() string
	// Validate reports fields that break a rule, as joined FieldErrors.
	Validate() error
}

// Created says that an archive exists. It is version 1 of its stream. It has all members;
// only the creator is confirmed. State is "ready" when the creator is alone.
type Created struct {
	Header  Header   `json:"header"`
	Members []Member `json:"members"`
}

// MemberConfirmed says that one more member confirmed; State is the archive's afterwards.
type MemberConfirmed struct {
	State  State  `json:"state"`
	Member Member `json:"member"`
}

// EventsAppended says that events were appended, in order and without a gap; State is the
// archive's afterwards, so its last_sequence is the last event's.
type EventsAppended struct {
	State  State   `json:"state"`
	Events []Event `json:"events"`
}

// Snapshot is one part of an archive's whole content. Every part repeats header and
// members; the events of all parts, in order, are those of the archive. Only the last
// part has Last.
type Snapshot struct {
	Header  Header   `json:"header"`
	Members []Member `json:"members"`
	Events  []Event  `json:"events"`
	Last    bool     `json:"last"`
	// Replace is an operator's word that the sender is right even when the receiver is
	// further: the sender came back from a backup. Without it a snapshot that is older
	// than what is applied is a late one, and is passed over.
	Replace bool `json:"replace"`
}

// Type returns TypeCreated.
func (Created) Type() string { return TypeCreated }

// Type returns TypeMemberConfirmed.
func (MemberConfirmed) Type() string { return TypeMemberConfirmed }

// Type returns TypeEventsAppended.
func (EventsAppended) Type() string { return TypeEventsAppended }

// Type returns TypeSnapshot.
func (Snapshot) Type() string { return TypeSnapshot }

// ErrData is data that is not the JSON of its type. It never carries a part of the data.
var ErrData = errors.New("archivev1: data is not of its type")

// Marshal validates a message and returns its JSON: no white space, no HTML escapes,
// the same bytes for the same message. A principal keeps its bytes.
func Marshal[M Message](m M) (jsontext.Value, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Type(), err)
	}
	data, err := json.Marshal(m, jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Type(), ErrData)
	}
	return data, nil
}

// Unmarshal reads what Marshal wrote and validates it. Unknown and duplicate members,
// invalid UTF-8 and trailing data are refused.
func Unmarshal[M Message](data jsontext.Value) (M, error) {
	var m, zero M
	if err := json.Unmarshal(data, &m, json.RejectUnknownMembers(true)); err != nil {
		return zero, fmt.Errorf("%s: %w", m.Type(), ErrData)
	}
	if err := m.Validate(); err != nil {
		return zero, fmt.Errorf("%s: %w", m.Type(), err)
	}
	return m, nil
}
