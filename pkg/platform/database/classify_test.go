package database_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"verbatim.internal/pkg/platform/database"
)

func state(code string) error { return &pgconn.PgError{Code: code, Message: "m"} }

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err   error
		class database.Class
	}{
		{nil, database.Other},
		{errors.New("something"), database.Other},
		{pgx.ErrNoRows, database.Other},
		{gorm.ErrRecordNotFound, database.Other},
		{state("40001"), database.Serialization},
		{state("40P01"), database.Serialization},
		{state("40002"), database.Transient},
		{state("08006"), database.Transient},
		{state("53300"), database.Transient},
		{state("55P03"), database.Transient},
		{state("57014"), database.Transient},
		{state("57P01"), database.Transient},
		{state("58030"), database.Transient},
		{state("XX000"), database.Transient},
		{state("25P03"), database.Transient},
		{state("25006"), database.Transient},
		{state("25P02"), database.Other},
		{state("22P02"), database.Permanent},
		{state("23505"), database.Permanent},
		{state("42501"), database.Other},
		{state("42P01"), database.Other},
		{state(""), database.Other},
		{state("0A000"), database.Other},
		{&pgconn.PgError{Code: "0A000", Routine: "RevalidateCachedQuery"}, database.Transient},
		{context.Canceled, database.Transient},
		{context.DeadlineExceeded, database.Transient},
		{io.ErrUnexpectedEOF, database.Transient},
		{driver.ErrBadConn, database.Transient},
		{sql.ErrConnDone, database.Transient},
		{net.ErrClosed, database.Transient},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, database.Transient},
		{pgconn.ErrConnClosed, database.Transient},
	} {
		require.Equal(t, tc.class, database.Classify(tc.err), "%v", tc.err)
		if tc.err != nil {
			require.Equal(t, tc.class, database.Classify(fmt.Errorf("append: %w", tc.err)), "%v, wrapped", tc.err)
		}
	}
}

func TestRetrySerialization(t *testing.T) {
	t.Parallel()
	t.Run("until it succeeds", func(t *testing.T) {
		t.Parallel()
		calls := 0
		require.NoError(t, database.RetrySerialization(t.Context(), func() error {
			if calls++; calls < 4 {
				return fmt.Errorf("commit: %w", state("40P01"))
			}
			return nil
		}))
		require.Equal(t, 4, calls)
	})
	t.Run("no other error", func(t *testing.T) {
		t.Parallel()
		calls := 0
		err := database.RetrySerialization(t.Context(), func() error { calls++; return state("57P01") })
		require.Equal(t, state("57P01"), err)
		require.Equal(t, 1, calls)
	})
	t.Run("a bounded number of times", func(t *testing.T) {
		t.Parallel()
		calls := 0
		err := database.RetrySerialization(t.Context(), func() error { calls++; return state("40001") })
		require.Equal(t, database.Serialization, database.Classify(err))
		require.Equal(t, 10, calls)
	})
	t.Run("while the context lasts", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		err := database.RetrySerialization(ctx, func() error { calls++; cancel(); return state("40001") })
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, calls)
	})
}
