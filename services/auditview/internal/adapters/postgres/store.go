package postgres

import (
	"time"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/services/auditview/internal/app"
)

// Store implements the application's ports. Safe for concurrent use.
type Store struct {
	db  *database.DB
	now func() time.Time
}

var (
	_ app.ParkedStore        = (*Store)(nil)
	_ app.ReadStore          = (*Store)(nil)
	_ app.AdministratorStore = (*Store)(nil)
)

// New returns a store over an open database; now is the clock.
func New(db *database.DB, now func() time.Time) *Store { return &Store{db, now} }
