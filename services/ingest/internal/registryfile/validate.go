package registryfile

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

const (
	maxName         = 191    // characters of names, labels and on_behalf_of
	maxInstructions = 64_000 // UTF-16 code units
	maxPermissions  = 64
	maxRoutes       = 1_000 // of one allowlist; "*" is for more
)

var permissionPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}:[a-z][a-z0-9_-]{0,63}$`)

// problemError is one thing that is wrong: entry may quote what was given, text and place never do.
type problemError struct{ entry, place, text string }

func (e *problemError) Error() string { return e.entry + ": " + e.text }

// validator collects one sentence for each thing that is wrong.
type validator struct {
	problems []error
	seen     map[string]bool
	place    string // where a caller finds the present entry, for those who have many without a name
}

func (v *validator) check(ok bool, entry, problem string) {
	if !ok {
		v.problems = append(v.problems, &problemError{entry, v.place, problem})
	}
}

func (v *validator) once(entry string) {
	if v.seen == nil {
		v.seen = make(map[string]bool)
	}
	v.check(!v.seen[entry], entry, "is there twice")
	v.seen[entry] = true
}

func (v *validator) routes(entry string, routes []string) {
	v.check(len(routes) <= maxRoutes, entry, "allowed_routes has at most 1,000 entries")
	ok := func(r string) bool { return r == "*" || identity.IsRouteKey(r) }
	v.check(all(routes, ok), entry, "allowed_routes takes route keys or \"*\"")
}

func all(values []string, ok func(string) bool) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return !ok(v) })
}

func (v *validator) token(entry, token, prefix string) {
	v.check(token == "" || app.IsToken(token, prefix), entry, "a token is "+prefix+" and 43 base64url characters")
}

func isName(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxName && !strings.Contains(s, "\x00")
}

func (v *validator) client(c client) {
	entry := "client " + c.AppID
	v.once(entry)
	v.check(identity.IsResourceKey(c.AppID), entry, "app_id is not a resource key")
	v.check(isName(c.Name), entry, "name has 1 to 191 characters")
	if c.AuthorizeURL != "" {
		u, err := url.Parse(c.AuthorizeURL)
		ok := err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
		v.check(ok, entry, "agent_authorize_url is no http or https URL")
	}
	v.routes(entry, c.AllowedRoutes)
	v.token(entry, c.Token, app.ClientTokenPrefix)
}

func (v *validator) route(r route) {
	entry := "route " + r.RouteKey
	v.once(entry)
	v.check(identity.IsRouteKey(r.RouteKey), entry, "route_key is not a resource key, or is \"auto\"")
	v.check(isName(r.Name), entry, "name has 1 to 191 characters")
	v.check(r.Instructions == "" || archive.IsText(r.Instructions, maxInstructions), entry,
		"instructions is no visible text of at most 64,000 characters (UTF-16 code units)")
}

func (v *validator) session(s session) identity.UUID {
	id, ok := identity.ParseUUID(s.SessionID)
	entry := "session " + string(id)
	v.once(entry)
	v.check(ok, entry, "session_id is not a UUID")
	v.check(identity.IsResourceKey(s.ClientAppID), entry, "client_app_id is not a resource key")
	v.check(isName(s.DeviceLabel), entry, "device_label has 1 to 191 characters")
	v.check(s.Principal.Validate() == nil, entry, identity.ErrPrincipal.Error())
	v.check(isName(s.OnBehalfOf), entry, "on_behalf_of has 1 to 191 characters")
	v.routes(entry, s.AllowedRoutes)
	v.token(entry, s.AccessToken, app.AccessTokenPrefix)
	v.check(!s.AccessExpiresAt.IsZero(), entry, "access_expires_at is missing")
	v.check(!s.RefreshExpiresAt.IsZero(), entry, "refresh_expires_at is missing")
	return id
}

func (v *validator) run(r run) (id, sessionID identity.UUID) {
	id, ok := identity.ParseUUID(r.RunID)
	entry := "run " + string(id)
	v.once(entry)
	v.check(ok, entry, "run_id is not a UUID")
	sessionID, ok = identity.ParseUUID(r.SessionID)
	v.check(ok, entry, "session_id is not a UUID")
	v.check(identity.IsResourceKey(r.ClientAppID), entry, "client_app_id is not a resource key")
	v.check(identity.IsRouteKey(r.RouteKey), entry, "route_key is not a resource key, or is \"auto\"")
	v.check(r.ThreadID >= 1 && r.ThreadID <= archive.MaxSafeInteger, entry, "thread_id is a number from 1 to 2^53-1")
	v.check(archive.IsIdentifier(r.ClientConversationID), entry, "client_conversation_id is not a valid identifier")
	v.check(archive.IsIdentifier(r.ClientTurnID), entry, "client_turn_id is not a valid identifier")
	return id, sessionID
}

func (v *validator) controller(c controller) {
	entry := "controller " + c.Name
	v.once(entry)
	v.check(identity.IsResourceKey(c.Name), entry, "name is not a resource key")
	v.check(len(c.Permissions) <= maxPermissions, entry, "permissions has at most 64 entries")
	v.check(all(c.Permissions, permissionPattern.MatchString), entry, "permissions takes words like registry:write")
	v.token(entry, c.Token, app.ControllerTokenPrefix)
}
