package hubtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// rotationWindow is how long a used refresh token may return.
const rotationWindow = 10 * time.Second

// Grant is a session with its tokens, as its client gets it.
type Grant struct{ SessionID, ClientAppID, Access, Refresh string }

// session is an Agent Session.
type session struct {
	id, client string
	routes     []string
	access     map[string]bool
	refresh    string
	previous   string    // the refresh token before, while its return is told from theft
	usedAt     time.Time // of previous
	used       map[string]bool
	revoked    bool
}

// asking is an authorization.
type asking struct {
	ClientAppID   string   `json:"client_app_id"`
	RedirectURI   string   `json:"redirect_uri"`
	State         string   `json:"state"`
	Routes        []string `json:"requested_routes"`
	DeviceLabel   string   `json:"device_label"`
	CodeChallenge string   `json:"code_challenge"`
	Method        string   `json:"code_challenge_method"`
	code          string
	consumed      bool
}

// AddSession makes a session of a client, allowed the routes.
func (h *Hub) AddSession(clientAppID string, routes ...string) Grant {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &session{id: h.uuid(), client: clientAppID, routes: routes, access: map[string]bool{}, used: map[string]bool{}}
	h.sessions[s.id] = s
	access, refresh := s.issue()
	return Grant{s.id, clientAppID, access, refresh}
}

// ExpireAccess ends all access tokens of a session.
func (h *Hub) ExpireAccess(sessionID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.sessions[sessionID].access)
}

// Revoke revokes a session.
func (h *Hub) Revoke(sessionID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[sessionID].revoked = true
}

// Revoked reports whether a session is revoked, for instance because a used token returned.
func (h *Hub) Revoked(sessionID string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[sessionID].revoked
}

func (s *session) issue() (access, refresh string) {
	access, refresh = "bha_"+secret(), "bhr_"+secret()
	s.access[access], s.refresh = true, refresh
	return access, refresh
}

func (s *session) info() map[string]any {
	return map[string]any{
		"session_id": s.id, "client_app_id": s.client, "device_label": "device", "principal": map[string]any{"id": "operator"},
		"on_behalf_of": "store", "allowed_routes": s.routes, "created_at": "2026-01-01T00:00:00.000Z",
		"expires_at": "2099-01-01T00:00:00.000Z", "refresh_expires_at": "2099-02-01T00:00:00.000Z",
	}
}

func (h *Hub) bearer(r *http.Request) *session {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, s := range h.sessions {
		if s.access[token] && !s.revoked {
			return s
		}
	}
	return nil
}

// authorize begins an authorization; its page approves at once, or denies with ?deny=1.
func (h *Hub) authorize(body []byte) reply {
	a := &asking{}
	if !decode(body, a) || a.Method != "S256" || len(a.CodeChallenge) != 43 || len(a.State) < 8 {
		return refuse(http.StatusBadRequest, "invalid_request")
	}
	id := h.uuid()
	h.asked[id] = a
	return reply{status: http.StatusCreated, body: map[string]any{
		"authorization_id": id, "authorization_url": h.URL + "/page/" + id, "expires_in": 600,
	}}
}

// decide is what the client's page and its person do.
func (h *Hub) decide(id string, deny bool) reply {
	a := h.asked[id]
	if a == nil {
		return refuse(http.StatusNotFound, "authorization_not_found")
	}
	query := url.Values{"state": {a.State}}
	if deny {
		query.Set("error", "access_denied")
	} else {
		a.code = "bhc_" + secret()
		query.Set("code", a.code)
	}
	return reply{status: http.StatusFound, location: a.RedirectURI + "?" + query.Encode()}
}

func (h *Hub) token(body []byte) reply {
	var t struct {
		GrantType    string `json:"grant_type"`
		ClientAppID  string `json:"client_app_id"`
		Code         string `json:"code"`
		RedirectURI  string `json:"redirect_uri"`
		Verifier     string `json:"code_verifier"`
		RefreshToken string `json:"refresh_token"`
	}
	if !decode(body, &t) {
		return refuse(http.StatusBadRequest, "invalid_request")
	}
	var s *session
	if t.GrantType == "authorization_code" {
		s = h.exchange(t.ClientAppID, t.Code, t.RedirectURI, t.Verifier)
	} else {
		s = h.rotate(t.ClientAppID, t.RefreshToken)
	}
	if s == nil {
		return refuse(http.StatusBadRequest, "invalid_grant")
	}
	access, refresh := s.issue()
	return ok(map[string]any{
		"token_type": "Bearer", "access_token": access, "expires_in": 900, "refresh_token": refresh,
		"refresh_expires_in": 2_592_000, "session_id": s.id, "client_app_id": s.client,
	})
}

func (h *Hub) exchange(client, code, redirectURI, verifier string) *session {
	sum := sha256.Sum256([]byte(verifier))
	for _, a := range h.asked {
		if a.code != "" && a.code == code && !a.consumed && a.ClientAppID == client && a.RedirectURI == redirectURI &&
			a.CodeChallenge == base64.RawURLEncoding.EncodeToString(sum[:]) {
			a.consumed = true
			s := &session{id: h.uuid(), client: client, routes: slices.Clone(a.Routes), access: map[string]bool{}, used: map[string]bool{}}
			h.sessions[s.id] = s
			return s
		}
	}
	return nil
}

// rotate uses a refresh token; what has been used before and returns too late revokes.
func (h *Hub) rotate(client, token string) *session {
	for _, s := range h.sessions {
		switch {
		case token == "" || s.client != client || s.revoked:
		case token == s.refresh:
			s.previous, s.usedAt = token, h.clock()
			s.used[token] = true
			return s
		case token == s.previous && h.clock().Sub(s.usedAt) < rotationWindow:
			return s // the successor is replaced: nobody has used it
		case s.used[token]:
			s.revoked = true
		}
	}
	return nil
}

func secret() string { return (rand.Text() + rand.Text())[:43] }

// ExpireAll ends all access tokens.
func (h *Hub) ExpireAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		clear(s.access)
	}
}
