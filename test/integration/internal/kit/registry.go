package kit

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Registry is what `verbatim apply` takes.
type Registry struct {
	Clients  []Client  `json:"clients,omitempty"`
	Routes   []Route   `json:"routes,omitempty"`
	Sessions []Session `json:"sessions,omitempty"`
	Runs     []Run     `json:"runs,omitempty"`

	Controllers []Controller `json:"controllers,omitempty"`
}

// Client is a registered business application.
type Client struct {
	AppID             string   `json:"app_id"`
	Name              string   `json:"name"`
	AgentAuthorizeURL string   `json:"agent_authorize_url"`
	AllowedRoutes     []string `json:"allowed_routes"`
	Enabled           bool     `json:"enabled"`
	Token             string   `json:"token,omitempty"`
}

// Route is a named business entry.
type Route struct {
	RouteKey    string `json:"route_key"`
	Name        string `json:"name"`
	Enabled     bool   `json:"enabled"`
	AgentAccess bool   `json:"agent_access"`

	Instructions string `json:"instructions,omitempty"`
}

// Controller is a program that may change the registry.
type Controller struct {
	Name        string   `json:"name"`
	Token       string   `json:"token"`
	Permissions []string `json:"permissions"`
}

// Session is an Agent Session with its bearer.
type Session struct {
	SessionID        string    `json:"session_id"`
	ClientAppID      string    `json:"client_app_id"`
	DeviceLabel      string    `json:"device_label"`
	Principal        Principal `json:"principal"`
	OnBehalfOf       string    `json:"on_behalf_of"`
	AllowedRoutes    []string  `json:"allowed_routes"`
	AccessToken      string    `json:"access_token,omitempty"`
	AccessExpiresAt  string    `json:"access_expires_at"`
	RefreshExpiresAt string    `json:"refresh_expires_at"`
	RevokedAt        string    `json:"revoked_at,omitempty"`
}

// Principal is whom a session acts as.
type Principal struct {
	ID     string   `json:"id"`
	Tenant string   `json:"tenant"`
	Roles  []string `json:"roles"`
}

// Run is an authorized execution.
type Run struct {
	RunID                string `json:"run_id"`
	SessionID            string `json:"session_id"`
	ClientAppID          string `json:"client_app_id"`
	RouteKey             string `json:"route_key"`
	ThreadID             int64  `json:"thread_id"`
	ClientConversationID string `json:"client_conversation_id"`
	ClientTurnID         string `json:"client_turn_id"`
}

// Encode returns the registry's file.
func (r Registry) Encode() []byte { return JSON(r) }

// NewClient returns an enabled client that may use all routes, with a token derived from
// its key.
func NewClient(appID string) Client {
	return Client{
		AppID: appID, Name: "Client " + appID, AgentAuthorizeURL: "https://" + appID + ".example.com/authorize",
		AllowedRoutes: []string{"*"}, Enabled: true, Token: ClientToken(appID),
	}
}

// ClientToken returns the token of NewClient's client.
func ClientToken(appID string) string { return token("bhk_", "client-"+appID) }

// NewController returns a controller that may change the registry, with a token derived
// from its name.
func NewController(name string) Controller {
	return Controller{Name: name, Token: token("bvc_", "controller-"+name), Permissions: []string{"registry:write"}}
}

// NewRoute returns an open route.
func NewRoute(key string) Route {
	return Route{RouteKey: key, Name: "Route " + key, Enabled: true, AgentAccess: true}
}

// NewSession returns the n-th session of a client, allowed all routes, with a
// bearer derived from n.
func NewSession(n int, clientAppID string) Session {
	return Session{
		SessionID:     fmt.Sprintf("123e4567-e89b-42d3-a456-%012d", n),
		ClientAppID:   clientAppID,
		DeviceLabel:   fmt.Sprintf("device-%d", n),
		Principal:     Principal{ID: fmt.Sprintf("operator-%d", n), Tenant: "store", Roles: []string{"manager"}},
		OnBehalfOf:    fmt.Sprintf("store:operator-%d", n),
		AllowedRoutes: []string{"*"},
		AccessToken:   token("bha_", fmt.Sprintf("session%d", n)), AccessExpiresAt: "2099-01-01T00:00:00Z",
		RefreshExpiresAt: "2099-02-01T00:00:00Z",
	}
}

// NewRegistry returns one client "app", one route "orders" and n sessions, numbered from 1.
func NewRegistry(n int) Registry {
	r := Registry{Clients: []Client{NewClient("app")}, Routes: []Route{NewRoute("orders")}}
	for i := range n {
		r.Sessions = append(r.Sessions, NewSession(i+1, "app"))
	}
	return r
}

// token returns a well-formed token that is easy to find in a log.
func token(prefix, name string) string {
	return prefix + (name + strings.Repeat("_", 43))[:43]
}

// The administrators of every deployment.
var (
	// Viewer may read everything.
	Viewer = token("bva_", "viewer")
	// MetadataViewer may read what holds no text and no principal.
	MetadataViewer = token("bva_", "metadata")
	// NoPermission is known and may read nothing.
	NoPermission = token("bva_", "noperm")
)

func administrators() []byte {
	type administrator struct {
		Name        string   `json:"name"`
		Token       string   `json:"token"`
		Permissions []string `json:"permissions"`
	}
	return JSON(map[string][]administrator{"admins": {
		{"viewer", Viewer, []string{"runs:read"}},
		{"metadata", MetadataViewer, []string{"runs:metadata"}},
		{"noperm", NoPermission, []string{}},
	}})
}

// bearers reads a registry file for its tokens. A vectors file calls a session by the
// letter that its token repeats; others are called by session id. Clients and controllers
// are called by their names, behind "client " and "controller ".
func bearers(registry []byte) (map[string]string, error) {
	var r struct {
		Clients     []Client     `json:"clients"`
		Sessions    []Session    `json:"sessions"`
		Controllers []Controller `json:"controllers"`
	}
	if err := json.Unmarshal(registry, &r); err != nil {
		return nil, err
	}
	found := map[string]string{"viewer": Viewer, "metadata": MetadataViewer, "noperm": NoPermission}
	for _, c := range r.Clients {
		found["client "+c.AppID] = c.Token
	}
	for _, c := range r.Controllers {
		found["controller "+c.Name] = c.Token
	}
	for _, s := range r.Sessions {
		found[s.SessionID] = s.AccessToken
		if letter := strings.TrimPrefix(s.AccessToken, "bha_"); letter != "" && strings.Trim(letter, letter[:1]) == "" {
			found[letter[:1]] = s.AccessToken
		}
	}
	return found, nil
}
