package identity

// Binding is the (client, route) that a member is held to.
type Binding struct {
	// ClientAppID is a registered client's resource key.
	ClientAppID string
	// RouteKey is a route's resource key, never "auto".
	RouteKey string
}

const (
	keyMin, keyMax = 2, 64
	anyValue       = "*"
	// reservedRoute is the word by which hosts ask a planner to choose; it names no route.
	reservedRoute = "auto"
)

// IsResourceKey reports whether s names a client or a route:
// ^[a-z0-9][a-z0-9_-]{1,63}$.
func IsResourceKey(s string) bool {
	if len(s) < keyMin || len(s) > keyMax || s[0] == '_' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// IsRouteKey reports whether s is a resource key that may name a route.
func IsRouteKey(s string) bool { return s != reservedRoute && IsResourceKey(s) }
