package run

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/redact"
	"verbatim.internal/pkg/domain/timestamp"
)

// TraceFields are one trace event as it was sent: what is absent is nil.
type TraceFields struct {
	EventID    string
	Event      string
	OccurredAt string
	JobID      *string
	Metadata   jsontext.Value
}

// TraceEvent is one thing that a host says happened in a run: what may be stored of it.
type TraceEvent struct {
	EventID string
	// Event is the dotted name, such as tool.called. The known ones are tool.called,
	// .completed and .failed, approval.requested, .approved and .rejected,
	// delivery.attempted, .completed and .failed; every other is taken too.
	Event string
	// OccurredAt is RFC 3339 in UTC with the digits that were sent.
	OccurredAt string
	// JobID groups the events of one tool call; "" for none.
	JobID identity.UUID
	// Metadata is a canonical JSON object of scalars under the names of the allowlist.
	Metadata jsontext.Value
	// DroppedFields is how many fields of the metadata were dropped.
	DroppedFields int
	// Hash tells whether a repeated event is the same: the SHA-256 of what is kept of it.
	Hash [sha256.Size]byte
	// Position numbers the run's events from 1; 0 until it is stored.
	Position int
}

// NewTraceBatch validates the events of one request, 1 to 200, all or none (InvalidRequest):
// an id is an identifier that the redactor leaves as it is, a name is an event type of the
// audit record ([execution.IsEventType]), a time is RFC 3339 with any offset and at most 9
// fractional digits ([timestamp.Normalize]), a job is a UUID, metadata is an object.
func NewTraceBatch(fields []TraceFields) ([]TraceEvent, error) {
	if len(fields) == 0 || len(fields) > MaxBatchEvents {
		return nil, errTraceEvents
	}
	batch := make([]TraceEvent, len(fields))
	for i, f := range fields {
		var ok bool
		if batch[i], ok = newTraceEvent(f); !ok {
			return nil, errTraceEvent
		}
	}
	return batch, nil
}

func newTraceEvent(f TraceFields) (e TraceEvent, ok bool) {
	e = TraceEvent{EventID: f.EventID, Event: f.Event, Metadata: jsontext.Value(`{}`)}
	if !archive.IsIdentifier(f.EventID) || redact.IsSecret(f.EventID) || !execution.IsEventType(f.Event) {
		return TraceEvent{}, false
	}
	if e.OccurredAt, ok = timestamp.Normalize(f.OccurredAt); !ok {
		return TraceEvent{}, false
	}
	if f.JobID != nil {
		if e.JobID, ok = identity.ParseUUID(*f.JobID); !ok {
			return TraceEvent{}, false
		}
	}
	if f.Metadata != nil {
		if e.Metadata, e.DroppedFields, ok = filterMetadata(f.Metadata); !ok {
			return TraceEvent{}, false
		}
	}
	var err error
	e.Hash, err = sum(struct {
		EventID    string         `json:"event_id"`
		Event      string         `json:"event"`
		OccurredAt string         `json:"occurred_at"`
		JobID      identity.UUID  `json:"job_id,omitzero"`
		Metadata   jsontext.Value `json:"metadata"`
	}{e.EventID, e.Event, e.OccurredAt, e.JobID, e.Metadata})
	return e, err == nil
}

// TraceHistory is what a batch is judged against, read under the run's lock.
type TraceHistory struct {
	// LastPosition is the position of the run's last event, 0 when it has none.
	LastPosition int
	// Stored has the hashes of those events of the batch whose ids the run has.
	Stored map[string][sha256.Size]byte
	// Jobs has the runs of those jobs of the batch that are known.
	Jobs map[identity.UUID]identity.UUID
}

// Record decides which events of a batch are new to the run and numbers them; the others
// are stored already, exactly so. It refuses the whole batch with ErrTraceEvent for an id
// that stands for something else, in the run or in the batch, with ErrJob for a job of
// another run, and with RunLimit when the run would have more than 2,000 events.
func Record(runID identity.UUID, batch []TraceEvent, h TraceHistory) (fresh []TraceEvent, err error) {
	seen := make(map[string][sha256.Size]byte, len(batch))
	for _, e := range batch {
		stored, known := h.Stored[e.EventID]
		if !known {
			stored, known = seen[e.EventID]
		}
		if known {
			if stored != e.Hash {
				return nil, ErrTraceEvent
			}
			continue
		}
		if owner, known := h.Jobs[e.JobID]; known && owner != runID {
			return nil, ErrJob
		}
		seen[e.EventID] = e.Hash
		e.Position = h.LastPosition + len(fresh) + 1
		fresh = append(fresh, e)
	}
	if h.LastPosition+len(fresh) > MaxTraceEvents {
		return nil, errTraceLimit
	}
	return fresh, nil
}
