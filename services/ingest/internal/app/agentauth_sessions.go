package app

import (
	"context"
	"crypto/sha256"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// ErrNoSession is a session that does not exist for this client.
var ErrNoSession = refusal.New(refusal.SessionNotFound, "there is no such session of this client")

// Session returns the session of an access token to its agent. Errors are ErrUnauthorized,
// a refusal (AgentAuthUnavailable) or a failure of the store.
func (s *AgentAuth) Session(ctx context.Context, accessToken string) (AgentSession, error) {
	if !IsToken(accessToken, AccessTokenPrefix) {
		return AgentSession{}, ErrUnauthorized
	}
	session, ok, err := s.reader.Session(ctx, sha256.Sum256([]byte(accessToken)), s.clock.Now())
	if err == nil && !ok {
		err = ErrUnauthorized
	}
	return session, err
}

// RevokeOwn ends the bearer's own session for good. All revocations are idempotent, wait
// for running appends and refuse later ones, and are recorded with who made them. Errors
// are a refusal (AgentAuthUnavailable) or a failure of the store.
func (s *AgentAuth) RevokeOwn(ctx context.Context, bearer identity.Bearer) error {
	return s.store.Do(ctx, func(ctx context.Context, tx AuthorizationTx) error {
		return tx.RevokeSession(ctx, bearer.SessionID, bySession(bearer.SessionID), s.clock.Now())
	})
}

// RevokeByToken ends the session of a refresh token, used or not, of the client. Errors
// are refusals (InvalidGrant, AgentAuthUnavailable) or failures of the store.
func (s *AgentAuth) RevokeByToken(ctx context.Context, clientAppID, refreshToken string) error {
	return s.store.Do(ctx, func(ctx context.Context, tx AuthorizationTx) error {
		shown, err := known(ctx, tx, refreshToken)
		if err != nil {
			return err
		}
		if shown.ClientAppID != clientAppID {
			return authorization.ErrGrant
		}
		return tx.RevokeSession(ctx, shown.SessionID, bySession(shown.SessionID), s.clock.Now())
	})
}

func bySession(id identity.UUID) Actor {
	return Actor{Kind: registryv1.ActorSession, Name: string(id)}
}

// RevokeOf ends a session of the client. Errors are refusals (SessionNotFound, also for
// another client's; AgentAuthUnavailable) or failures of the store.
func (s *AgentAuth) RevokeOf(ctx context.Context, clientAppID string, id identity.UUID) error {
	return s.store.Do(ctx, func(ctx context.Context, tx AuthorizationTx) error {
		session, err := tx.Session(ctx, id)
		if err != nil {
			return err
		}
		if session == nil || session.ClientAppID != clientAppID {
			return ErrNoSession
		}
		return tx.RevokeSession(ctx, id, Actor{Kind: registryv1.ActorClient, Name: clientAppID}, s.clock.Now())
	})
}
