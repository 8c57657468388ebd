package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"verbatim.internal/pkg/domain/identity"
)

// ErrUnauthorized is a bearer that is missing, malformed, unknown, expired or
// revoked, or whose client is disabled. It does not tell which.
var ErrUnauthorized = errors.New("the bearer token is not valid")

// Prefixes of tokens.
const (
	AccessTokenPrefix = "bha_" // a session's
	ClientTokenPrefix = "bhk_" // a client's own
	// Those of Agent Auth.
	RefreshTokenPrefix = "bhr_" // renews a session's access
	CodePrefix         = "bhc_" // exchanged once for a session
	// ControllerTokenPrefix begins the token of a program at the control API.
	ControllerTokenPrefix = "bvc_"
)

const tokenSecretLength = 43 // 32 random bytes in base64url

// recalledBearers bounds how many tokens' hashes an authenticator keeps.
const recalledBearers = 8192

// Authenticator finds the session of a bearer. Safe for concurrent use.
type Authenticator struct {
	sessions Sessions
	clock    Clock
	recalled *lru.Cache[[sha256.Size]byte, identity.Bearer]
}

// NewAuthenticator returns an authenticator over stored sessions.
func NewAuthenticator(sessions Sessions, clock Clock) *Authenticator {
	recalled, _ := lru.New[[sha256.Size]byte, identity.Bearer](recalledBearers) // fails for no size only
	return &Authenticator{sessions: sessions, clock: clock, recalled: recalled}
}

// RecalledBearer is whom a token belonged to when it was last authenticated. It proves
// nothing: whoever relies on it has the store look at TokenHash.
type RecalledBearer struct {
	identity.Bearer
	// TokenHash is the SHA-256 of the access token.
	TokenHash [sha256.Size]byte
}

// Recall returns whom an agent access token belonged to, and false when that is not
// remembered.
func (a *Authenticator) Recall(token string) (RecalledBearer, bool) {
	if !IsToken(token, AccessTokenPrefix) {
		return RecalledBearer{}, false
	}
	hash := sha256.Sum256([]byte(token))
	bearer, ok := a.recalled.Get(hash)
	return RecalledBearer{bearer, hash}, ok
}

// Authenticate returns the session of an agent access token
// (archive-protocol: "Authentication"). Only the token's SHA-256 leaves this
// function. Errors are ErrUnauthorized or a failure of the store.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (identity.Bearer, error) {
	if !IsToken(token, AccessTokenPrefix) {
		return identity.Bearer{}, ErrUnauthorized
	}
	hash := sha256.Sum256([]byte(token))
	bearer, ok, err := a.sessions.ByToken(ctx, hash, a.clock.Now())
	switch {
	case err != nil:
	case ok:
		a.recalled.Add(hash, bearer)
	default:
		a.recalled.Remove(hash)
		err = ErrUnauthorized
	}
	return bearer, err
}

// IsToken reports whether s is prefix and 43 base64url characters.
func IsToken(s, prefix string) bool {
	secret, ok := strings.CutPrefix(s, prefix)
	if !ok || len(secret) != tokenSecretLength {
		return false
	}
	for i := range len(secret) {
		c := secret[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
