package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// Class says what a caller can do about a database error.
type Class int

const (
	// Other is an error that says nothing about a retry: a missing table, a refused
	// right, an error that does not come from the database at all. It is the class of nil.
	Other Class = iota
	// Transient is a condition that passes: the server or the network is away, a limit
	// is reached, a time-out or the context ended the work. The same work may succeed later.
	Transient
	// Serialization is a transaction that lost against another (40001, 40P01). It may be
	// run again at once, from its beginning.
	Serialization
	// Permanent is data that the database will never take (classes 22 and 23).
	Permanent
)

// String returns the class's name in lower case.
func (c Class) String() string {
	switch c {
	case Transient:
		return "transient"
	case Serialization:
		return "serialization"
	case Permanent:
		return "permanent"
	case Other:
	}
	return "other"
}

// Classify sorts an error that pgx, database/sql or gorm returned, wrapped or not.
//
// An error class says nothing about whether the work was done: a connection that is
// lost during COMMIT is Transient and may have committed. Whoever runs work again must
// make it idempotent.
func Classify(err error) Class {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return classifyState(pgErr)
	}
	var (
		netErr     net.Error
		connectErr *pgconn.ConnectError
	)
	switch {
	case err == nil:
		return Other
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, puddle.ErrClosedPool), errors.Is(err, puddle.ErrNotAvailable),
		errors.Is(err, pgconn.ErrConnClosed),
		errors.As(err, &netErr), errors.As(err, &connectErr),
		pgconn.Timeout(err), pgconn.SafeToRetry(err):
		return Transient
	default:
		return Other
	}
}

func classifyState(err *pgconn.PgError) Class {
	switch err.Code {
	case "40001", "40P01":
		return Serialization
	case "25P03", "25P04": // the server ended an idle or overlong transaction
		return Transient
	case "25006": // read only: the primary that we knew is a standby now
		return Transient
	case "0A000":
		// A migration changed the shape of a statement that this session had cached; pgx
		// forgets the statement, so the next try prepares it again.
		if err.Routine == "RevalidateCachedQuery" {
			return Transient
		}
		return Other
	}
	if len(err.Code) != 5 {
		return Other
	}
	switch err.Code[:2] {
	case "08", "40", "53", "55", "57", "58", "XX":
		return Transient
	case "22", "23":
		return Permanent
	default:
		return Other
	}
}

const (
	serializationAttempts = 10
	serializationPause    = 2 * time.Millisecond
	serializationMaxPause = 200 * time.Millisecond
)

// RetrySerialization runs fn until it returns something else than a [Serialization]
// error, at most ten times, with growing, jittered pauses of at most 200 ms. fn holds
// the whole transaction, from its beginning to its commit. RetrySerialization returns
// fn's last error; when ctx ends during a pause, the context's error is joined to it.
func RetrySerialization(ctx context.Context, fn func() error) error {
	pause := serializationPause
	for attempt := 1; ; attempt++ {
		err := fn()
		if Classify(err) != Serialization || attempt == serializationAttempts {
			return err
		}
		// Jitter over the whole range: those that collided must not meet again.
		timer := time.NewTimer(rand.N(pause) + time.Millisecond) //nolint:gosec // a pause needs no secret randomness
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		}
		pause = min(2*pause, serializationMaxPause)
	}
}
