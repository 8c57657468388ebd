package readmodel

import (
	"errors"
	"fmt"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/contracts/headsv1"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/contracts/runv1"
)

// Stream names a stream.
type Stream struct{ Kind, ID string }

// String returns kind/id.
func (s Stream) String() string { return s.Kind + "/" + s.ID }

// Compare orders streams by key, the order in which they are locked.
func (s Stream) Compare(o Stream) int {
	switch {
	case s == o:
		return 0
	case s.Kind < o.Kind || s.Kind == o.Kind && s.ID < o.ID:
		return -1
	default:
		return 1
	}
}

// ErrUnknownType is a type of message that this version of auditview does not know.
var ErrUnknownType = errors.New("unknown type of message")

// ErrWrongStream is data that is about another stream than its envelope says.
var ErrWrongStream = errors.New("the data belongs to another stream")

// Message is a received message. Body is nil exactly when Err is set.
type Message struct {
	Stream  Stream
	Version int64
	Part    int // 0: not a part of a snapshot
	Event   cloudevent.Event
	// Body is a message of archivev1, runv1 or executionv1, a registryv1.Change, or headsv1.Heads.
	Body any
	// Err says why the message can never be applied. It never quotes data.
	Err error
}

// Snapshot reports whether the message is a part of a snapshot.
func (m Message) Snapshot() bool {
	switch m.Event.Type {
	case archivev1.TypeSnapshot, runv1.TypeSnapshot, registryv1.TypeSnapshot, executionv1.TypeSnapshot:
		return true
	default:
		return false
	}
}

// replaces reports whether an operator asked for the snapshot, whatever is applied.
func (m Message) replaces() bool {
	switch body := m.Body.(type) {
	case archivev1.Snapshot:
		return body.Replace
	case runv1.Snapshot:
		return body.Replace
	case executionv1.Snapshot:
		return body.Replace
	default:
		return false
	}
}

// Decode reads the data of a valid event. Data that it cannot read becomes Err: the
// envelope is right, so the message has a place in its stream and can be parked there. A
// panic while reading is such an Err too: it would come again with each delivery.
func Decode(e cloudevent.Event) (m Message) {
	m = Message{
		Stream:  Stream{e.StreamKind, e.StreamID},
		Version: e.StreamVersion, Part: e.Part(), Event: e,
	}
	defer func() {
		if v := recover(); v != nil {
			m.Body, m.Err = nil, Recovered(v)
		}
	}()
	m.Body, m.Err = decodeBody(e)
	if m.Err == nil && m.Snapshot() != (m.Part > 0) {
		m.Err = fmt.Errorf("%s: the parts of a snapshot, and they alone, are numbered", e.Type)
	}
	if m.Err != nil {
		m.Body = nil
	}
	return m
}

func decodeBody(e cloudevent.Event) (any, error) {
	switch e.Type {
	case archivev1.TypeCreated:
		c, err := archivev1.Unmarshal[archivev1.Created](e.Data)
		return c, errors.Join(err, belongs(e, archivev1.StreamKind, c.Header.ConversationID))
	case archivev1.TypeMemberConfirmed:
		c, err := archivev1.Unmarshal[archivev1.MemberConfirmed](e.Data)
		return c, errors.Join(err, belongs(e, archivev1.StreamKind, e.StreamID))
	case archivev1.TypeEventsAppended:
		a, err := archivev1.Unmarshal[archivev1.EventsAppended](e.Data)
		return a, errors.Join(err, belongs(e, archivev1.StreamKind, e.StreamID))
	case archivev1.TypeSnapshot:
		s, err := archivev1.Unmarshal[archivev1.Snapshot](e.Data)
		return s, errors.Join(err, belongs(e, archivev1.StreamKind, s.Header.ConversationID))
	case runv1.TypeRecorded:
		r, err := runv1.Unmarshal[runv1.Run](e.Data)
		return r, errors.Join(err, belongs(e, runv1.StreamKind, r.RunID))
	case runv1.TypeCompleted:
		c, err := runv1.Unmarshal[runv1.Completed](e.Data)
		return c, errors.Join(err, belongs(e, runv1.StreamKind, c.RunID))
	case runv1.TypeTraceRecorded:
		t, err := runv1.Unmarshal[runv1.TraceRecorded](e.Data)
		return t, errors.Join(err, belongs(e, runv1.StreamKind, t.RunID))
	case runv1.TypeSnapshot:
		s, err := runv1.Unmarshal[runv1.Snapshot](e.Data)
		return s, errors.Join(err, belongs(e, runv1.StreamKind, s.Run.RunID))
	case registryv1.TypeRecorded, registryv1.TypeSnapshot:
		c, err := registryv1.Unmarshal(e.Data)
		return c, errors.Join(err, belongs(e, registryv1.StreamKind, c.ChangeID))
	case headsv1.Type:
		h, err := headsv1.Unmarshal(e.Data)
		return h, errors.Join(err, belongs(e, headsv1.StreamKind, e.StreamID))
	default:
		return decodeExecution(e)
	}
}

func decodeExecution(e cloudevent.Event) (any, error) {
	switch e.Type {
	case executionv1.TypeOpened:
		return executionBody(e, func(m executionv1.Execution) string { return m.ExecutionID })
	case executionv1.TypeEventsRecorded:
		return executionBody(e, func(m executionv1.EventsRecorded) string { return m.ExecutionID })
	case executionv1.TypeTaskRecorded:
		return executionBody(e, func(m executionv1.TaskRecorded) string { return m.ExecutionID })
	case executionv1.TypeApprovalRecorded:
		return executionBody(e, func(m executionv1.ApprovalRecorded) string { return m.ExecutionID })
	case executionv1.TypeGrantRecorded:
		return executionBody(e, func(m executionv1.GrantRecorded) string { return m.ExecutionID })
	case executionv1.TypeCallbacksRecorded:
		return executionBody(e, func(m executionv1.CallbacksRecorded) string { return m.ExecutionID })
	case executionv1.TypeSnapshot:
		return executionBody(e, func(m executionv1.Snapshot) string { return m.Execution.ExecutionID })
	default:
		return nil, ErrUnknownType
	}
}

// executionBody reads a message that names its execution.
func executionBody[M executionv1.Message](e cloudevent.Event, id func(M) string) (any, error) {
	m, err := executionv1.Unmarshal[M](e.Data)
	return m, errors.Join(err, belongs(e, executionv1.StreamKind, id(m)))
}

func belongs(e cloudevent.Event, kind, id string) error {
	if id != "" && (e.StreamKind != kind || e.StreamID != id) {
		return ErrWrongStream
	}
	return nil
}
