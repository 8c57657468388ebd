package execution

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/timestamp"
)

// EventFields are one event as it was sent: what is absent is nil.
type EventFields struct {
	EventID         string
	EventType       string
	OccurredAt      string
	TaskID          *string
	AgentInstanceID *string
	CorrelationID   *string
	Payload         jsontext.Value
}

// Event is one thing that happened in an execution: what may be stored of it. What is
// unknown is "".
type Event struct {
	EventID string
	// EventType is a dotted name, such as task.completed; [trace.ResultOf] says what it means.
	EventType string
	// OccurredAt is RFC 3339 in UTC with the digits that were sent.
	OccurredAt      string
	TaskID          string
	AgentInstanceID string
	AgentRole       string
	UserID          string
	ChannelID       string
	// CorrelationID is the run's, said again; it is compared and not stored.
	CorrelationID string
	// Payload is a canonical JSON object of scalars under known names.
	Payload jsontext.Value
	// DroppedFields are the sorted names of what was dropped of the payload, where a name
	// may be kept; DroppedCount counts all.
	DroppedFields []string
	DroppedCount  int
	// Hash tells whether a repeated event is the same: the SHA-256 of what is kept of its body.
	Hash [sha256.Size]byte
	// Position numbers the execution's events from 1; 0 until it is stored.
	Position int
}

// NewBatch validates the events of one request, 1 to 200, all or none (InvalidRequest).
// The attribution fills in the task and the instance that an event's body leaves out, and
// adds role, user and channel.
func NewBatch(fields []EventFields, by Attribution) ([]Event, error) {
	if len(fields) == 0 || len(fields) > MaxBatch {
		return nil, errEvents
	}
	batch := make([]Event, len(fields))
	for i := range fields {
		var ok bool
		if batch[i], ok = newEvent(&fields[i], by); !ok {
			return nil, errEvent
		}
	}
	return batch, nil
}

func newEvent(f *EventFields, by Attribution) (e Event, ok bool) {
	var read form
	e = Event{
		EventID: read.name(&f.EventID), EventType: f.EventType,
		TaskID: read.name(f.TaskID), AgentInstanceID: read.name(f.AgentInstanceID), CorrelationID: read.name(f.CorrelationID),
		AgentRole: by.Role, UserID: by.UserID, ChannelID: by.ChannelID,
	}
	e.OccurredAt, ok = timestamp.Normalize(f.OccurredAt)
	if !ok || read.broken || !IsEventType(f.EventType) {
		return Event{}, false
	}
	kept, ok := filterPayload(f.Payload)
	if !ok {
		return Event{}, false
	}
	e.Payload, e.DroppedFields, e.DroppedCount = kept.payload, kept.droppedFields, kept.droppedCount
	e.Hash = e.hash()
	// After the hash: headers are no part of the body that is compared.
	e.TaskID, e.AgentInstanceID = or(e.TaskID, by.TaskID), or(e.AgentInstanceID, by.InstanceID)
	return e, true
}

// hash covers what is kept of the body, as canonical JSON: the members are in order, and
// nothing of them has to be escaped.
func (e *Event) hash() [sha256.Size]byte {
	const most = 1024 // but for a long payload
	body := make([]byte, 0, most)
	member := func(name, value string) {
		if value != "" {
			body = append(append(append(append(append(body, name...), ":\""...), value...), '"'), ',')
		}
	}
	body = append(body, '{')
	member(`"agent_instance_id"`, e.AgentInstanceID)
	member(`"event_id"`, e.EventID)
	member(`"event_type"`, e.EventType)
	member(`"occurred_at"`, e.OccurredAt)
	body = append(append(append(body, `"payload":`...), e.Payload...), ',')
	member(`"task_id"`, e.TaskID)
	body[len(body)-1] = '}'
	return sha256.Sum256(body)
}

// EventHistory is what a batch is judged against, read under the execution's lock.
type EventHistory struct {
	// CorrelationID is the execution's, "" for none.
	CorrelationID string
	// LastPosition is the position of its last event, 0 when it has none.
	LastPosition int
	// Stored has the hashes of those events of the batch whose ids the execution has.
	Stored map[string][sha256.Size]byte
}

// Record decides which events of a batch are new to the execution and numbers them; the
// others are stored already, exactly so. It refuses the whole batch with ErrCorrelation
// for an event of another correlation, with ErrEvent for an id that stands for something
// else, stored or in the batch, and with RunLimit when the execution would have more than
// 1,000,000 events.
func Record(batch []Event, h EventHistory) (fresh []Event, err error) {
	seen := make(map[string][sha256.Size]byte, len(batch))
	fresh = make([]Event, 0, len(batch))
	for _, e := range batch {
		if e.CorrelationID != "" && e.CorrelationID != h.CorrelationID {
			return nil, ErrCorrelation
		}
		stored, known := h.Stored[e.EventID]
		if !known {
			stored, known = seen[e.EventID]
		}
		if known {
			if stored != e.Hash {
				return nil, ErrEvent
			}
			continue
		}
		seen[e.EventID] = e.Hash
		e.Position = h.LastPosition + len(fresh) + 1
		fresh = append(fresh, e)
	}
	if h.LastPosition+len(fresh) > MaxEvents {
		return nil, errEventLimit
	}
	return fresh, nil
}
