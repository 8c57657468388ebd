package outbox

import (
	"errors"
	"math"

	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/runv1"
	"verbatim.internal/pkg/domain/execution"
)

// ArchivePayload is what an outbox row keeps about an archive: the small facts
// that move, and the names of what was committed, never a text.
type ArchivePayload struct {
	// State is the archive's after the change.
	State archivev1.State `json:"state"`
	// Member is the session that confirmed, in a confirmation.
	Member string `json:"member,omitzero"`
	// FirstSequence is where an append begins; it ends at State.LastSequence.
	FirstSequence int `json:"first_sequence,omitzero"`
}

// Marshal returns the payload's JSON.
func (p ArchivePayload) Marshal() (string, error) {
	b, err := json.Marshal(p)
	return string(b), err
}

// inRange reports whether the payload names events that an archive may have.
func (p ArchivePayload) inRange() bool {
	return p.FirstSequence >= 1 && p.FirstSequence <= p.State.LastSequence && p.State.LastSequence <= archivev1.MaxEvents
}

// TracePayload is what an outbox row keeps about new trace events of a run: the positions
// of the first and of the last.
type TracePayload struct {
	FirstPosition int `json:"first_position"`
	LastPosition  int `json:"last_position"`
}

// Marshal returns the payload's JSON.
func (p TracePayload) Marshal() (string, error) {
	b, err := json.Marshal(p)
	return string(b), err
}

// inRange reports whether the payload names trace events that a run may have.
func (p TracePayload) inRange() bool {
	return p.FirstPosition >= 1 && p.FirstPosition <= p.LastPosition && p.LastPosition <= runv1.MaxTraceEvents
}

// rangePayload is what an outbox row keeps about new events or callback attempts of an
// execution: the positions of the first and of the last.
type rangePayload struct {
	FirstPosition int `json:"first_position"`
	LastPosition  int `json:"last_position"`
}

// inRange reports whether the payload names as many as one request may have brought.
func (p rangePayload) inRange() bool {
	return p.FirstPosition >= 1 && p.FirstPosition <= p.LastPosition && p.LastPosition <= math.MaxInt32 &&
		p.LastPosition-p.FirstPosition < execution.MaxBatch
}

// factPayload is what an outbox row keeps about a fact of an execution: the id of the task,
// the approval or the grant.
type factPayload struct {
	TaskID     string `json:"task_id"`
	ApprovalID string `json:"approval_id"`
	GrantID    string `json:"grant_id"`
}

// snapshotPayload is what an outbox row keeps that asks for a snapshot.
type snapshotPayload struct {
	// Replace asks for a snapshot that counts even where the receiver is further.
	Replace bool `json:"replace"`
}

// parsePayload reads a row's payload; a malformed one is empty.
func parsePayload[P any](r row) (P, error) {
	var p, zero P
	if err := json.Unmarshal([]byte(r.payload), &p); err != nil {
		return zero, errors.New("the payload is malformed")
	}
	return p, nil
}
