package client

import (
	"errors"
	"fmt"
	"time"
)

// Errors that a caller acts on; test with errors.Is. None of them holds a text or a
// token.
var (
	// ErrInvalid is a value that breaks its rules. It was neither stored nor sent.
	ErrInvalid = errors.New("verbatim: invalid")
	// ErrLimit is more than an archive holds. It was neither stored nor sent.
	ErrLimit = errors.New("verbatim: over a limit")
	// ErrConflict contradicts what is in the spool. It was neither stored nor sent.
	ErrConflict = errors.New("verbatim: contradicts what is stored")
	// ErrUnsupported is a hub that does not offer what was asked for, such as an older
	// one without archives. Events stay in the spool; a later Sync asks again.
	ErrUnsupported = errors.New("verbatim: not supported by this hub")
	// ErrReauthorize is a session whose tokens the hub no longer takes: the person has to
	// authorize again. A new session never takes the old one's place in an archive.
	ErrReauthorize = errors.New("verbatim: authorize again")
	// ErrUnavailable is a hub that could not be reached, gave no usable answer or asked
	// to wait. The same call may be repeated unchanged.
	ErrUnavailable = errors.New("verbatim: the hub is not available")
	// ErrDenied is an authorization that the person has denied.
	ErrDenied = errors.New("verbatim: the authorization was denied")
	// ErrExpired is an authorization that nobody decided in time.
	ErrExpired = errors.New("verbatim: the authorization has expired")
	// ErrNotArchived is an archive that cannot be forgotten: not all of it is acknowledged.
	ErrNotArchived = errors.New("verbatim: not everything is acknowledged")
	// ErrNotFound is a session or an archive that this spool does not have.
	ErrNotFound = errors.New("verbatim: not in this spool")
	// ErrLocked is a spool that another process has open.
	ErrLocked = errors.New("verbatim: another process has this spool open")
	// ErrSpool is a file that is no spool of this hub, or that others may read.
	ErrSpool = errors.New("verbatim: not a usable spool")
	// ErrClosed is a spool that was closed.
	ErrClosed = errors.New("verbatim: the spool is closed")
)

// CodeDiverged is the code of an archive of which the hub holds more than the spool, as
// after an old copy of the file was put back. It is the one code that is not the hub's.
const CodeDiverged = "client_spool_diverged"

// RefusedError is a request that the hub refuses for good; repeating it unchanged
// would be refused again. For an archive it is kept in the spool.
type RefusedError struct {
	// Status is the HTTP status, 0 when the client itself found the contradiction.
	Status int `json:"status"`
	// Code is the hub's word for it, such as conversation_audit_conflict.
	Code string `json:"code"`
	// Message is the hub's sentence for a person.
	Message string `json:"message"`
}

// Error returns code and message.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("verbatim: refused by the hub: %s: %s", e.Code, e.Message)
}

// ReauthorizeError names the session that has to be authorized again. It is an
// ErrReauthorize.
type ReauthorizeError struct{ SessionID string }

// Error names the session.
func (e *ReauthorizeError) Error() string {
	return ErrReauthorize.Error() + ": session " + e.SessionID
}

// Is reports whether target is ErrReauthorize.
func (e *ReauthorizeError) Is(target error) bool { return target == ErrReauthorize }

// unavailableError is an ErrUnavailable with what is needed to try again.
type unavailableError struct {
	reason     string
	cause      error         // nil when an answer came
	status     int           // of that answer
	retryAfter time.Duration // 0 when the hub did not say
	unsent     bool          // the request certainly did not reach the hub
}

func (e *unavailableError) Error() string {
	text := ErrUnavailable.Error() + ": " + e.reason
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

func (e *unavailableError) Is(target error) bool { return target == ErrUnavailable }
func (e *unavailableError) Unwrap() error        { return e.cause }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

func conflict(reason string) error { return fmt.Errorf("%w: %s", ErrConflict, reason) }

func overLimit(reason string) error { return fmt.Errorf("%w: %s", ErrLimit, reason) }
