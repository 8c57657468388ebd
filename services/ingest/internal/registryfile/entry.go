package registryfile

import (
	"time"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

// The entries, as an operator writes them. What follows an entry's key is a type of its
// own: over HTTP the key of a client and of a route is in the path.
type (
	client struct {
		AppID string `json:"app_id"`
		clientFields
	}
	clientFields struct {
		Name          string   `json:"name"`
		AuthorizeURL  string   `json:"agent_authorize_url"`
		AllowedRoutes []string `json:"allowed_routes"`
		Enabled       flag     `json:"enabled"`
		Token         string   `json:"token"`
	}

	route struct {
		RouteKey string `json:"route_key"`
		routeFields
	}
	routeFields struct {
		Name         string    `json:"name"`
		Enabled      flag      `json:"enabled"`
		AgentAccess  flag      `json:"agent_access"`
		Audience     *audience `json:"audience"`
		Instructions string    `json:"instructions"`
	}

	session struct {
		SessionID string `json:"session_id"`
		sessionFields
	}
	sessionFields struct {
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

	run struct {
		RunID                string `json:"run_id"`
		SessionID            string `json:"session_id"`
		ClientAppID          string `json:"client_app_id"`
		RouteKey             string `json:"route_key"`
		ThreadID             int64  `json:"thread_id"`
		ClientConversationID string `json:"client_conversation_id"`
		ClientTurnID         string `json:"client_turn_id"`
	}

	controller struct {
		Name        string   `json:"name"`
		Token       string   `json:"token"`
		Permissions []string `json:"permissions"`
	}
)

func (c client) entry(v *validator) app.RegistryClient {
	v.client(c)
	return app.RegistryClient{
		Client:       identity.Client{AppID: c.AppID, Name: c.Name, AllowedRoutes: list(c.AllowedRoutes), Enabled: c.Enabled.or(true)},
		AuthorizeURL: c.AuthorizeURL, Token: c.Token,
	}
}

func (r route) entry(v *validator) app.RegistryRoute {
	v.route(r)
	out := app.RegistryRoute{Name: r.Name, Instructions: r.Instructions, Route: identity.Route{
		RouteKey: r.RouteKey, Enabled: r.Enabled.or(true), AgentAccess: r.AgentAccess.or(false),
	}}
	if r.Audience != nil {
		out.Audience = identity.Audience(*r.Audience)
	}
	return out
}

func (s session) entry(v *validator) app.RegistrySession {
	id := v.session(s)
	return app.RegistrySession{
		Session: identity.Session{
			ID: id, ClientAppID: s.ClientAppID, Principal: s.Principal, OnBehalfOf: s.OnBehalfOf,
			AllowedRoutes: list(s.AllowedRoutes), RefreshExpiresAt: s.RefreshExpiresAt.UTC(), RevokedAt: s.RevokedAt,
		},
		DeviceLabel: s.DeviceLabel, AccessToken: s.AccessToken, AccessExpiresAt: s.AccessExpiresAt.UTC(),
	}
}

func (r run) entry(v *validator) identity.Run {
	id, sessionID := v.run(r)
	return identity.Run{
		RunID: id, SessionID: sessionID, Binding: identity.Binding{ClientAppID: r.ClientAppID, RouteKey: r.RouteKey},
		ThreadID: r.ThreadID, ClientConversationID: r.ClientConversationID, ClientTurnID: r.ClientTurnID,
	}
}

func (c controller) entry(v *validator) app.RegistryController {
	v.controller(c)
	return app.RegistryController{Name: c.Name, Token: c.Token, Permissions: list(c.Permissions)}
}

// list keeps "none" an empty list, which is what the column holds.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
