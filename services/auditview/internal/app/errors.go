package app

import "errors"

// PermanentError says that the store will never take a change. Reason may be stored and
// shown: it names states and constraints, never values.
type PermanentError struct{ Reason string }

func (e *PermanentError) Error() string { return e.Reason }

var (
	// ErrShuttingDown refuses a batch that would park messages while the service stops: what
	// looks like poison may be the shutdown itself.
	ErrShuttingDown = errors.New("the service is shutting down")
	// ErrUnavailable is a store that is away or not migrated.
	ErrUnavailable = errors.New("the store is not available")
	// ErrArchiveNotFound is an archive that does not exist.
	ErrArchiveNotFound = errors.New("no such archive")
	// ErrThreadNotFound is a thread that no run is in.
	ErrThreadNotFound = errors.New("no such thread")
	// ErrRunNotFound is a run or a job that does not exist or does not belong where it was looked for.
	ErrRunNotFound = errors.New("no such run")
	// ErrTooLarge is something that cannot be shown at once.
	ErrTooLarge = errors.New("too large to be shown at once")
)
