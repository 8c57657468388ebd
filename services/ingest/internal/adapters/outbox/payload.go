package outbox

import (
	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/contracts/archivev1"
)

// ArchivePayload is what an outbox row keeps about an archive: the small facts
// that move, and the names of what was committed, never a text.
type ArchivePayload struct {
	// State is the archive's after the change.
	State archivev1.State `json:"state"`
	// Member is the session that confirmed, in a confirmation.
	Member string `json:"member,omitzero"`
	// Replace asks for a snapshot that counts even where the receiver is further.
	Replace bool `json:"replace,omitzero"`
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
