package authorization

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

const (
	// CodeLife is how long an approved authorization's code may be exchanged.
	CodeLife = 2 * time.Minute

	minVerifier, maxVerifier = 43, 128
	maxOnBehalfOf            = 191
)

var (
	// ErrNotFound is an authorization that does not exist for this client.
	ErrNotFound = refusal.New(refusal.AuthorizationNotFound, "there is no such authorization of this client")
	// ErrGrant is deliberately one answer for all that is wrong with a code or a refresh token.
	ErrGrant = refusal.New(refusal.InvalidGrant, "the code or the refresh token is not valid for this client")

	errPrincipal  = refusal.New(refusal.InvalidRequest, "principal must have an id; its values have 1 to 191 characters without control characters, and it has at most 100 roles")
	errOnBehalfOf = refusal.New(refusal.InvalidRequest, "on_behalf_of must have 1 to 191 characters without control characters")
	errDecided    = refusal.New(refusal.AuthorizationDecided, "the authorization was decided already")
	errExpired    = refusal.New(refusal.AuthorizationExpired, "nobody decided the authorization in time; ask again")
	errNotAllowed = refusal.New(refusal.RouteNotAllowed, "an allowed route was not requested, or the client may not use it")
)

// Status is what an authorization has come to.
type Status string

// What an authorization comes to; see the package's state model.
const (
	Pending  Status = "pending"
	Approved Status = "approved"
	Denied   Status = "denied"
	Consumed Status = "consumed"
	Expired  Status = "expired"
)

// Authorization is a request and what became of it. The zero value is no authorization:
// [Request.Open] makes one, and storage fills one.
type Authorization struct {
	ID identity.UUID
	Request
	CreatedAt time.Time
	ExpiresAt time.Time // of the time to decide
	Decision  *Decision // nil: nobody decided
}

// Decision is what the client's user said.
type Decision struct {
	At       time.Time
	Approval *Approval // nil: denied
}

// Approval is what the client's user granted, and the code that gives it to the agent.
type Approval struct {
	Grant
	CodeHash      [sha256.Size]byte
	CodeExpiresAt time.Time
	Consumption   *Consumption // nil: the code was not exchanged
}

// Consumption is the exchange of an approval's code.
type Consumption struct {
	At        time.Time
	SessionID identity.UUID
}

// Grant is whom the agent's session acts as, and where.
type Grant struct {
	Principal     identity.Principal
	OnBehalfOf    string
	AllowedRoutes []string
}

// NewGrant validates a grant. Errors are refusals with code InvalidRequest.
func NewGrant(p identity.Principal, onBehalfOf string, allowedRoutes []string) (Grant, error) {
	values := slices.Concat([]string{p.ID, p.Tenant, p.Audience, p.Channel}, p.Roles)
	switch {
	case p.Validate() != nil, slices.ContainsFunc(values, hasControl):
		return Grant{}, errPrincipal
	case !utf8.ValidString(onBehalfOf), onBehalfOf == "", utf8.RuneCountInString(onBehalfOf) > maxOnBehalfOf, hasControl(onBehalfOf):
		return Grant{}, errOnBehalfOf
	case !areRoutes(allowedRoutes):
		return Grant{}, errRoutes
	}
	return Grant{Principal: p, OnBehalfOf: onBehalfOf, AllowedRoutes: slices.Clone(allowedRoutes)}, nil
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

// Status returns what the authorization has come to at now.
func (a *Authorization) Status(now time.Time) Status {
	switch {
	case a.Decision == nil && now.Before(a.ExpiresAt):
		return Pending
	case a.Decision == nil:
		return Expired
	case a.Decision.Approval == nil:
		return Denied
	case a.Decision.Approval.Consumption != nil:
		return Consumed
	case now.Before(a.Decision.Approval.CodeExpiresAt):
		return Approved
	default:
		return Expired
	}
}

// Approve grants g through the client, whose facts are read under their lock. The code
// with the SHA-256 codeHash may be exchanged until now + CodeLife. Errors are refusals:
// AuthorizationDecided, AuthorizationExpired, or RouteNotAllowed when a route was not
// requested or the client may not use it.
func (a *Authorization) Approve(client identity.Client, g Grant, codeHash [sha256.Size]byte, now time.Time) error {
	if err := a.undecided(now); err != nil {
		return err
	}
	beyond := func(key string) bool { return !slices.Contains(a.RequestedRoutes, key) }
	if slices.ContainsFunc(g.AllowedRoutes, beyond) || !allowsAll(client, g.AllowedRoutes) {
		return errNotAllowed
	}
	a.Decision = &Decision{At: now, Approval: &Approval{Grant: g, CodeHash: codeHash, CodeExpiresAt: now.Add(CodeLife)}}
	return nil
}

// Deny refuses the request for good. Errors are refusals: AuthorizationDecided,
// AuthorizationExpired.
func (a *Authorization) Deny(now time.Time) error {
	if err := a.undecided(now); err != nil {
		return err
	}
	a.Decision = &Decision{At: now}
	return nil
}

func (a *Authorization) undecided(now time.Time) error {
	switch {
	case a.Decision != nil:
		return errDecided
	case !now.Before(a.ExpiresAt):
		return errExpired
	}
	return nil
}

// CodeRedirect returns where the person's browser takes the code to.
func (a *Authorization) CodeRedirect(code string) string {
	return a.Redirect.With("code", code, "state", a.State)
}

// DeniedRedirect returns where the person's browser takes the denial to.
func (a *Authorization) DeniedRedirect() string {
	return a.Redirect.With("error", "access_denied", "state", a.State)
}

// Exchange consumes the approval for the session that it is about to become: the client
// is the one that was asked, the redirect is the one of the request, and the verifier is
// the one that the request's challenge was made of. It works once, within CodeLife. The
// error is ErrGrant; then nothing is consumed.
func (a *Authorization) Exchange(clientAppID, redirectURI, verifier string, session identity.UUID, now time.Time) error {
	if a.Status(now) != Approved || a.ClientAppID != clientAppID || string(a.Redirect) != redirectURI || !a.verifies(verifier) {
		return ErrGrant
	}
	a.Decision.Approval.Consumption = &Consumption{At: now, SessionID: session}
	return nil
}

// verifies reports whether the challenge was made of a verifier (RFC 7636, section 4.6).
func (a *Authorization) verifies(verifier string) bool {
	if len(verifier) < minVerifier || len(verifier) > maxVerifier {
		return false
	}
	for i := range len(verifier) {
		if !isUnreserved(verifier[i]) {
			return false
		}
	}
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(challenge), []byte(a.Challenge)) == 1
}
