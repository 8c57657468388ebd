package authorization

import (
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

const (
	// AskLife is how long an authorization waits for its decision.
	AskLife = 10 * time.Minute
	// MaxRoutes bounds the routes of a request and of an approval.
	MaxRoutes = 64
	// MaxAsked is how often a client may be asked from one address within AskWindow.
	MaxAsked = 10
	// AskWindow is the sliding time in which MaxAsked counts.
	AskWindow = time.Minute

	minState, maxState = 8, 512
	maxDeviceLabel     = 128
	challengeLength    = 43
	challengeMethod    = "S256"
)

// Lengths of state and device_label count UTF-16 code units, as those of all texts do.
var (
	errClient    = refusal.New(refusal.InvalidRequest, "client_app_id must be a client's resource key")
	errRedirect  = refusal.New(refusal.InvalidRequest, "redirect_uri must be http://127.0.0.1:PORT or http://[::1]:PORT, without user info or fragment, and without code, state and error in its query")
	errState     = refusal.New(refusal.InvalidRequest, "state must have 8 to 512 printable characters")
	errRoutes    = refusal.New(refusal.InvalidRequest, "routes must be 1 to 64 distinct route keys, each by its name")
	errDevice    = refusal.New(refusal.InvalidRequest, "device_label must be a visible text of at most 128 characters")
	errChallenge = refusal.New(refusal.InvalidRequest, "code_challenge must be 43 base64url characters with code_challenge_method S256")

	// errInvalidClient is deliberately one answer for all that is wrong with a client.
	errInvalidClient = refusal.New(refusal.InvalidClient,
		"the client does not exist, is disabled, has no page to authorize at, or may not use a requested route")
)

// Fields are a request as it was sent.
type Fields struct {
	ClientAppID         string
	RedirectURI         string
	State               string
	RequestedRoutes     []string
	DeviceLabel         string
	CodeChallenge       string
	CodeChallengeMethod string
}

// Request is what an agent asks a client's user for.
type Request struct {
	ClientAppID     string
	Redirect        Redirect
	State           string
	RequestedRoutes []string
	DeviceLabel     string
	// Challenge is the SHA-256 of the agent's verifier in base64url (RFC 7636, S256).
	Challenge string
}

// NewRequest validates a request. Errors are refusals with code InvalidRequest.
func NewRequest(f Fields) (Request, error) {
	redirect, ok := ParseRedirect(f.RedirectURI)
	switch {
	case !identity.IsResourceKey(f.ClientAppID):
		return Request{}, errClient
	case !ok:
		return Request{}, errRedirect
	case !isState(f.State):
		return Request{}, errState
	case !areRoutes(f.RequestedRoutes):
		return Request{}, errRoutes
	case !archive.IsText(f.DeviceLabel, maxDeviceLabel):
		return Request{}, errDevice
	case !isChallenge(f.CodeChallenge), f.CodeChallengeMethod != challengeMethod:
		return Request{}, errChallenge
	}
	return Request{
		ClientAppID: f.ClientAppID, Redirect: redirect, State: f.State,
		RequestedRoutes: slices.Clone(f.RequestedRoutes), DeviceLabel: f.DeviceLabel, Challenge: f.CodeChallenge,
	}, nil
}

// Admit reports whether the client may be asked for the request: it exists (not nil), is
// enabled, has a page where its user decides, and may use every requested route. The
// error is a refusal with code InvalidClient.
func (r Request) Admit(client *identity.Client, hasPage bool) error {
	if client == nil || client.AppID != r.ClientAppID || !client.Enabled || !hasPage || !allowsAll(*client, r.RequestedRoutes) {
		return errInvalidClient
	}
	return nil
}

// Open returns a new authorization, which waits for its decision until now + AskLife.
func (r Request) Open(id identity.UUID, now time.Time) *Authorization {
	return &Authorization{ID: id, Request: r, CreatedAt: now, ExpiresAt: now.Add(AskLife)}
}

// RetryAfter returns how long a client may not be asked again from an address. asked are
// the last MaxAsked times at which it was, in any order. Zero or below: it may be asked now.
func RetryAfter(asked []time.Time, now time.Time) time.Duration {
	if len(asked) < MaxAsked {
		return 0
	}
	return slices.MinFunc(asked, time.Time.Compare).Add(AskWindow).Sub(now)
}

func allowsAll(client identity.Client, routes []string) bool {
	return !slices.ContainsFunc(routes, func(key string) bool { return !client.Allows(key) })
}

// areRoutes reports whether keys are 1 to 64 distinct route keys. A star names no route here.
func areRoutes(keys []string) bool {
	if len(keys) == 0 || len(keys) > MaxRoutes {
		return false
	}
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if !identity.IsRouteKey(key) || seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

func isState(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	n := 0
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
		n++
		if r > 0xffff {
			n++
		}
	}
	return minState <= n && n <= maxState
}

func isChallenge(s string) bool {
	if len(s) != challengeLength {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c == '.' || c == '~' || !isUnreserved(c) {
			return false
		}
	}
	return true
}
