package kit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

const (
	// visibleLimit is how long an acknowledged event may take to be served.
	visibleLimit = 30 * time.Second
	// lockLimit is how long it may take until a request waits for a lock.
	lockLimit = 10 * time.Second
)

// Connect opens a connection that is closed at the test's end.
func Connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

// briefly runs fn with a connection of its own, which is closed then: a test may ask often.
func briefly(t *testing.T, dsn string, fn func(conn *pgx.Conn) error) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	return fn(conn)
}

// Exec runs one statement on a connection of its own.
func Exec(t *testing.T, dsn, statement string, args ...any) error {
	t.Helper()
	return briefly(t, dsn, func(conn *pgx.Conn) error {
		_, err := conn.Exec(t.Context(), statement, args...)
		return err
	})
}

// Count runs a query for one number.
func Count(t *testing.T, dsn, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, briefly(t, dsn, func(conn *pgx.Conn) error {
		return conn.QueryRow(t.Context(), query, args...).Scan(&n)
	}))
	return n
}

// Hold runs a statement in a transaction that stays open, so that its locks stay,
// until the returned function is called.
func Hold(t *testing.T, dsn, statement string, args ...any) (release func()) {
	t.Helper()
	conn := Connect(t, dsn)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
	return func() {
		t.Helper()
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// AwaitLockWaits waits until n connections to the database wait for locks.
func AwaitLockWaits(t *testing.T, adminDSN string, n int) {
	t.Helper()
	conn := Connect(t, adminDSN)
	Eventually(t, lockLimit, func() error {
		var waiting int
		err := conn.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting)
		if err == nil && waiting < n {
			err = fmt.Errorf("%d connections wait for locks, want %d", waiting, n)
		}
		return err
	})
}
