package postgres

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

func (a *application) sessionRow(s app.RegistrySession) (sessionRow, error) {
	principal, err := s.Principal.Marshal()
	if err != nil {
		return sessionRow{}, fmt.Errorf("session %s: %w", s.ID, err)
	}
	return sessionRow{
		SessionID: string(s.ID), ClientAppID: s.ClientAppID, DeviceLabel: s.DeviceLabel, Principal: string(principal),
		OnBehalfOf: s.OnBehalfOf, AllowedRoutes: s.AllowedRoutes, RefreshExpiresAt: s.RefreshExpiresAt.Truncate(time.Microsecond),
		RevokedAt: s.RevokedAt, CreatedAt: a.Now, UpdatedAt: a.Now,
	}, nil
}

// sessionEntry names what differs. A stored revocation is final, whatever is wanted.
func sessionEntry(stored sessionRow, found bool, wanted sessionRow) *entry {
	e := &entry{kind: registryv1.KindSession, name: wanted.SessionID, found: found}
	e.differs("client_app_id", stored.ClientAppID == wanted.ClientAppID)
	e.differs("device_label", stored.DeviceLabel == wanted.DeviceLabel)
	e.differs("principal", stored.Principal == wanted.Principal)
	e.differs("on_behalf_of", stored.OnBehalfOf == wanted.OnBehalfOf)
	shows(e, "allowed_routes", stored.AllowedRoutes, wanted.AllowedRoutes, slices.Equal(stored.AllowedRoutes, wanted.AllowedRoutes))
	shows(e, "refresh_expires_at", stored.RefreshExpiresAt, wanted.RefreshExpiresAt, stored.RefreshExpiresAt.Equal(wanted.RefreshExpiresAt))
	shows(e, "revoked_at", stored.RevokedAt, wanted.RevokedAt, stored.RevokedAt != nil || wanted.RevokedAt == nil)
	return e
}

func (a *application) sessions(r app.Registry) error {
	for _, s := range r.Sessions {
		wanted, err := a.sessionRow(s)
		if err != nil {
			return err
		}
		stored, found, err := find[sessionRow](a.tx, "session_id", string(s.ID))
		if err != nil {
			return err
		}
		if _, known, err := find[clientRow](a.tx, "app_id", s.ClientAppID); err != nil {
			return err
		} else if !known {
			return app.Conflict(fmt.Sprintf("session %s names client %s, which does not exist", s.ID, s.ClientAppID),
				"the session names a client that does not exist")
		}
		if err := a.putSession(s, sessionEntry(stored, found, wanted), wanted); err != nil {
			return err
		}
	}
	return nil
}

// putSession stores a session with its access token.
func (a *application) putSession(s app.RegistrySession, e *entry, wanted sessionRow) error {
	token, err := a.newAccess(s, e)
	if err != nil {
		return err
	}
	if err := write(a, e, &wanted); err != nil {
		return err
	}
	if token != nil {
		if err := a.tx.Where("session_id = ?", e.name).Delete(&sessionTokenRow{}).Error; err != nil {
			return err
		}
		if err := a.tx.Create(token).Error; err != nil {
			return inUse(e.kind, e.name, err)
		}
	}
	return a.done(e)
}

// newAccess returns the access that is to be the only one, nil to keep what is stored.
func (a *application) newAccess(s app.RegistrySession, e *entry) (*sessionTokenRow, error) {
	var stored []sessionTokenRow
	if err := a.tx.Where("session_id = ?", e.name).Order("created_at desc").Find(&stored).Error; err != nil {
		return nil, err
	}
	hash := app.HashToken(s.AccessToken)
	switch {
	case s.AccessToken != "":
	case len(stored) > 0:
		hash = stored[0].TokenHash
	default:
		hash = app.HashToken(a.generate(e.kind, e.name, app.AccessTokenPrefix))
	}
	expires := s.AccessExpiresAt.Truncate(time.Microsecond)
	if len(stored) == 1 && bytes.Equal(stored[0].TokenHash, hash) && stored[0].AccessExpiresAt.Equal(expires) {
		return nil, nil
	}
	e.differs("access_token", false)
	return &sessionTokenRow{TokenHash: hash, SessionID: e.name, AccessExpiresAt: expires, CreatedAt: a.Now}, nil
}

// RevokeSession implements [app.RegistryTx].
func (a *application) RevokeSession(id identity.UUID) error {
	read := func() (sessionRow, error) {
		return known[sessionRow](a.tx, registryv1.KindSession, "session_id", string(id))
	}
	stored, err := read()
	if err == nil && stored.RevokedAt == nil {
		if err = a.lockAll([]string{stored.ClientAppID}, nil); err == nil {
			stored, err = read()
		}
	}
	if err != nil {
		return err
	}
	wanted := stored
	wanted.RevokedAt, wanted.UpdatedAt = &a.Now, a.Now
	e := sessionEntry(stored, true, wanted)
	if err := write(a, e, &wanted); err != nil {
		return err
	}
	return a.done(e)
}

// Session implements [app.RegistryTx].
func (a *application) Session(id identity.UUID) (app.StoredSession, error) {
	row, err := known[sessionRow](a.tx, registryv1.KindSession, "session_id", string(id))
	if err != nil {
		return app.StoredSession{}, err
	}
	return row.stored()
}

func (r sessionRow) stored() (app.StoredSession, error) {
	principal, err := identity.ParsePrincipal([]byte(r.Principal))
	if err != nil {
		return app.StoredSession{}, fmt.Errorf("the stored principal of session %s: %w", r.SessionID, err)
	}
	return app.StoredSession{
		Session: identity.Session{
			ID: identity.UUID(r.SessionID), ClientAppID: r.ClientAppID, Principal: principal, OnBehalfOf: r.OnBehalfOf,
			AllowedRoutes: r.AllowedRoutes, RefreshExpiresAt: r.RefreshExpiresAt, RevokedAt: r.RevokedAt,
		},
		DeviceLabel: r.DeviceLabel, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}, nil
}
