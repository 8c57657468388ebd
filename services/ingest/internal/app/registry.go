package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"verbatim.internal/pkg/domain/identity"
)

// Actor is who changes the registry: a kind and a name of registryv1.
type Actor struct{ Kind, Name string }

// Registry is a set of clients, routes, sessions, runs and controllers to be stored.
type Registry struct {
	Clients  []RegistryClient
	Routes   []RegistryRoute
	Sessions []RegistrySession
	Runs     []identity.Run

	Controllers []RegistryController
}

// RegistryClient is a client with its optional token.
type RegistryClient struct {
	identity.Client
	AuthorizeURL string
	Token        string // "": keep the stored one, or generate the first
}

// RegistryRoute is a route with its display name.
type RegistryRoute struct {
	identity.Route
	Name         string
	Instructions string // what its agents are told to do; "" for none
}

// RegistrySession is a session with its optional access token.
type RegistrySession struct {
	identity.Session
	DeviceLabel     string
	AccessToken     string // "": keep the stored one, or generate the first
	AccessExpiresAt time.Time
}

// RegistryController is a program that may change the registry over HTTP, with its
// optional token.
type RegistryController struct {
	Name        string
	Permissions []string
	Token       string // "": keep the stored one, or generate the first
}

// Change tells what became of one entry.
type Change struct {
	Kind   string // client, route, session, run or controller
	Name   string
	Action string   // created, updated or unchanged
	Fields []string // what an update changed
}

// What becomes of an entry.
const (
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"
)

// Token is a generated secret, to be shown once.
type Token struct {
	Kind  string // client, session or controller
	Name  string
	Value string
}

// RegistryResult is what an application of a registry did.
type RegistryResult struct {
	Changes []Change
	Tokens  []Token
}

// RegistryStore stores registries.
type RegistryStore interface {
	// Apply stores r in one transaction: all of it or nothing. Entries are
	// created or brought to what r says; what r does not name stays. A revoked
	// session stays revoked, and a stored run never changes (an error names it).
	// newToken draws a secret with the given prefix.
	Apply(ctx context.Context, r Registry, now time.Time, newToken func(prefix string) string) (RegistryResult, error)
}

// ApplyRegistry stores a registry and returns what it changed, with the tokens
// that it generated: only their hashes are stored. Errors are sentences for the
// operator; nothing is stored then. Applying the same registry again changes nothing.
func ApplyRegistry(ctx context.Context, store RegistryStore, clock Clock, r Registry) (RegistryResult, error) {
	result, err := store.Apply(ctx, r, clock.Now(), newToken)
	if err != nil {
		return RegistryResult{}, fmt.Errorf("apply the registry: %w", err)
	}
	return result, nil
}

// newToken returns prefix and 32 random bytes in base64url.
func newToken(prefix string) string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashToken returns what is stored of a token.
func HashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
