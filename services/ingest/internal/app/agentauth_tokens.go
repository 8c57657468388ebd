package app

import (
	"context"
	"crypto/sha256"
	"time"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
)

// TokenPair is a session's access token and the refresh token that renews it: the only
// place they are in.
type TokenPair struct {
	AccessToken      string
	RefreshToken     string
	AccessExpiresIn  time.Duration
	RefreshExpiresIn time.Duration
	SessionID        identity.UUID
	ClientAppID      string
}

// newPair draws a pair of tokens for a session at now.
func newPair(session *identity.Session, now time.Time) (TokenPair, StoredTokens) {
	pair := TokenPair{
		AccessToken: newToken(AccessTokenPrefix), RefreshToken: newToken(RefreshTokenPrefix),
		RefreshExpiresIn: session.RefreshExpiresAt.Sub(now), SessionID: session.ID, ClientAppID: session.ClientAppID,
	}
	stored := StoredTokens{
		SessionID: session.ID, AccessHash: sha256.Sum256([]byte(pair.AccessToken)), RefreshHash: sha256.Sum256([]byte(pair.RefreshToken)),
		AccessExpiresAt: authorization.AccessExpiry(now, session.RefreshExpiresAt), RefreshExpiresAt: session.RefreshExpiresAt, CreatedAt: now,
	}
	pair.AccessExpiresIn = stored.AccessExpiresAt.Sub(now)
	return pair, stored
}

// Exchange makes the session that a code stands for and returns its first tokens. A code
// works once: of parallel exchanges one wins; a failed one consumes nothing, and the
// replay of a consumed code touches nothing. An answer that was lost cannot be had again,
// and the agent asks anew. Errors are refusals (InvalidGrant, AgentAuthUnavailable) or
// failures of the store.
func (s *AgentAuth) Exchange(ctx context.Context, clientAppID, code, redirectURI, verifier string) (TokenPair, error) {
	var pair TokenPair
	err := s.store.Do(ctx, func(ctx context.Context, tx AuthorizationTx) error {
		if !IsToken(code, CodePrefix) || !identity.IsResourceKey(clientAppID) {
			return authorization.ErrGrant
		}
		client, err := tx.Client(ctx, clientAppID)
		if err != nil {
			return err
		}
		a, err := tx.AuthorizationByCode(ctx, sha256.Sum256([]byte(code)))
		if err != nil {
			return err
		}
		if client == nil || !client.Enabled || a == nil {
			return authorization.ErrGrant
		}
		now, id := s.clock.Now(), s.ids.NewUUID()
		if err := a.Exchange(clientAppID, redirectURI, verifier, id, now); err != nil {
			return err
		}
		granted := a.Decision.Approval.Grant
		session := AgentSession{DeviceLabel: a.DeviceLabel, CreatedAt: now, Session: identity.Session{
			ID: id, ClientAppID: clientAppID, Principal: granted.Principal, OnBehalfOf: granted.OnBehalfOf,
			AllowedRoutes: granted.AllowedRoutes, RefreshExpiresAt: now.Add(authorization.RefreshLife),
		}}
		if err := tx.InsertSession(ctx, session, Actor{Kind: registryv1.ActorClient, Name: clientAppID}); err != nil {
			return err
		}
		var stored StoredTokens
		pair, stored = newPair(&session.Session, now)
		if err := tx.InsertTokens(ctx, stored); err != nil {
			return err
		}
		if err := tx.UpdateAuthorization(ctx, a); err != nil {
			return err
		}
		return tx.RemoveOldTokens(ctx, now.Add(-keptAfter), removedAtOnce)
	})
	if err != nil {
		return TokenPair{}, err
	}
	return pair, nil
}

// Refresh puts a fresh pair in the place of a refresh token. The session stays the same
// and its refresh life is not extended; the access token from before works until its own
// end. A client that lost the answer repeats the call within [authorization.LostAnswer];
// the pair that it lost stops working then. Any other return of a used token revokes the
// session, which is durable before the refusal is answered. Errors are refusals
// (InvalidGrant, AgentAuthUnavailable) or failures of the store.
func (s *AgentAuth) Refresh(ctx context.Context, clientAppID, token string) (TokenPair, error) {
	var pair TokenPair
	var refused error
	err := s.store.Do(ctx, func(ctx context.Context, tx AuthorizationTx) error {
		refused = nil
		shown, err := known(ctx, tx, token)
		if err != nil {
			return err
		}
		now := s.clock.Now()
		verdict := authorization.Judge(shown.RefreshToken, shown.ClientAppID == clientAppID, now)
		if verdict == authorization.Stolen {
			refused = authorization.ErrGrant
			return tx.RevokeSession(ctx, shown.SessionID, Actor{Kind: registryv1.ActorSystem}, now)
		}
		session, err := refreshable(ctx, tx, shown, clientAppID, now)
		if err != nil {
			return err
		}
		if verdict == authorization.Replace {
			if err := tx.RemoveTokens(ctx, *shown.Successor); err != nil {
				return err
			}
		}
		var stored StoredTokens
		pair, stored = newPair(session, now)
		if err := tx.UseRefreshToken(ctx, sha256.Sum256([]byte(token)), stored.RefreshHash, now); err != nil {
			return err
		}
		if err := tx.InsertTokens(ctx, stored); err != nil {
			return err
		}
		return tx.RemoveExpiredAccess(ctx, session.ID, now)
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return TokenPair{}, err
	}
	return pair, nil
}

// known returns a refresh token that exists.
func known(ctx context.Context, tx AuthorizationTx, token string) (*StoredRefreshToken, error) {
	if !IsToken(token, RefreshTokenPrefix) {
		return nil, authorization.ErrGrant
	}
	shown, err := tx.RefreshToken(ctx, sha256.Sum256([]byte(token)))
	if err == nil && shown == nil {
		err = authorization.ErrGrant
	}
	return shown, err
}

// refreshable returns the token's session when its client may refresh it.
func refreshable(ctx context.Context, tx AuthorizationTx, shown *StoredRefreshToken, clientAppID string, now time.Time) (*identity.Session, error) {
	if shown.ClientAppID != clientAppID {
		return nil, authorization.ErrGrant
	}
	client, err := tx.Client(ctx, clientAppID)
	if err != nil {
		return nil, err
	}
	session, err := tx.Session(ctx, shown.SessionID)
	if err != nil {
		return nil, err
	}
	return session, authorization.MayRefresh(session, client.identity(), now)
}
