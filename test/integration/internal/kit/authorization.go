package kit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// AuthPath is where agents ask for sessions.
const AuthPath = "/agent-auth/v1"

// learned keeps the secrets that the services gave, so that a log which holds one is
// recognised. It is safe for concurrent use.
type learned struct {
	mu      sync.Mutex
	secrets []string
}

func (l *learned) add(secrets ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secrets = append(l.secrets, secrets...)
}

func (l *learned) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.secrets...)
}

// AuthorizationRequest is the body with which an agent asks for a session.
type AuthorizationRequest struct {
	ClientAppID         string   `json:"client_app_id"`
	RedirectURI         string   `json:"redirect_uri"`
	State               string   `json:"state"`
	RequestedRoutes     []string `json:"requested_routes"`
	DeviceLabel         string   `json:"device_label"`
	CodeChallenge       string   `json:"code_challenge"`
	CodeChallengeMethod string   `json:"code_challenge_method"`
}

// Approval is the body with which a client's backend approves.
type Approval struct {
	Principal     Principal `json:"principal"`
	OnBehalfOf    string    `json:"on_behalf_of"`
	AllowedRoutes []string  `json:"allowed_routes"`
}

// Authorization is what an agent asked for, with the verifier that it keeps.
type Authorization struct {
	ID       string
	URL      string // the client's page
	Request  AuthorizationRequest
	Verifier string

	d *Deployment
}

// Tokens are a session's, as the token endpoint gives them.
type Tokens struct {
	TokenType        string `json:"token_type"`
	AccessToken      string `json:"access_token"`
	ExpiresIn        int    `json:"expires_in"`
	RefreshToken     string `json:"refresh_token"`
	RefreshExpiresIn int    `json:"refresh_expires_in"`
	SessionID        string `json:"session_id"`
	ClientAppID      string `json:"client_app_id"`
}

// NewVerifier returns a fresh PKCE verifier and its S256 challenge.
func NewVerifier() (verifier, challenge string) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	verifier = base64.RawURLEncoding.EncodeToString(b[:])
	sum := sha256.Sum256([]byte(verifier))
	return verifier, base64.RawURLEncoding.EncodeToString(sum[:])
}

// NewAuthorizationRequest returns a request for a client's routes, and its verifier.
func NewAuthorizationRequest(clientAppID string, routes ...string) (r AuthorizationRequest, verifier string) {
	verifier, challenge := NewVerifier()
	return AuthorizationRequest{
		ClientAppID: clientAppID, RedirectURI: "http://127.0.0.1:53682/callback", State: rand.Text(), RequestedRoutes: routes,
		DeviceLabel: "Laptop of " + clientAppID, CodeChallenge: challenge, CodeChallengeMethod: "S256",
	}, verifier
}

// Authorize asks a client's user for a session; it waits for its decision then.
func (d *Deployment) Authorize(t *testing.T, clientAppID string, routes ...string) *Authorization {
	t.Helper()
	request, verifier := NewAuthorizationRequest(clientAppID, routes...)
	var opened struct {
		AuthorizationID  string `json:"authorization_id"`
		AuthorizationURL string `json:"authorization_url"`
	}
	d.Ingest.Must(Request{Method: http.MethodPost, Path: AuthPath + "/authorizations", Body: JSON(request)}).
		Decode(t, http.StatusCreated, &opened)
	page, err := url.Parse(opened.AuthorizationURL)
	require.NoError(t, err)
	require.Equal(t, opened.AuthorizationID, page.Query().Get("authorization_id"))
	d.learned.add(verifier)
	return &Authorization{ID: opened.AuthorizationID, URL: opened.AuthorizationURL, Request: request, Verifier: verifier, d: d}
}

// Path returns where the client's backend speaks about the authorization.
func (a *Authorization) Path() string { return AuthPath + "/authorizations/" + a.ID }

// Decide sends the client's decision: an Approval to "approve", an empty object to "deny".
func (a *Authorization) Decide(decision string, body any) Response {
	return a.d.Ingest.Must(Request{
		Method: http.MethodPost, Path: a.Path() + "/" + decision, Bearer: a.d.Bearer("client " + a.Request.ClientAppID), Body: JSON(body),
	})
}

// Approve approves all that was requested, as the client's backend does, and returns the
// code that comes to the agent's redirect.
func (a *Authorization) Approve(t *testing.T, principal Principal, onBehalfOf string) (code string) {
	t.Helper()
	query := a.redirected(t, a.Decide("approve", Approval{principal, onBehalfOf, a.Request.RequestedRoutes}))
	code = query.Get("code")
	require.NotEmpty(t, code)
	a.d.learned.add(code)
	return code
}

// Deny refuses, as the client's backend does, and returns the error that comes to the
// agent's redirect.
func (a *Authorization) Deny(t *testing.T) string {
	t.Helper()
	return a.redirected(t, a.Decide("deny", struct{}{})).Get("error")
}

// redirected checks where the browser goes next, and returns what is asked there.
func (a *Authorization) redirected(t *testing.T, answer Response) url.Values {
	t.Helper()
	var redirect struct {
		RedirectURI string `json:"redirect_uri"`
	}
	answer.Decode(t, http.StatusOK, &redirect)
	uri, err := url.Parse(redirect.RedirectURI)
	require.NoError(t, err)
	query := uri.Query()
	require.Equal(t, a.Request.State, query.Get("state"))
	uri.RawQuery = ""
	require.Equal(t, a.Request.RedirectURI, uri.String())
	return query
}

// CodeGrant returns the body that exchanges the authorization's code.
func (a *Authorization) CodeGrant(code string) map[string]string {
	return map[string]string{
		"grant_type": "authorization_code", "client_app_id": a.Request.ClientAppID, "code": code,
		"redirect_uri": a.Request.RedirectURI, "code_verifier": a.Verifier,
	}
}

// Exchange exchanges a code for a session.
func (a *Authorization) Exchange(t *testing.T, code string) *Agent {
	t.Helper()
	agent := &Agent{d: a.d}
	answer := a.d.Token(a.CodeGrant(code))
	answer.Decode(t, http.StatusOK, &agent.Tokens)
	require.Equal(t, a.Request.ClientAppID, agent.ClientAppID)
	return agent
}

// Token asks the token endpoint. What it gives must never be in a log.
func (d *Deployment) Token(grant map[string]string) Response {
	d.t.Helper()
	answer := d.Ingest.Must(Request{Method: http.MethodPost, Path: AuthPath + "/token", Body: JSON(grant)})
	var tokens Tokens
	if answer.Status == http.StatusOK {
		answer.Decode(d.t, http.StatusOK, &tokens)
		d.learned.add(tokens.AccessToken, tokens.RefreshToken)
	}
	return answer
}

// SignIn gets an agent a session of its own: it asks, the client approves everything, the
// agent exchanges the code.
func (d *Deployment) SignIn(t *testing.T, clientAppID string, routes ...string) *Agent {
	t.Helper()
	authorization := d.Authorize(t, clientAppID, routes...)
	principal := Principal{ID: "operator-" + clientAppID, Tenant: "store", Roles: []string{"manager"}}
	return authorization.Exchange(t, authorization.Approve(t, principal, "store:operator-"+clientAppID))
}
