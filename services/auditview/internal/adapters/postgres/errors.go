package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/services/auditview/internal/app"
)

// safeError hides an error of the server whose message or detail may quote values.
type safeError struct {
	text  string
	cause error
}

func (e *safeError) Error() string { return e.text }
func (e *safeError) Unwrap() error { return e.cause }

// safe returns err with a text that may be stored and logged.
func safe(err error) error {
	var pg *pgconn.PgError
	if err == nil || !errors.As(err, &pg) {
		return err
	}
	text := "SQLSTATE " + pg.Code
	if pg.ConstraintName != "" {
		text += ", constraint " + pg.ConstraintName
	}
	if pg.TableName != "" {
		text += ", table " + pg.TableName
	}
	return &safeError{text, err}
}

// projectionError tells what a projection can do about err.
func projectionError(err error) error {
	if database.Classify(err) == database.Permanent {
		return &app.PermanentError{Reason: safe(err).Error()}
	}
	return safe(err)
}

// States of a table and of a column that do not exist: the database is not migrated.
const (
	undefinedTable  = "42P01"
	undefinedColumn = "42703"
)

// readError marks what a reader should try again later.
func readError(err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	missing := errors.As(err, &pg) && (pg.Code == undefinedTable || pg.Code == undefinedColumn)
	class := database.Classify(err)
	if missing || class == database.Transient || class == database.Serialization {
		return fmt.Errorf("%w: %w", app.ErrUnavailable, safe(err))
	}
	return safe(err)
}
