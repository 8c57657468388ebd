package client

import (
	"context"
	"math"
	"time"
	"unicode/utf8"
)

const maxTraceEvents = 200

// TraceEvent is something that happened in a run, such as "tool.called". It holds
// metadata only; no text of the conversation, argument or result belongs into it.
type TraceEvent struct {
	// EventID is the host's own stable identifier; the same event sent again is skipped.
	EventID string `json:"event_id"`
	// Event is its name: words with dots, such as tool.called or delivery.failed.
	Event      string    `json:"event"`
	OccurredAt time.Time `json:"occurred_at"`
	// JobID is the UUID that groups what belongs to one tool call, or empty.
	JobID string `json:"job_id,omitempty"`
	// Metadata holds booleans, numbers and short technical strings. What the hub does not
	// keep is counted in TraceAck.DroppedFields.
	Metadata map[string]any `json:"metadata,omitempty"`
}

// TraceAck answers RecordTrace.
type TraceAck struct {
	RunID string `json:"run_id"`
	// Accepted were new, Skipped were known already.
	Accepted      int `json:"accepted"`
	Skipped       int `json:"skipped"`
	DroppedFields int `json:"dropped_fields"`
	LastPosition  int `json:"last_position"`
}

// RecordTrace records 1 to 200 events of a run, all or none, in their order. Refusals:
// run_not_found, trace_event_conflict, run_limit.
func (s *Session) RecordTrace(ctx context.Context, runID string, events ...TraceEvent) (*TraceAck, error) {
	id, ok := parseUUID(runID)
	if !ok {
		return nil, invalid("the run's id is no UUID")
	}
	if len(events) == 0 || len(events) > maxTraceEvents {
		return nil, invalid("1 to %d trace events are recorded at a time", maxTraceEvents)
	}
	for _, e := range events {
		if err := e.check(); err != nil {
			return nil, err
		}
	}
	body, err := encodeRun(map[string]any{"events": events})
	if err != nil {
		return nil, err
	}
	var ack TraceAck
	if err := s.ask(ctx, post("/agent-api/v1/runs/"+id+"/trace-events", body), "verbatim.run-trace-ack.v1", &ack); err != nil {
		return nil, err
	}
	return &ack, nil
}

func (e TraceEvent) check() error {
	if !isIdentifier(e.EventID) {
		return invalid("a trace event's id is no identifier")
	}
	if !matches(e.Event, 3, 128, isLowerAlphanumeric, "_.") {
		return invalid("a trace event's name is words with dots")
	}
	if _, ok := parseUUID(e.JobID); e.JobID != "" && !ok {
		return invalid("a job's id is no UUID")
	}
	if year := e.OccurredAt.Year(); year < 1 || year > 9999 || e.OccurredAt.IsZero() {
		return invalid("a trace event has a time")
	}
	for name, value := range e.Metadata {
		if !utf8.ValidString(name) || !isScalar(value) {
			return invalid("metadata holds booleans, numbers and strings only")
		}
	}
	return nil
}

// isScalar reports whether JSON keeps the value as it is.
func isScalar(value any) bool {
	switch v := value.(type) {
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return true
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case float32:
		return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
	case string:
		return utf8.ValidString(v)
	}
	return false
}
