package httpapi

import "github.com/go-json-experiment/json/jsontext"

// Schema names of the control API's lists.
const (
	SchemaRegistryClients  = "verbatim.registry-clients.v1"
	SchemaRegistryRoutes   = "verbatim.registry-routes.v1"
	SchemaRegistrySessions = "verbatim.registry-sessions.v1"
)

// RegistryClient is a client as controllers see it: everything but its token.
type RegistryClient struct {
	AppID             string   `json:"app_id"`
	Name              string   `json:"name"`
	AgentAuthorizeURL string   `json:"agent_authorize_url,omitzero"`
	AllowedRoutes     []string `json:"allowed_routes"`
	Enabled           bool     `json:"enabled"`
	CreatedAt         string   `json:"created_at"`
	UpdatedAt         string   `json:"updated_at"`
}

// RegistryRoute is a route as controllers see it. Audience is there when it is enabled.
type RegistryRoute struct {
	RouteKey     string         `json:"route_key"`
	Name         string         `json:"name"`
	Enabled      bool           `json:"enabled"`
	AgentAccess  bool           `json:"agent_access"`
	Audience     jsontext.Value `json:"audience,omitzero"`
	Instructions string         `json:"instructions,omitzero"`
	CreatedAt    string         `json:"created_at"`
	UpdatedAt    string         `json:"updated_at"`
}

// RegistrySession is a session as controllers see it: everything but its tokens.
type RegistrySession struct {
	SessionID        string         `json:"session_id"`
	ClientAppID      string         `json:"client_app_id"`
	DeviceLabel      string         `json:"device_label"`
	Principal        jsontext.Value `json:"principal"`
	OnBehalfOf       string         `json:"on_behalf_of"`
	AllowedRoutes    []string       `json:"allowed_routes"`
	RefreshExpiresAt string         `json:"refresh_expires_at"`
	RevokedAt        *string        `json:"revoked_at"` // null while it is not revoked
	CreatedAt        string         `json:"created_at"`
	UpdatedAt        string         `json:"updated_at"`
}

// RegistryClientAnswer answers what is about one client. Token is there once: when it
// was generated.
type RegistryClientAnswer struct {
	Client RegistryClient `json:"client"`
	Token  string         `json:"token,omitzero"`
}

// RegistryTokenAnswer answers the rotation of a token, the only time that it is shown.
type RegistryTokenAnswer struct {
	Token string `json:"token"`
}

// RegistryRouteAnswer answers what is about one route.
type RegistryRouteAnswer struct {
	Route RegistryRoute `json:"route"`
}

// RegistrySessionAnswer answers what is about one session. AccessToken is there once:
// when the session was issued.
type RegistrySessionAnswer struct {
	Session     RegistrySession `json:"session"`
	AccessToken string          `json:"access_token,omitzero"`
}

// RegistryRunsAnswer answers an import of runs.
type RegistryRunsAnswer struct {
	Created   int `json:"created"`
	Unchanged int `json:"unchanged"`
}

// RegistryList is a page of clients, routes or sessions, in the order of their keys.
type RegistryList struct {
	Schema    string           `json:"schema"`
	Items     []jsontext.Value `json:"items"`
	HasMore   bool             `json:"has_more"`
	NextAfter *string          `json:"next_after"` // null on the last page
}
