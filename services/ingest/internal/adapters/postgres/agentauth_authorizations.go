package postgres

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"gorm.io/gorm"

	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
)

const removeAuthorizations = `
	delete from bz_agent_authorizations where authorization_id in (
		select authorization_id from bz_agent_authorizations
		where client_app_id = ? and expires_at < ?
		order by expires_at limit ?
		for update skip locked)`

// LastAsked implements [app.AuthorizationTx].
func (a *authTx) LastAsked(_ context.Context, appID string, from netip.Prefix, n int) ([]time.Time, error) {
	if err := a.tx.Exec(lockKey, "asked", appID+" "+from.String()).Error; err != nil {
		return nil, err
	}
	var asked []time.Time
	err := a.tx.Model(&authorizationRow{}).Where("client_app_id = ? and address = ?", appID, from.String()).
		Order("created_at desc").Limit(n).Pluck("created_at", &asked).Error
	return asked, err
}

// InsertAuthorization implements [app.AuthorizationTx].
func (a *authTx) InsertAuthorization(_ context.Context, asked *authorization.Authorization, from netip.Prefix) error {
	row, err := newAuthorizationRow(asked, from)
	if err != nil {
		return err
	}
	return a.tx.Create(&row).Error
}

// RemoveAuthorizations implements [app.AuthorizationTx].
func (a *authTx) RemoveAuthorizations(_ context.Context, appID string, before time.Time, n int) error {
	return a.tx.Exec(removeAuthorizations, appID, before, n).Error
}

// Authorization implements [app.AuthorizationTx].
func (a *authTx) Authorization(_ context.Context, id identity.UUID) (*authorization.Authorization, error) {
	return findAuthorization(forUpdate(a.tx).Where("authorization_id = ?", string(id)))
}

// AuthorizationByCode implements [app.AuthorizationTx].
func (a *authTx) AuthorizationByCode(_ context.Context, codeHash [sha256.Size]byte) (*authorization.Authorization, error) {
	return findAuthorization(forUpdate(a.tx).Where("code_hash = ?", codeHash[:]))
}

func findAuthorization(query *gorm.DB) (*authorization.Authorization, error) {
	var row authorizationRow
	res := query.Limit(1).Find(&row)
	if res.Error != nil || res.RowsAffected == 0 {
		return nil, res.Error
	}
	return row.authorization()
}

// UpdateAuthorization implements [app.AuthorizationTx].
func (a *authTx) UpdateAuthorization(_ context.Context, decided *authorization.Authorization) error {
	row, err := newAuthorizationRow(decided, netip.Prefix{})
	if err != nil {
		return err
	}
	return one(a.tx.Select(decisionColumns).Updates(&row))
}
