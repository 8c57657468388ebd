package httpapi

import "github.com/go-json-experiment/json/jsontext"

// Header is an archive's header, as agents and administrators see it.
type Header struct {
	ConversationID       string  `json:"conversation_id"`
	ClientArchiveID      string  `json:"client_archive_id"`
	ClientConversationID string  `json:"client_conversation_id"`
	ClientAppID          string  `json:"client_app_id"`
	RouteKey             string  `json:"route_key"`
	State                string  `json:"state"`
	MemberCount          int     `json:"member_count"`
	ConfirmedCount       int     `json:"confirmed_count"`
	LastSequence         int     `json:"last_sequence"`
	MessageCount         int     `json:"message_count"`
	TurnCount            int     `json:"turn_count"`
	LastTurnStatus       *string `json:"last_turn_status"` // null before the first turn
	CreatedAt            string  `json:"created_at"`
	UpdatedAt            string  `json:"updated_at"`
}

// HeaderAnswer answers a creation or a confirmation.
type HeaderAnswer struct {
	Schema string `json:"schema"`
	Header
}

// Ack answers an append: LastSequence is the archive's, after the batch.
type Ack struct {
	Schema         string `json:"schema"`
	ConversationID string `json:"conversation_id"`
	LastSequence   int    `json:"last_sequence"`
}

// Capabilities answers the capability probe.
type Capabilities struct {
	Schema              string `json:"schema"`
	CrossBindingMembers bool   `json:"cross_binding_members"`
	MemberBindings      string `json:"member_bindings"`
}

// List is a page of archives.
type List struct {
	Schema     string   `json:"schema"`
	Items      []Header `json:"items"`
	HasMore    bool     `json:"has_more"`
	NextOffset *int64   `json:"next_offset"` // null on the last page
}

// Detail is a page of one archive's events, with its header and members.
type Detail struct {
	Schema            string   `json:"schema"`
	Conversation      Header   `json:"conversation"`
	Members           []Member `json:"members"`
	Events            []Event  `json:"events"`
	HasMore           bool     `json:"has_more"`
	NextAfterSequence int64    `json:"next_after_sequence"`
}

// Member is what administrators see of a member. Principal and OnBehalfOf are
// there once it has confirmed; the binding only when it was recorded (v2).
type Member struct {
	SessionID    string         `json:"session_id"`
	DisplayLabel string         `json:"display_label"`
	Confirmed    bool           `json:"confirmed"`
	ClientAppID  *string        `json:"client_app_id,omitzero"`
	ClientName   *string        `json:"client_name,omitzero"`
	RouteKey     *string        `json:"route_key,omitzero"`
	Principal    jsontext.Value `json:"principal,omitzero"`
	OnBehalfOf   *string        `json:"on_behalf_of,omitzero"`
}

// Event is what administrators see of an event: the submitted fields of its
// kind, CreatedAt, and ThreadID on run links.
type Event struct {
	EventID         string  `json:"event_id"`
	Sequence        int     `json:"sequence"`
	ClientTurnID    string  `json:"client_turn_id"`
	Kind            string  `json:"kind"`
	Content         *string `json:"content,omitzero"`
	Status          *string `json:"status,omitzero"`
	RunID           *string `json:"run_id,omitzero"`
	MemberSessionID *string `json:"member_session_id,omitzero"`
	ThreadID        *int64  `json:"thread_id,omitzero"`
	CreatedAt       string  `json:"created_at"`
}
