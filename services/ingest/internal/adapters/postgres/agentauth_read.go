package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

//nolint:gosec // G101: statements, no credentials
const (
	clientByToken = `
		select c.app_id from bz_client_tokens t join bz_clients c on c.app_id = t.app_id
		where t.token_hash = $1 and c.enabled`
	agentSession = `
		select s.*, t.access_expires_at
		from bz_agent_session_tokens t
		join bz_agent_sessions s on s.session_id = t.session_id
		join bz_clients c on c.app_id = s.client_app_id
		where t.token_hash = ? and t.access_expires_at > ? and s.revoked_at is null and c.enabled`
)

// ClientTokens implements [app.ClientTokens].
type ClientTokens struct{ pool *pgxpool.Pool }

// NewClientTokens returns the client tokens stored in the pool's database.
func NewClientTokens(pool *pgxpool.Pool) *ClientTokens { return &ClientTokens{pool: pool} }

// ByClientToken implements [app.ClientTokens].
func (c *ClientTokens) ByClientToken(ctx context.Context, hash [sha256.Size]byte) (appID string, ok bool, err error) {
	err = c.pool.QueryRow(ctx, clientByToken, hash[:]).Scan(&appID)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}
	return appID, err == nil, err
}

// AgentAuthReader implements [app.AuthorizationReader] with gorm.
type AgentAuthReader struct{ db *gorm.DB }

// NewAgentAuthReader returns the reader of the database.
func NewAgentAuthReader(db *gorm.DB) *AgentAuthReader { return &AgentAuthReader{db: db} }

// Authorization implements [app.AuthorizationReader].
func (r *AgentAuthReader) Authorization(ctx context.Context, id identity.UUID) (*authorization.Authorization, string, error) {
	db := r.db.WithContext(ctx)
	if err := agentAuthIsThere(db); err != nil {
		return nil, "", err
	}
	a, err := findAuthorization(db.Where("authorization_id = ?", string(id)))
	if err != nil || a == nil {
		return nil, "", err
	}
	client, _, err := find[clientRow](db, "app_id", a.ClientAppID)
	return a, client.Name, err
}

// Session implements [app.AuthorizationReader].
func (r *AgentAuthReader) Session(ctx context.Context, accessHash [sha256.Size]byte, now time.Time) (app.AgentSession, bool, error) {
	db := r.db.WithContext(ctx)
	if err := agentAuthIsThere(db); err != nil {
		return app.AgentSession{}, false, err
	}
	var row struct {
		Session         sessionRow `gorm:"embedded"`
		AccessExpiresAt time.Time
	}
	res := db.Raw(agentSession, accessHash[:], now).Scan(&row)
	if res.Error != nil || res.RowsAffected == 0 {
		return app.AgentSession{}, false, res.Error
	}
	session, err := row.Session.session()
	if err != nil {
		return app.AgentSession{}, false, err
	}
	return app.AgentSession{
		Session: *session, DeviceLabel: row.Session.DeviceLabel, CreatedAt: row.Session.CreatedAt, AccessExpiresAt: row.AccessExpiresAt,
	}, true, nil
}
