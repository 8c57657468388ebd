// Package refusal is the domain's one error type: a request that the rules turn
// down, with the code that the contract gives it ("Limits and errors").
//
// A refusal's message is written by us and never quotes input, so it may be
// shown to a caller and logged.
package refusal

import "errors"

// Code names why a request is refused, in the words that go over the wire.
type Code string

// The codes of the contract's section "Limits and errors".
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
