// Package httpapi holds what the two services and their callers agree on over
// HTTP: schema names, error codes, strict decoding and the bodies of requests
// and answers (contract: "Agent Conversation Audit v1").
package httpapi

import "time"

// Schema names of requests and answers.
const (
	SchemaCreateV2     = "bailing.agent-conversation-audit-create.v2"
	SchemaHeader       = "bailing.agent-conversation-audit.v1"
	SchemaAck          = "bailing.agent-conversation-audit-ack.v1"
	SchemaCapabilities = "bailing.agent-conversation-audit-capabilities.v1"
	SchemaList         = "bailing.agent-conversation-audit-list.v1"
	SchemaDetail       = "bailing.agent-conversation-audit-detail.v1"
	// MemberBindings names the kind of member bindings a capability answer speaks of.
	MemberBindings = "session-client-route.v1"
)

// Error codes that are not refusals of the archive's rules.
const (
	CodeUnauthorized         = "unauthorized"
	CodeForbidden            = "forbidden"
	CodeNotFound             = "not_found"
	CodeUnsupportedMediaType = "unsupported_media_type"
	CodeInternal             = "conversation_audit_internal_error"
)

// MaxEnvelopeBytes is the size of a request body: 2 MiB.
const MaxEnvelopeBytes = 2 << 20

// Error is the body of every answer that is not a success. Its message never
// carries input, tokens, SQL or a stack.
type Error struct {
	Code    string `json:"error"`
	Message string `json:"message"`
}

// FormatTime gives t as RFC 3339 in UTC with milliseconds and Z, cut, not rounded.
func FormatTime(t time.Time) string {
	return t.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z")
}
