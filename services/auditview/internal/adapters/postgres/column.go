package postgres

import (
	"errors"

	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/readmodel"
)

var (
	errInconsistent = &app.PermanentError{Reason: readmodel.ErrInconsistent.Error()}
	errUnwritable   = errors.New("its event is not JSON")
)

// column is one column of a set of rows, sent as an array.
type column[T any] []T

func (c *column[T]) add(v T) { *c = append(*c, v) }

// when returns v, or nil for a column's NULL.
func when[T any](present bool, v T) *T {
	if !present {
		return nil
	}
	return &v
}
