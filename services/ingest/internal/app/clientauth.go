package app

import (
	"context"
	"crypto/sha256"
)

// ClientAuthenticator finds the client of a client token. Safe for concurrent use.
type ClientAuthenticator struct{ tokens ClientTokens }

// NewClientAuthenticator returns an authenticator over stored client tokens.
func NewClientAuthenticator(tokens ClientTokens) *ClientAuthenticator {
	return &ClientAuthenticator{tokens: tokens}
}

// Authenticate returns the app id of the enabled client that a client token belongs to.
// Only the token's SHA-256 leaves this function. Errors are ErrUnauthorized or a failure
// of the store.
func (a *ClientAuthenticator) Authenticate(ctx context.Context, token string) (appID string, err error) {
	if !IsToken(token, ClientTokenPrefix) {
		return "", ErrUnauthorized
	}
	appID, ok, err := a.tokens.ByClientToken(ctx, sha256.Sum256([]byte(token)))
	if err == nil && !ok {
		err = ErrUnauthorized
	}
	return appID, err
}
