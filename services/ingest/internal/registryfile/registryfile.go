// Package registryfile reads the operator's registry file: YAML or JSON with
// clients, routes, sessions and runs.
package registryfile

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"sigs.k8s.io/yaml"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

type file struct {
	Clients  []client  `json:"clients"`
	Routes   []route   `json:"routes"`
	Sessions []session `json:"sessions"`
	Runs     []run     `json:"runs"`
}

type client struct {
	AppID         string   `json:"app_id"`
	Name          string   `json:"name"`
	AuthorizeURL  string   `json:"agent_authorize_url"`
	AllowedRoutes []string `json:"allowed_routes"`
	Enabled       flag     `json:"enabled"`
	Token         string   `json:"token"`
}

type route struct {
	RouteKey    string    `json:"route_key"`
	Name        string    `json:"name"`
	Enabled     flag      `json:"enabled"`
	AgentAccess flag      `json:"agent_access"`
	Audience    *audience `json:"audience"`
}

type session struct {
	SessionID        string             `json:"session_id"`
	ClientAppID      string             `json:"client_app_id"`
	DeviceLabel      string             `json:"device_label"`
	Principal        identity.Principal `json:"principal"`
	OnBehalfOf       string             `json:"on_behalf_of"`
	AllowedRoutes    []string           `json:"allowed_routes"`
	AccessToken      string             `json:"access_token"`
	AccessExpiresAt  time.Time          `json:"access_expires_at"`
	RefreshExpiresAt time.Time          `json:"refresh_expires_at"`
	RevokedAt        *time.Time         `json:"revoked_at"`
}

type run struct {
	RunID                string `json:"run_id"`
	SessionID            string `json:"session_id"`
	ClientAppID          string `json:"client_app_id"`
	RouteKey             string `json:"route_key"`
	ThreadID             int64  `json:"thread_id"`
	ClientConversationID string `json:"client_conversation_id"`
	ClientTurnID         string `json:"client_turn_id"`
}

// Parse reads a registry file strictly: undeclared, repeated and mistyped fields
// are refused. A client and a route are enabled unless the file says otherwise;
// a route has agent access only if the file says so. The error names every
// entry that is wrong, and no token.
func Parse(data []byte) (app.Registry, error) {
	var f file
	asJSON, err := yaml.YAMLToJSONStrict(data) // JSON is YAML
	if err != nil {
		return app.Registry{}, errors.New("the registry file is neither YAML nor JSON, or repeats a field")
	}
	if err := json.Unmarshal(asJSON, &f, json.RejectUnknownMembers(true), refuseNull); err != nil {
		var semantic *json.SemanticError
		if errors.As(err, &semantic) && semantic.JSONPointer != "" {
			return app.Registry{}, fmt.Errorf("the registry file has an unknown or mistyped field at %s", semantic.JSONPointer)
		}
		return app.Registry{}, errors.New("the registry file must be one object of clients, routes, sessions and runs")
	}
	return f.registry()
}

func (f file) registry() (app.Registry, error) {
	var r app.Registry
	var v validator
	for _, c := range f.Clients {
		v.client(c)
		r.Clients = append(r.Clients, app.RegistryClient{
			Client:       identity.Client{AppID: c.AppID, Name: c.Name, AllowedRoutes: list(c.AllowedRoutes), Enabled: !c.Enabled.given || c.Enabled.value},
			AuthorizeURL: c.AuthorizeURL, Token: c.Token,
		})
	}
	for _, e := range f.Routes {
		v.route(e)
		out := app.RegistryRoute{Name: e.Name, Route: identity.Route{
			RouteKey: e.RouteKey, Enabled: !e.Enabled.given || e.Enabled.value, AgentAccess: e.AgentAccess.value,
		}}
		if e.Audience != nil {
			out.Audience = identity.Audience(*e.Audience)
		}
		r.Routes = append(r.Routes, out)
	}
	for _, s := range f.Sessions {
		id := v.session(s)
		r.Sessions = append(r.Sessions, app.RegistrySession{
			Session: identity.Session{
				ID: id, ClientAppID: s.ClientAppID, Principal: s.Principal, OnBehalfOf: s.OnBehalfOf,
				AllowedRoutes: list(s.AllowedRoutes), RefreshExpiresAt: s.RefreshExpiresAt.UTC(), RevokedAt: s.RevokedAt,
			},
			DeviceLabel: s.DeviceLabel, AccessToken: s.AccessToken, AccessExpiresAt: s.AccessExpiresAt.UTC(),
		})
	}
	for _, e := range f.Runs {
		id, sessionID := v.run(e)
		r.Runs = append(r.Runs, identity.Run{
			RunID: id, SessionID: sessionID, Binding: identity.Binding{ClientAppID: e.ClientAppID, RouteKey: e.RouteKey},
			ThreadID: e.ThreadID, ClientConversationID: e.ClientConversationID, ClientTurnID: e.ClientTurnID,
		})
	}
	return r, errors.Join(v.problems...)
}

// list keeps "none" an empty list, which is what the column holds.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
