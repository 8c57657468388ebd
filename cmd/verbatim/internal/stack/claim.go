package stack

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// claimLock is the advisory lock of the one `verbatim up` on a server.
const claimLock int64 = 0x766274_7570 // "vbt" "up"

var errNoDSN = errors.New("--postgres is no connection string of a PostgreSQL server")

// claimServer keeps a second process, with another data directory, off a server
// of somebody else's: it would give the roles other passwords and lock the first
// one out. The claim is a session's, so that it ends with the process.
func (s *Stack) claimServer(ctx context.Context) error {
	if s.server != nil {
		return nil // the data directory is locked
	}
	parsed, err := pgx.ParseConfig(s.config.Postgres.Reveal())
	if err != nil {
		return errNoDSN // the parser's own text quotes the name
	}
	conn, err := pgx.ConnectConfig(ctx, parsed)
	if err != nil {
		return fmt.Errorf("the server that --postgres names cannot be reached: %w", err)
	}
	s.later("the claim on the server", func(ctx context.Context) error {
		_ = conn.Close(ctx) // a server that went away took the claim with it
		return nil
	})
	var alone bool
	if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, claimLock).Scan(&alone); err != nil {
		return fmt.Errorf("the server that --postgres names cannot be claimed: %w", err)
	}
	if !alone {
		return errors.New("another `verbatim up` uses the server that --postgres names")
	}
	return nil
}
