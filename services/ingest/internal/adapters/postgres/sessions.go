package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/domain/identity"
)

//nolint:gosec // G101: a statement, no credential
const sessionByToken = `
	select s.session_id, s.client_app_id
	from bz_agent_session_tokens t
	join bz_agent_sessions s on s.session_id = t.session_id
	join bz_clients c on c.app_id = s.client_app_id
	where t.token_hash = $1 and t.access_expires_at > $2 and s.revoked_at is null and c.enabled`

// Sessions implements [app.Sessions].
type Sessions struct{ pool *pgxpool.Pool }

// NewSessions returns the sessions stored in the pool's database.
func NewSessions(pool *pgxpool.Pool) *Sessions { return &Sessions{pool: pool} }

// ByToken implements [app.Sessions].
func (s *Sessions) ByToken(ctx context.Context, hash [32]byte, now time.Time) (identity.Bearer, bool, error) {
	var b identity.Bearer
	err := s.pool.QueryRow(ctx, sessionByToken, hash[:], now).Scan(&b.SessionID, &b.ClientAppID)
	if errors.Is(err, pgx.ErrNoRows) {
		return identity.Bearer{}, false, nil
	}
	return b, err == nil, err
}
