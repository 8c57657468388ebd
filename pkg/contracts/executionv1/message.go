package executionv1

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Message is the data of one type of event.
type Message interface {
	Execution | EventsRecorded | TaskRecorded | ApprovalRecorded | GrantRecorded | CallbacksRecorded | Snapshot
	// Type is the event's type.
	Type() string
	// Validate reports fields that break a rule, as joined FieldErrors.
	Validate() error
}

// Type returns TypeOpened.
func (Execution) Type() string { return TypeOpened }

// Type returns TypeEventsRecorded.
func (EventsRecorded) Type() string { return TypeEventsRecorded }

// Type returns TypeTaskRecorded.
func (TaskRecorded) Type() string { return TypeTaskRecorded }

// Type returns TypeApprovalRecorded.
func (ApprovalRecorded) Type() string { return TypeApprovalRecorded }

// Type returns TypeGrantRecorded.
func (GrantRecorded) Type() string { return TypeGrantRecorded }

// Type returns TypeCallbacksRecorded.
func (CallbacksRecorded) Type() string { return TypeCallbacksRecorded }

// Type returns TypeSnapshot.
func (Snapshot) Type() string { return TypeSnapshot }

// ErrData is data that is not the JSON of its type. It never carries a part of the data.
var ErrData = errors.New("executionv1: data is not of its type")

// Marshal validates a message and returns its JSON, the same bytes for the same message.
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
