package postgres

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/services/ingest/internal/app"
)

const (
	lockShared = `select pg_advisory_xact_lock_shared(bz_lock_key(?, ?))`

	// hasAgentAuth asks the catalog for what migration 060 adds.
	hasAgentAuth = `
		select to_regclass('bz_agent_authorizations') is not null and to_regclass('bz_agent_refresh_tokens') is not null
			and to_regclass('bz_registry_changes') is not null`
)

// AgentAuth implements [app.AuthorizationStore] with gorm.
type AgentAuth struct {
	db    *gorm.DB
	waker Waker
}

// NewAgentAuth returns the store in the database.
func NewAgentAuth(db *gorm.DB, waker Waker) *AgentAuth { return &AgentAuth{db: db, waker: waker} }

// Do implements [app.AuthorizationStore].
func (s *AgentAuth) Do(ctx context.Context, fn func(ctx context.Context, tx app.AuthorizationTx) error) error {
	var a *authTx
	err := database.RetrySerialization(ctx, func() error {
		return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := agentAuthIsThere(tx); err != nil {
				return err
			}
			a = &authTx{tx: tx, trace: notEmpty(telemetry.InjectTrace(ctx))}
			return fn(ctx, a)
		})
	})
	if err != nil {
		return err
	}
	for _, p := range a.partitions {
		s.waker.Wake(p)
	}
	return nil
}

// agentAuthIsThere fails with [app.ErrAgentAuthUnavailable] before migration 060.
func agentAuthIsThere(db *gorm.DB) error {
	var there bool
	if err := db.Raw(hasAgentAuth).Row().Scan(&there); err != nil {
		return err
	}
	if !there {
		return app.ErrAgentAuthUnavailable
	}
	return nil
}

// authTx implements [app.AuthorizationTx]. Locks are statements of their own and reads
// come after them: a statement that waited still sees the tables as they were before.
type authTx struct {
	tx         *gorm.DB
	trace      *string
	partitions []int // outbox partitions written to
}

// Client implements [app.AuthorizationTx].
func (a *authTx) Client(_ context.Context, appID string) (*app.AgentClient, error) {
	if err := a.tx.Exec(lockShared, "client", appID).Error; err != nil {
		return nil, err
	}
	row, found, err := find[clientRow](a.tx, "app_id", appID)
	if err != nil || !found {
		return nil, err
	}
	client := &app.AgentClient{Client: identity.Client{
		AppID: row.AppID, Name: row.Name, AllowedRoutes: row.AllowedRoutes, Enabled: row.Enabled,
	}}
	if row.AgentAuthorizeURL != nil {
		client.AuthorizeURL = *row.AgentAuthorizeURL
	}
	return client, nil
}

// errNotOne is a write that did not find the one row that its transaction holds.
var errNotOne = errors.New("agent auth: a locked row is not there any more")

// one reports what became of a write to exactly one row.
func one(res *gorm.DB) error {
	if res.Error == nil && res.RowsAffected != 1 {
		return errNotOne
	}
	return res.Error
}

// forUpdate locks the rows that are read until the transaction ends.
func forUpdate(tx *gorm.DB) *gorm.DB {
	return tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
}
