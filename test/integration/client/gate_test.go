package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// gate stands between a client and ingest: it holds every exchange against the contract,
// and decides what becomes of it. Safe for concurrent use.
type gate struct {
	t      *testing.T
	d      *kit.Deployment
	server *httptest.Server

	mu      sync.Mutex
	before  func(kind string) (pass bool)
	after   func(kind string) (answer bool)
	secrets []string
}

// newGate returns an open gate, and checks at the test's end that no log has a token.
func newGate(t *testing.T, d *kit.Deployment) *gate {
	t.Helper()
	g := &gate{t: t, d: d}
	g.server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.server.Close()
		logged := d.Logs.String()
		for _, secret := range g.secrets {
			if strings.Contains(logged, secret) {
				t.Error("a token is in the log")
			}
		}
	})
	return g
}

// on sets what is asked before a request is passed on, and before its answer is.
func (g *gate) on(before, after func(kind string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before, g.after = before, after
}

// ServeHTTP passes a request on. What passes arrives even when the client is gone.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if r.Method == http.MethodGet {
		body = nil
	}
	kind := kindOf(r.URL.Path, body)
	g.mu.Lock()
	before, after := g.before, g.after
	g.mu.Unlock()
	if before != nil && !before(kind) {
		panic(http.ErrAbortHandler)
	}
	header := http.Header{}
	if known := r.Header.Values("If-None-Match"); known != nil {
		header["If-None-Match"] = known
	}
	answer, err := g.d.Ingest.Do(context.WithoutCancel(r.Context()), kit.Request{
		Method: r.Method, Path: r.URL.Path, Bearer: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Body: body, Header: header,
	})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	g.learn(kind, answer.Body)
	if after != nil && !after(kind) {
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body)
}

func (g *gate) learn(kind string, body []byte) {
	if kind != "exchange" && kind != "refresh" {
		return
	}
	var tokens kit.Tokens
	if json.Unmarshal(body, &tokens) == nil && tokens.AccessToken != "" {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.secrets = append(g.secrets, tokens.AccessToken, tokens.RefreshToken)
	}
}

// kinds are the requests that an agent makes in a whole conversation.
var kinds = []string{
	"authorizations", "exchange", "session", "capabilities", "create", "confirm", "turns", "events", "refresh", "trace-events", "complete",
}

func kindOf(path string, body []byte) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case last == "conversation-audits":
		return "create"
	case last == "token" && strings.Contains(string(body), `"authorization_code"`):
		return "exchange"
	case last == "token":
		return "refresh"
	}
	return last
}

// system is a deployment whose clients have a page where a person approves whatever is
// asked. The n-th pair of clients is crm-n and erp-n.
type system struct {
	*kit.Deployment

	page *httptest.Server
}

func newSystem(t *testing.T, pairs int) *system {
	t.Helper()
	s := &system{}
	s.page = httptest.NewServer(http.HandlerFunc(s.approve))
	t.Cleanup(s.page.Close)
	registry := kit.Registry{Routes: []kit.Route{kit.NewRoute("customers"), kit.NewRoute("orders")}}
	for n := range pairs {
		for _, name := range []string{"crm", "erp"} {
			c := kit.NewClient(fmt.Sprintf("%s-%d", name, n))
			c.AgentAuthorizeURL = s.page.URL + "/" + c.AppID
			registry.Clients = append(registry.Clients, c)
		}
	}
	s.Deployment = kit.Start(t, kit.Options{Registry: registry.Encode()})
	return s
}

// approve is the client's page with its person and its backend.
func (s *system) approve(w http.ResponseWriter, r *http.Request) {
	appID := strings.TrimPrefix(r.URL.Path, "/")
	route := "customers"
	if strings.HasPrefix(appID, "erp") {
		route = "orders"
	}
	answer, err := s.Ingest.Do(r.Context(), kit.Request{
		Method: http.MethodPost, Path: kit.AuthPath + "/authorizations/" + r.URL.Query().Get("authorization_id") + "/approve",
		Bearer: kit.ClientToken(appID), Body: kit.JSON(kit.Approval{
			Principal: kit.Principal{ID: "operator", Tenant: "store", Roles: []string{"manager"}}, OnBehalfOf: "store:operator", AllowedRoutes: []string{route},
		}),
	})
	var redirect struct {
		RedirectURI string `json:"redirect_uri"`
	}
	if err != nil || json.Unmarshal(answer.Body, &redirect) != nil || redirect.RedirectURI == "" {
		http.Error(w, "not approved", http.StatusBadGateway)
		return
	}
	w.Header().Set("Location", redirect.RedirectURI)
	w.WriteHeader(http.StatusFound)
}

// expire ends the access tokens of a client's sessions.
func (s *system) expire(t *testing.T, clients ...string) {
	t.Helper()
	require.NoError(t, kit.Exec(t, s.IngestDB.AdminDSN, `update bz_agent_session_tokens set access_expires_at = now() - interval '1 second'
		where session_id in (select session_id from bz_agent_sessions where client_app_id = any($1))`, clients))
}
