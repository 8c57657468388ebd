package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/services/ingest/internal/app"
)

// RegistryReader implements [app.RegistryReader] with gorm.
type RegistryReader struct{ db *gorm.DB }

// NewRegistryReader returns a reader of the database's registry.
func NewRegistryReader(db *gorm.DB) *RegistryReader { return &RegistryReader{db: db} }

var errNoRegistry = refusal.New(refusal.RegistryUnavailable, "the registry over HTTP needs the migration 059_registry_changes.sql")

// Controller implements [app.RegistryReader].
func (s *RegistryReader) Controller(ctx context.Context, hash []byte) (app.Controller, bool, error) {
	c, ok, err := controllerByToken(s.db.WithContext(ctx), hash)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == undefinedTable {
		err = errNoRegistry
	}
	return c, ok, err
}

// undefinedTable is a statement about a table that its migration has not made.
const undefinedTable = "42P01"

// Client implements [app.RegistryReader].
func (s *RegistryReader) Client(ctx context.Context, appID string) (app.StoredClient, error) {
	row, err := known[clientRow](s.db.WithContext(ctx), registryv1.KindClient, "app_id", appID)
	return row.stored(), err
}

// Route implements [app.RegistryReader].
func (s *RegistryReader) Route(ctx context.Context, routeKey string) (app.StoredRoute, error) {
	row, err := known[routeRow](s.db.WithContext(ctx), registryv1.KindRoute, "route_key", routeKey)
	if err != nil {
		return app.StoredRoute{}, err
	}
	return row.stored()
}

// Session implements [app.RegistryReader].
func (s *RegistryReader) Session(ctx context.Context, id identity.UUID) (app.StoredSession, error) {
	row, err := known[sessionRow](s.db.WithContext(ctx), registryv1.KindSession, "session_id", string(id))
	if err != nil {
		return app.StoredSession{}, err
	}
	return row.stored()
}

// Clients implements [app.RegistryReader].
func (s *RegistryReader) Clients(ctx context.Context, after string, limit int) ([]app.StoredClient, error) {
	return page(s.db.WithContext(ctx), "app_id", after, limit, func(r clientRow) (app.StoredClient, error) { return r.stored(), nil })
}

// Routes implements [app.RegistryReader].
func (s *RegistryReader) Routes(ctx context.Context, after string, limit int) ([]app.StoredRoute, error) {
	return page(s.db.WithContext(ctx), "route_key", after, limit, routeRow.stored)
}

// Sessions implements [app.RegistryReader].
func (s *RegistryReader) Sessions(ctx context.Context, clientAppID, after string, limit int) ([]app.StoredSession, error) {
	tx := s.db.WithContext(ctx)
	if clientAppID != "" {
		tx = tx.Where("client_app_id = ?", clientAppID)
	}
	return page(tx, "session_id", after, limit, sessionRow.stored)
}

// page reads the rows after a key, in key order.
func page[R, T any](tx *gorm.DB, key, after string, limit int, stored func(R) (T, error)) ([]T, error) {
	if after != "" {
		tx = tx.Where(key+" > ?", after)
	}
	var rows []R
	if err := tx.Order(key).Limit(limit).Find(&rows).Error; err != nil {
		return nil, err
	}
	out := make([]T, len(rows))
	for i, row := range rows {
		var err error
		if out[i], err = stored(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}
