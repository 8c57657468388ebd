// Package runv1 holds the messages about an authorized run, version 1: recorded,
// completed, trace recorded, and the snapshot that replaces a stream. Their stream kind is
// "run", their stream id the run id. Marshal and Unmarshal both validate; errors carry no
// values.
package runv1

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// StreamKind is the kind of every run's stream.
const StreamKind = "run"

// Types of messages.
const (
	TypeRecorded      = "verbatim.run.recorded.v1"
	TypeCompleted     = "verbatim.run.completed.v1"
	TypeTraceRecorded = "verbatim.run.trace_recorded.v1"
	TypeSnapshot      = "verbatim.run.snapshot.v1"
)

// Message is the data of one type of event.
type Message interface {
	Run | Completed | TraceRecorded | Snapshot
	// Type is the event's type.
	Type() string
	// Validate reports fields that break a rule, as joined FieldErrors.
	Validate() error
}

// Type returns TypeRecorded.
func (Run) Type() string { return TypeRecorded }

// Type returns TypeCompleted.
func (Completed) Type() string { return TypeCompleted }

// Type returns TypeTraceRecorded.
func (TraceRecorded) Type() string { return TypeTraceRecorded }

// Type returns TypeSnapshot.
func (Snapshot) Type() string { return TypeSnapshot }

// ErrData is data that is not the JSON of its type. It never carries a part of the data.
var ErrData = errors.New("runv1: data is not of its type")

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
