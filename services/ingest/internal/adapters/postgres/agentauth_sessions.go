package postgres

import (
	"context"
	"fmt"
	"time"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

// InsertSession implements [app.AuthorizationTx].
func (a *authTx) InsertSession(_ context.Context, s app.AgentSession, by app.Actor) error {
	principal, err := s.Principal.Marshal()
	if err != nil {
		return fmt.Errorf("session %s: %w", s.ID, err)
	}
	row := sessionRow{
		SessionID: string(s.ID), ClientAppID: s.ClientAppID, DeviceLabel: s.DeviceLabel, Principal: string(principal),
		OnBehalfOf: s.OnBehalfOf, AllowedRoutes: s.AllowedRoutes, RefreshExpiresAt: s.RefreshExpiresAt,
		CreatedAt: s.CreatedAt, UpdatedAt: s.CreatedAt,
	}
	if err := a.tx.Create(&row).Error; err != nil {
		return err
	}
	return a.record(sessionEntry(sessionRow{}, false, row), registryv1.ActionCreated, by, s.CreatedAt)
}

// record records what became of a session whose row was written.
func (a *authTx) record(e *entry, action string, by app.Actor, now time.Time) error {
	partition, err := recordChange(a.tx, registryChange{
		kind: e.kind, name: e.name, action: action, fields: e.fields, changes: e.changes, actor: by,
	}, now, a.trace)
	a.partitions = append(a.partitions, partition)
	return err
}

// Session implements [app.AuthorizationTx].
func (a *authTx) Session(_ context.Context, id identity.UUID) (*identity.Session, error) {
	row, found, err := find[sessionRow](a.tx, "session_id", string(id))
	if err != nil || !found {
		return nil, err
	}
	return row.session()
}

// session gives the row the domain's form.
func (r *sessionRow) session() (*identity.Session, error) {
	principal, err := identity.ParsePrincipal([]byte(r.Principal))
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", r.SessionID, err)
	}
	return &identity.Session{
		ID: identity.UUID(r.SessionID), ClientAppID: r.ClientAppID, Principal: principal, OnBehalfOf: r.OnBehalfOf,
		AllowedRoutes: r.AllowedRoutes, RefreshExpiresAt: r.RefreshExpiresAt, RevokedAt: r.RevokedAt,
	}, nil
}

// RevokeSession implements [app.AuthorizationTx]. The trigger on the session's row takes
// the client's lock too, but with the row already locked, and whoever changes the registry
// takes them the other way round. A revocation is final, so that who repeats it, as the
// bearer of a used token may, makes no append wait.
func (a *authTx) RevokeSession(_ context.Context, id identity.UUID, by app.Actor, now time.Time) error {
	stored, found, err := find[sessionRow](a.tx, "session_id", string(id))
	if err != nil || !found || stored.RevokedAt != nil {
		return err
	}
	if err := a.tx.Exec(lockKey, "client", stored.ClientAppID).Error; err != nil {
		return err
	}
	wanted := stored
	wanted.RevokedAt, wanted.UpdatedAt = &now, now
	res := a.tx.Where("revoked_at is null").Select("revoked_at", "updated_at").Updates(&wanted)
	if res.Error != nil || res.RowsAffected == 0 {
		return res.Error
	}
	return a.record(sessionEntry(stored, true, wanted), registryv1.ActionRevoked, by, now)
}
