package app

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// ErrAgentAuthUnavailable is what the ports of Agent Auth fail with before migration 060.
var ErrAgentAuthUnavailable = refusal.New(refusal.AgentAuthUnavailable, "the tables of Agent Auth are not there; apply migration 060")

// ClientTokens finds who a client token belongs to.
type ClientTokens interface {
	// ByClientToken returns the app id of the client whose token has the SHA-256. It
	// reports false when the token is unknown or the client disabled. Safe for concurrent use.
	ByClientToken(ctx context.Context, hash [sha256.Size]byte) (appID string, ok bool, err error)
}

// AgentClient is a client with the page where its users decide.
type AgentClient struct {
	identity.Client
	AuthorizeURL string // "": none
}

// AgentSession is a session as its agent sees it.
type AgentSession struct {
	identity.Session
	DeviceLabel     string
	CreatedAt       time.Time
	AccessExpiresAt time.Time // of the access token that it was found by
}

// AuthorizationReader looks up what Agent Auth shows, without locks. Safe for concurrent use.
type AuthorizationReader interface {
	// Authorization returns an authorization with the client's name; nil when there is none.
	Authorization(ctx context.Context, id identity.UUID) (a *authorization.Authorization, clientName string, err error)
	// Session returns the session whose access token has the SHA-256, on the conditions of
	// [Sessions.ByToken]; it reports false when there is none.
	Session(ctx context.Context, accessHash [sha256.Size]byte, now time.Time) (AgentSession, bool, error)
}

// AuthorizationStore keeps authorizations, and the sessions and tokens that come of them.
type AuthorizationStore interface {
	// Do runs fn in one transaction, as [UnitOfWork.Do] does: it commits when fn returns nil
	// and fn runs again, from its beginning, after a deadlock or serialization failure. The
	// relay is woken for recorded changes after the commit. Safe for concurrent use.
	Do(ctx context.Context, fn func(ctx context.Context, tx AuthorizationTx) error) error
}

// AuthorizationTx is one transaction of Agent Auth. What it locks it holds until its end,
// in this order: a session's refresh tokens, the client, who asks the client, rows. Not
// for concurrent use.
type AuthorizationTx interface {
	// Client returns a client, nil when there is none, under the shared lock that changes
	// of what authorizes wait for.
	Client(ctx context.Context, appID string) (*AgentClient, error)

	// LastAsked returns when the client was last asked for from the network, at most n times,
	// the latest first. Whoever asks the same waits here, so that counting is exact.
	LastAsked(ctx context.Context, appID string, from netip.Prefix, n int) ([]time.Time, error)
	// InsertAuthorization stores a new authorization.
	InsertAuthorization(ctx context.Context, a *authorization.Authorization, from netip.Prefix) error
	// RemoveAuthorizations removes authorizations of the client whose time to decide ended
	// before the instant, at most n.
	RemoveAuthorizations(ctx context.Context, appID string, before time.Time, n int) error
	// Authorization returns an authorization, nil when there is none, with its row locked.
	Authorization(ctx context.Context, id identity.UUID) (*authorization.Authorization, error)
	// AuthorizationByCode is Authorization by the SHA-256 of a code.
	AuthorizationByCode(ctx context.Context, codeHash [sha256.Size]byte) (*authorization.Authorization, error)
	// UpdateAuthorization stores what was decided, and whether it was consumed.
	UpdateAuthorization(ctx context.Context, a *authorization.Authorization) error

	// InsertSession stores a new session and records who made it.
	InsertSession(ctx context.Context, s AgentSession, by Actor) error
	// Session returns a session, nil when there is none. Nothing is locked but what
	// Client locked.
	Session(ctx context.Context, id identity.UUID) (*identity.Session, error)
	// RevokeSession ends a session for good and records who did, unless it is revoked
	// already. It waits for the client's running appends, and later ones wait for it, so a
	// transaction that has asked for the Client must not call it.
	RevokeSession(ctx context.Context, id identity.UUID, by Actor, now time.Time) error

	// RefreshToken returns the refresh token with the SHA-256, nil when there is none.
	// Whoever shows a token of the same session waits here.
	RefreshToken(ctx context.Context, hash [sha256.Size]byte) (*StoredRefreshToken, error)
	// UseRefreshToken notes the token's successor and, the first time, that it was used.
	UseRefreshToken(ctx context.Context, hash, successor [sha256.Size]byte, now time.Time) error
	// InsertTokens stores a refresh token and the access token that goes with it.
	InsertTokens(ctx context.Context, t StoredTokens) error
	// RemoveTokens removes a refresh token and the access token that went with it.
	RemoveTokens(ctx context.Context, refreshHash [sha256.Size]byte) error
	// RemoveExpiredAccess removes the access tokens of a session that do not work any more.
	RemoveExpiredAccess(ctx context.Context, session identity.UUID, now time.Time) error
	// RemoveOldTokens removes tokens of sessions, of any client, that ended before the
	// instant, at most n refresh tokens with their access tokens.
	RemoveOldTokens(ctx context.Context, before time.Time, n int) error
}

// StoredRefreshToken is a refresh token as it is stored.
type StoredRefreshToken struct {
	authorization.RefreshToken
	SessionID   identity.UUID
	ClientAppID string             // the session's
	Successor   *[sha256.Size]byte // nil: not used
}

// StoredTokens are what is stored of a pair of tokens.
type StoredTokens struct {
	SessionID        identity.UUID
	AccessHash       [sha256.Size]byte
	RefreshHash      [sha256.Size]byte
	AccessExpiresAt  time.Time
	RefreshExpiresAt time.Time
	CreatedAt        time.Time
}
