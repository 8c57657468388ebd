package archivev1

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of an archive, as the contract sets them.
const (
	MaxMembers      = 64
	MaxEvents       = 20_000
	MaxBatchEvents  = 50
	MaxContentUnits = 64_000   // UTF-16 code units of one content
	MaxTextBytes    = 16 << 20 // UTF-8 bytes of an archive's contents
	MaxLabelUnits   = 128      // UTF-16 code units of a display label
	MaxThreadID     = 1<<53 - 1
)

// States of an archive.
const (
	StateEnrolling = "enrolling"
	StateReady     = "ready"
)

// Statuses of a turn.
const (
	StatusRunning   = "running"
	StatusCompleted = "completed"
	StatusFailed    = "failed"
	StatusCancelled = "cancelled"
)

// Kinds of events.
const (
	KindTurnStart        = "turn_start"
	KindUserMessage      = "user_message"
	KindAssistantMessage = "assistant_message"
	KindRunLink          = "run_link"
	KindTurnEnd          = "turn_end"
)

// Header is what an archive was created with, and its state.
type Header struct {
	ConversationID       string `json:"conversation_id"`
	ClientArchiveID      string `json:"client_archive_id"`
	ClientConversationID string `json:"client_conversation_id"`
	CreatorSessionID     string `json:"creator_session_id"`
	// ClientAppID and RouteKey are the writer's binding; in version 1 everybody's.
	ClientAppID string `json:"client_app_id"`
	RouteKey    string `json:"route_key"`
	// MembershipVersion is 1 (one common binding) or 2 (a binding per member).
	MembershipVersion int       `json:"membership_version"`
	MemberCount       int       `json:"member_count"`
	CreatedAt         time.Time `json:"created_at"`
	State             State     `json:"state"`
}

// State is what changes with each message of an archive.
type State struct {
	// State is StateEnrolling, or StateReady once all members are confirmed.
	State          string `json:"state"`
	ConfirmedCount int    `json:"confirmed_count"`
	// LastSequence counts events of all kinds, MessageCount the visible messages.
	LastSequence int `json:"last_sequence"`
	MessageCount int `json:"message_count"`
	TurnCount    int `json:"turn_count"`
	// LastTurnStatus is nil until the first turn starts.
	LastTurnStatus *string `json:"last_turn_status"`
	// TextBytes is the sum of the contents' UTF-8 lengths.
	TextBytes int64     `json:"text_bytes"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Member is a session frozen into an archive.
type Member struct {
	SessionID string `json:"session_id"`
	// DisplayLabel is the label given, else the session id.
	DisplayLabel string `json:"display_label"`
	// ClientAppID, RouteKey and ClientName are those of a membership version 2; absent in version 1.
	ClientAppID string `json:"client_app_id,omitzero"`
	RouteKey    string `json:"route_key,omitzero"`
	ClientName  string `json:"client_name,omitzero"`
	// ConfirmedAt is nil until the member confirmed.
	ConfirmedAt *time.Time `json:"confirmed_at,omitzero"`
	// Principal is the frozen principal's JSON object, without white space, byte for byte;
	// present exactly when ConfirmedAt is.
	Principal jsontext.Value `json:"principal,omitzero"`
	// OnBehalfOf is the frozen on_behalf_of of a confirmed member; empty when its session has none.
	OnBehalfOf string `json:"on_behalf_of,omitzero"`
}

// Event is one numbered entry of an archive.
type Event struct {
	EventID      string `json:"event_id"`
	Sequence     int    `json:"sequence"`
	ClientTurnID string `json:"client_turn_id"`
	Kind         string `json:"kind"`
	// Content is the text of a message, exactly.
	Content string `json:"content,omitzero"`
	// Status is how a turn ended.
	Status string `json:"status,omitzero"`
	// RunID, MemberSessionID and ThreadID are those of a run link.
	RunID           string    `json:"run_id,omitzero"`
	MemberSessionID string    `json:"member_session_id,omitzero"`
	ThreadID        int64     `json:"thread_id,omitzero"`
	CreatedAt       time.Time `json:"created_at"`
}
