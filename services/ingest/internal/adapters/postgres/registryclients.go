package postgres

import (
	"slices"

	"gorm.io/gorm"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

func (a *application) clients(r app.Registry) error {
	for _, c := range r.Clients {
		stored, found, err := find[clientRow](a.tx, "app_id", c.AppID)
		if err != nil {
			return err
		}
		tokens, err := clientTokens(a.tx, c.AppID)
		if err != nil {
			return err
		}
		wanted := clientRow{
			AppID: c.AppID, Name: c.Name, AgentAuthorizeURL: notEmpty(c.AuthorizeURL),
			AllowedRoutes: c.AllowedRoutes, Enabled: c.Enabled, CreatedAt: a.Now,
		}
		e := clientEntry(stored, found, wanted)
		if err := a.putClient(e, wanted, a.onlyToken(e, tokens, c.Token, app.ClientTokenPrefix)); err != nil {
			return err
		}
	}
	return nil
}

func clientEntry(stored clientRow, found bool, wanted clientRow) *entry {
	e := &entry{kind: registryv1.KindClient, name: wanted.AppID, found: found}
	shows(e, "name", stored.Name, wanted.Name, stored.Name == wanted.Name)
	e.differs("agent_authorize_url", same(stored.AgentAuthorizeURL, wanted.AgentAuthorizeURL))
	shows(e, "allowed_routes", stored.AllowedRoutes, wanted.AllowedRoutes, slices.Equal(stored.AllowedRoutes, wanted.AllowedRoutes))
	shows(e, "enabled", stored.Enabled, wanted.Enabled, stored.Enabled == wanted.Enabled)
	return e
}

// putClient stores a client; a token that is not nil ends all others.
func (a *application) putClient(e *entry, wanted clientRow, token []byte) error {
	wanted.UpdatedAt = a.Now
	if err := write(a, e, &wanted); err != nil {
		return err
	}
	if token != nil {
		if err := a.tx.Where("app_id = ?", e.name).Delete(&clientTokenRow{}).Error; err != nil {
			return err
		}
		row := clientTokenRow{TokenHash: token, AppID: e.name, CreatedAt: a.Now}
		if err := a.tx.Create(&row).Error; err != nil {
			return inUse(e.kind, e.name, err)
		}
	}
	return a.done(e)
}

func clientTokens(tx *gorm.DB, appID string) (hashes [][]byte, err error) {
	err = tx.Model(&clientTokenRow{}).Where("app_id = ?", appID).Pluck("token_hash", &hashes).Error
	return hashes, err
}

// DisableClient implements [app.RegistryTx].
func (a *application) DisableClient(appID string) error {
	read := func() (clientRow, error) { return known[clientRow](a.tx, registryv1.KindClient, "app_id", appID) }
	stored, err := read()
	if err == nil && stored.Enabled {
		if err = a.lockAll([]string{appID}, nil); err == nil {
			stored, err = read()
		}
	}
	if err != nil {
		return err
	}
	wanted := stored
	wanted.Enabled = false
	return a.putClient(clientEntry(stored, true, wanted), wanted, nil)
}

// RotateClientToken implements [app.RegistryTx].
func (a *application) RotateClientToken(appID string) error {
	stored, err := known[clientRow](a.tx, registryv1.KindClient, "app_id", appID)
	if err != nil {
		return err
	}
	e := clientEntry(stored, true, stored)
	return a.putClient(e, stored, a.onlyToken(e, nil, "", app.ClientTokenPrefix))
}

// Client implements [app.RegistryTx].
func (a *application) Client(appID string) (app.StoredClient, error) {
	row, err := known[clientRow](a.tx, registryv1.KindClient, "app_id", appID)
	return row.stored(), err
}

func (r clientRow) stored() app.StoredClient {
	return app.StoredClient{
		Client:       identity.Client{AppID: r.AppID, Name: r.Name, AllowedRoutes: r.AllowedRoutes, Enabled: r.Enabled},
		AuthorizeURL: textOf(r.AgentAuthorizeURL), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// textOf is the empty text for what is not there.
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
