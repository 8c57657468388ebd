package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
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
	Action string   // created, updated, revoked or unchanged
	Fields []string // what an update or a revocation changed
}

// What becomes of an entry.
const (
	Created   = registryv1.ActionCreated
	Updated   = registryv1.ActionUpdated
	Revoked   = registryv1.ActionRevoked
	Unchanged = "unchanged"
)

// Token is a generated secret, to be shown once.
type Token struct {
	Kind  string // client, session or controller
	Name  string
	Value string
}

// RegistryResult is what a change of the registry did.
type RegistryResult struct {
	Changes []Change
	Tokens  []Token
}

// Occasion is who changes the registry, and when.
type Occasion struct {
	By Actor
	// Token is the SHA-256 of the token with which a controller asks, nil for an operator.
	// A transaction asks for the controller's permission again, so that what was taken
	// from it refuses every change that commits after.
	Token []byte
	Now   time.Time
	// NewToken draws a secret with the given prefix.
	NewToken func(prefix string) string
}

// RegistryStore changes registries. Safe for concurrent use.
type RegistryStore interface {
	// Change runs fn in one transaction, which no other change of the registry runs
	// beside, and commits when fn returns nil; an error of fn rolls back and is returned.
	// fn runs again, from its beginning, after a deadlock or serialization failure. Every
	// entry that changes is recorded with who changed it (from migration 059 on), and the
	// relay is woken after the commit. Errors beside fn's are ErrUnauthorized and
	// ErrForbidden for a controller that may not, or a failure of the store.
	Change(ctx context.Context, o Occasion, fn func(tx RegistryTx) error) (RegistryResult, error)
}

// RegistryTx is one transaction that changes the registry. What authorizes appends is
// locked in the order in which they lock it: clients, then routes, each by key. Unknown
// entries are refused with RegistryNotFound. Not for concurrent use.
type RegistryTx interface {
	// Apply creates entries or brings them to what r says; what r does not name stays. A
	// revoked session stays revoked, and a stored run never changes. What contradicts the
	// stored is refused with RegistryConflict (see Conflict).
	Apply(r Registry) error
	// DisableClient and DisableRoute wait for running appends and refuse later ones.
	DisableClient(appID string) error
	DisableRoute(routeKey string) error
	// RotateClientToken ends the client's tokens and generates its only one.
	RotateClientToken(appID string) error
	// RevokeSession is final. It waits for running appends and refuses later ones.
	RevokeSession(id identity.UUID) error

	Client(appID string) (StoredClient, error)
	Route(routeKey string) (StoredRoute, error)
	Session(id identity.UUID) (StoredSession, error)
}

// ApplyRegistry stores an operator's registry and returns what it changed, with the
// tokens that it generated: only their hashes are stored. Errors are sentences for the
// operator; nothing is stored then. Applying the same registry again changes nothing.
func ApplyRegistry(ctx context.Context, store RegistryStore, clock Clock, r Registry) (RegistryResult, error) {
	o := Occasion{By: Actor{Kind: registryv1.ActorOperator}, Now: clock.Now(), NewToken: newToken}
	result, err := store.Change(ctx, o, func(tx RegistryTx) error { return tx.Apply(r) })
	if err != nil {
		return RegistryResult{}, fmt.Errorf("apply the registry: %w", err)
	}
	return result, nil
}

// conflictError is an entry that contradicts what is stored.
type conflictError struct {
	text    string
	refused *refusal.Error
}

// Conflict returns an error that says text, which names entries, to an operator. It
// wraps a refusal with the message, which does not, for a caller over HTTP.
func Conflict(text, message string) error {
	return &conflictError{text, refusal.New(refusal.RegistryConflict, message)}
}

func (e *conflictError) Error() string { return e.text }

func (e *conflictError) Unwrap() error { return e.refused }

// ErrForbidden is a controller without the permission that a call needs.
var ErrForbidden = errors.New("the token does not permit this")

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
