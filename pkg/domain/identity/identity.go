// Package identity holds who may write to an archive: clients, routes, sessions
// and principals, and the member check that every mutation makes.
//
// It is pure: callers bring the facts, read under locks, and the time.
// It implements the contract's section "Authorization and storage boundary".
package identity

import (
	"crypto/sha256"
	"slices"
	"time"

	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/refusal"
)

// Client is a registered business application.
type Client struct {
	AppID         string
	Name          string
	AllowedRoutes []string // "*" allows all
	Enabled       bool
}

// Allows reports whether the client's allowlist admits the route.
func (c Client) Allows(routeKey string) bool { return allows(c.AllowedRoutes, routeKey) }

// Route is a named business entry.
type Route struct {
	RouteKey    string
	Enabled     bool
	AgentAccess bool
	Audience    Audience
}

// Session is an Agent Session: one authorized agent of one client.
type Session struct {
	ID               UUID
	ClientAppID      string
	Principal        Principal
	OnBehalfOf       string
	AllowedRoutes    []string // "*" allows all
	RefreshExpiresAt time.Time
	RevokedAt        *time.Time // nil: not revoked
}

// Bearer is who an authenticated request comes from.
type Bearer struct {
	SessionID   UUID
	ClientAppID string
}

// Snapshot is the SHA-256 over a session's identity, frozen when a member confirms.
type Snapshot [sha256.Size]byte

// Snapshot returns the SHA-256 of the RFC 8785 JSON of session_id,
// client_app_id, principal and on_behalf_of. It changes exactly when one of
// them does. It fails only for values that are not UTF-8.
func (s Session) Snapshot() (Snapshot, error) {
	sum, err := canonical.Sum(struct {
		SessionID   UUID      `json:"session_id"`
		ClientAppID string    `json:"client_app_id"`
		Principal   Principal `json:"principal"`
		OnBehalfOf  string    `json:"on_behalf_of"`
	}{s.ID, s.ClientAppID, s.Principal, s.OnBehalfOf})
	return Snapshot(sum), err
}

// Facts are what a member check needs, as stored now. A nil fact does not exist.
type Facts struct {
	Session *Session
	Client  *Client
	Route   *Route
}

// errAuthorization is deliberately one answer: it does not tell which part failed.
var errAuthorization = refusal.New(refusal.AuthorizationInvalid,
	"the authorization of a member, its client or its route is not valid")

// Check makes the member check for one member held to binding b.
//
// frozen is the member's identity snapshot, nil for a member that has not
// confirmed. now is the server's clock. The error is a refusal with code
// AuthorizationInvalid, or nil. The facts must stay locked until the caller commits.
func Check(b Binding, f Facts, frozen *Snapshot, now time.Time) error {
	s, c, r := f.Session, f.Client, f.Route
	if s == nil || c == nil || r == nil {
		return errAuthorization
	}
	ok := s.ClientAppID == b.ClientAppID && c.AppID == b.ClientAppID && r.RouteKey == b.RouteKey &&
		s.RevokedAt == nil && s.RefreshExpiresAt.After(now) &&
		c.Enabled && r.Enabled && r.AgentAccess &&
		allows(c.AllowedRoutes, b.RouteKey) && allows(s.AllowedRoutes, b.RouteKey) &&
		r.Audience.Admits(b.ClientAppID, s.Principal)
	if !ok {
		return errAuthorization
	}
	if frozen != nil {
		snapshot, err := s.Snapshot()
		if err != nil {
			return err
		}
		if snapshot != *frozen {
			return errAuthorization
		}
	}
	return nil
}

func allows(routes []string, key string) bool {
	return slices.Contains(routes, anyValue) || slices.Contains(routes, key)
}
