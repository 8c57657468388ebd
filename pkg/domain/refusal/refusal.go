// Package refusal is the domain's one error type: a request that the rules turn
// down, with the code that the contract gives it ("Limits and errors").
//
// A refusal's message is written by us and never quotes input, so it may be
// shown to a caller and logged.
package refusal

import "errors"

// Code names why a request is refused, in the words that go over the wire.
type Code string

// The codes of the contract's section "Limits and errors", for archives.
const (
	// InvalidRequest is a body, identifier or parameter that breaks its DTO.
	InvalidRequest Code = "invalid_request"
	// AuthorizationInvalid is a frozen authorization or route that no longer holds.
	AuthorizationInvalid Code = "conversation_audit_authorization_invalid"
	// NotFound is an archive that does not exist for this caller.
	NotFound Code = "conversation_audit_not_found"
	// NotReady is an append before every member has confirmed.
	NotReady Code = "conversation_audit_not_ready"
	// Conflict is frozen membership, an event, a turn or a run link that contradicts what is stored.
	Conflict Code = "conversation_audit_conflict"
	// Limit is a batch or an archive that is larger than allowed.
	Limit Code = "conversation_audit_limit"
	// Unavailable is an archive store that is not there: no tables, or no database.
	Unavailable Code = "conversation_audit_unavailable"
	// CrossBindingUnavailable is a v2 creation on a store without member bindings.
	CrossBindingUnavailable Code = "conversation_audit_cross_binding_unavailable"
)

// The codes of Agent Auth v1.
const (
	// InvalidClient is a client that does not exist, is disabled, has no page to authorize
	// at, or may not use a route that was asked for.
	InvalidClient Code = "invalid_client"
	// InvalidGrant is a code or a refresh token that is unknown, used, expired, revoked or
	// shown by somebody else. It does not tell which.
	InvalidGrant Code = "invalid_grant"
	// UnsupportedGrantType is a grant type that the token endpoint does not know.
	UnsupportedGrantType Code = "unsupported_grant_type"
	// RateLimited is a caller that asks too often.
	RateLimited Code = "rate_limited"
	// AuthorizationNotFound is an authorization that does not exist for this client.
	AuthorizationNotFound Code = "authorization_not_found"
	// AuthorizationDecided is an authorization that was approved or denied already.
	AuthorizationDecided Code = "authorization_decided"
	// AuthorizationExpired is an authorization that nobody decided in time.
	AuthorizationExpired Code = "authorization_expired"
	// SessionNotFound is a session that does not exist for this client.
	SessionNotFound Code = "session_not_found"
	// RequestLimit is a body that is larger than its endpoint allows.
	RequestLimit Code = "request_limit"
	// AgentAuthUnavailable is a store without the tables of Agent Auth.
	AgentAuthUnavailable Code = "agent_auth_unavailable"
)

// The codes of runs.
const (
	// RouteNotAllowed is a route that does not exist or that the caller may not use.
	RouteNotAllowed Code = "route_not_allowed"
	// TurnConflict is a turn that is repeated with another input.
	TurnConflict Code = "turn_conflict"
	// RunNotFound is a run that does not exist for this caller.
	RunNotFound Code = "run_not_found"
	// RunCompletionConflict is a completion that contradicts the stored one.
	RunCompletionConflict Code = "run_completion_conflict"
	// AssistantMessageConflict is a message id that another run of the thread has.
	AssistantMessageConflict Code = "assistant_message_conflict"
	// TraceEventConflict is a trace event that contradicts a stored one, or a job of another run.
	TraceEventConflict Code = "trace_event_conflict"
	// RunLimit is a request about a run, or a run, that is larger than allowed.
	RunLimit Code = "run_limit"
	// RunsUnavailable is a store without the tables of runs.
	RunsUnavailable Code = "runs_unavailable"
	// RunConflict is something about an execution that contradicts what is stored.
	RunConflict Code = "run_conflict"
)

// The codes of the registry over HTTP.
const (
	// RegistryNotFound is an entry that does not exist.
	RegistryNotFound Code = "registry_not_found"
	// RegistryConflict is an entry that contradicts what is stored.
	RegistryConflict Code = "registry_conflict"
	// RegistryUnavailable is a store without the tables of the registry over HTTP.
	RegistryUnavailable Code = "registry_unavailable"
)

// Error is one refused request.
type Error struct {
	// Code is what the caller's program acts on.
	Code Code
	// Message is one sentence for a person; it never contains input.
	Message string
}

// New returns a refusal. The message must not contain anything that the caller sent.
func New(code Code, message string) *Error {
	return &Error{Code: code, Message: message}
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Is reports whether target is a refusal with the same code, whatever its message.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code
}

// CodeOf returns the code of the refusal that err wraps, or "" when it wraps none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
