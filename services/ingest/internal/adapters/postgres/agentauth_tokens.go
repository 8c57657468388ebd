package postgres

import (
	"context"
	"crypto/sha256"
	"time"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

//nolint:gosec // G101: statements, no credentials
const (
	refreshTokenByHash = `
		select s.client_app_id, t.used_at, t.successor_hash, n.token_hash is not null and n.used_at is null
		from bz_agent_refresh_tokens t
		join bz_agent_sessions s on s.session_id = t.session_id
		left join bz_agent_refresh_tokens n on n.token_hash = t.successor_hash
		where t.token_hash = ?`
	useRefreshToken = `
		update bz_agent_refresh_tokens set used_at = coalesce(used_at, ?), successor_hash = ? where token_hash = ?`
	removeTokens = `
		with gone as (delete from bz_agent_refresh_tokens where token_hash = ? returning access_hash)
		delete from bz_agent_session_tokens t using gone where t.token_hash = gone.access_hash`
	removeOldTokens = `
		with gone as (
			delete from bz_agent_refresh_tokens where token_hash in (
				select t.token_hash
				from bz_agent_refresh_tokens t
				join bz_agent_sessions s on s.session_id = t.session_id
				where t.expires_at < ? and s.refresh_expires_at < ?
				order by t.expires_at limit ?
				for update of t skip locked)
			returning access_hash
		)
		delete from bz_agent_session_tokens t using gone where t.token_hash = gone.access_hash`
)

// RefreshToken implements [app.AuthorizationTx].
func (a *authTx) RefreshToken(_ context.Context, hash [sha256.Size]byte) (*app.StoredRefreshToken, error) {
	var row refreshTokenRow
	res := a.tx.Select("session_id").Where("token_hash = ?", hash[:]).Limit(1).Find(&row)
	if res.Error != nil || res.RowsAffected == 0 {
		return nil, res.Error
	}
	if err := a.tx.Exec(lockKey, "refresh", row.SessionID).Error; err != nil {
		return nil, err
	}
	// It may have been used or replaced while this transaction waited.
	rows, err := a.tx.Raw(refreshTokenByHash, hash[:]).Rows()
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		return nil, rows.Err()
	}
	t := app.StoredRefreshToken{SessionID: identity.UUID(row.SessionID)}
	var successor []byte
	if err := rows.Scan(&t.ClientAppID, &t.UsedAt, &successor, &t.SuccessorUnused); err != nil {
		return nil, err
	}
	if t.UsedAt != nil {
		next, err := hashOf(successor)
		if err != nil {
			return nil, err
		}
		t.Successor = &next
	}
	return &t, rows.Err()
}

// UseRefreshToken implements [app.AuthorizationTx].
func (a *authTx) UseRefreshToken(_ context.Context, hash, successor [sha256.Size]byte, now time.Time) error {
	return one(a.tx.Exec(useRefreshToken, now, successor[:], hash[:]))
}

// InsertTokens implements [app.AuthorizationTx].
func (a *authTx) InsertTokens(_ context.Context, t app.StoredTokens) error {
	if err := a.tx.Create(&sessionTokenRow{
		TokenHash: t.AccessHash[:], SessionID: string(t.SessionID), AccessExpiresAt: t.AccessExpiresAt, CreatedAt: t.CreatedAt,
	}).Error; err != nil {
		return err
	}
	return a.tx.Create(&refreshTokenRow{
		TokenHash: t.RefreshHash[:], SessionID: string(t.SessionID), CreatedAt: t.CreatedAt,
		ExpiresAt: t.RefreshExpiresAt, AccessHash: t.AccessHash[:],
	}).Error
}

// RemoveTokens implements [app.AuthorizationTx].
func (a *authTx) RemoveTokens(_ context.Context, refreshHash [sha256.Size]byte) error {
	return a.tx.Exec(removeTokens, refreshHash[:]).Error
}

// RemoveExpiredAccess implements [app.AuthorizationTx].
func (a *authTx) RemoveExpiredAccess(_ context.Context, session identity.UUID, now time.Time) error {
	return a.tx.Where("session_id = ? and access_expires_at <= ?", string(session), now).Delete(&sessionTokenRow{}).Error
}

// RemoveOldTokens implements [app.AuthorizationTx].
func (a *authTx) RemoveOldTokens(_ context.Context, before time.Time, n int) error {
	return a.tx.Exec(removeOldTokens, before, before, n).Error
}
