// Package hubtest is a hub in memory, for the client's own tests and examples: it keeps
// the protocol's rules as far as a client can break them, and fails on demand. Whether
// the client gets on with the real service is tested in test/integration.
package hubtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault is what goes wrong with one request.
type Fault struct {
	// Lost cuts the connection instead of answering: before the request is carried out, or
	// when Done is set after it.
	Lost, Done bool
	// Status answers this instead, with Code (none: a page that is not JSON), RetryAfter and
	// Location.
	Status     int
	Code       string
	RetryAfter string
	Location   string
	// Body answers this with status 200 instead.
	Body string
}

// Hub is the hub. Its methods are safe for concurrent use.
type Hub struct {
	// URL is where it serves.
	URL string

	server *httptest.Server

	mu       sync.Mutex
	fault    func(r *http.Request) Fault
	clock    func() time.Time
	requests []Request
	refusals []string
	cross    bool
	sessions map[string]*session
	archives map[string]*archive // by the hub's id
	created  map[string]string   // creator and client_archive_id -> the hub's id
	asked    map[string]*asking
	runs     map[string]*run
	threads  map[string]int64
	number   int
}

// Start starts a hub; the caller closes it.
func Start() *Hub {
	h := &Hub{
		clock: systemTime, cross: true, sessions: map[string]*session{}, archives: map[string]*archive{},
		created: map[string]string{}, asked: map[string]*asking{}, runs: map[string]*run{}, threads: map[string]int64{},
	}
	h.server = httptest.NewServer(h)
	h.URL = h.server.URL
	return h
}

// Close ends the hub.
func (h *Hub) Close() { h.server.Close() }

// OnRequest sets what decides how a request fails; nil is not at all.
func (h *Hub) OnRequest(fault func(r *http.Request) Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = fault
}

// SetClock sets the hub's clock.
func (h *Hub) SetClock(clock func() time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock = clock
}

// SetCrossBinding says whether the hub offers bindings of members.
func (h *Hub) SetCrossBinding(offered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cross = offered
}

// Request is what a client sent.
type Request struct{ Path, Bearer, Body string }

// Requests returns the requests so far whose path ends so, in order.
func (h *Hub) Requests(suffix string) []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []Request
	for _, r := range h.requests {
		if strings.HasSuffix(r.Path, suffix) {
			found = append(found, r)
		}
	}
	return found
}

// Refusals returns what the hub itself has refused so far, as "409 conversation_audit_conflict".
func (h *Hub) Refusals() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.refusals...)
}

// reply is an answer to be written.
type reply struct {
	status   int
	body     any
	location string
	etag     string
}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

func refuse(status int, code string) reply {
	return reply{status: status, body: map[string]string{"error": code, "message": "refused by the test's hub"}}
}

// ServeHTTP serves one request.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 2<<20+1))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	h.mu.Lock()
	h.requests = append(h.requests, Request{r.URL.Path, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), string(body)})
	decide := h.fault
	h.mu.Unlock()
	var f Fault
	if decide != nil {
		f = decide(r)
	}
	switch {
	case f.Status != 0:
		w.Header().Set("Retry-After", f.RetryAfter)
		w.Header().Set("Location", f.Location)
		if f.Code == "" {
			http.Error(w, "<html>not a hub</html>", f.Status)
			return
		}
		write(w, refuse(f.Status, f.Code))
		return
	case f.Body != "":
		_, _ = io.WriteString(w, f.Body)
		return
	case f.Lost && !f.Done:
		panic(http.ErrAbortHandler)
	}
	h.mu.Lock()
	out := h.route(r, body)
	if out.status >= 400 {
		refused, _ := out.body.(map[string]string)
		h.refusals = append(h.refusals, strconv.Itoa(out.status)+" "+refused["error"])
	}
	h.mu.Unlock()
	if f.Lost {
		panic(http.ErrAbortHandler)
	}
	write(w, out)
}

func write(w http.ResponseWriter, out reply) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	if out.etag != "" {
		w.Header().Set("ETag", out.etag)
	}
	if out.location != "" {
		w.Header().Set("Location", out.location)
	}
	w.WriteHeader(out.status)
	if out.body != nil {
		_ = json.NewEncoder(w).Encode(out.body)
	}
}

// route serves a request; the caller holds the lock.
func (h *Hub) route(r *http.Request, body []byte) reply {
	path := strings.TrimPrefix(r.URL.Path, "/")
	parts := strings.Split(path, "/")
	switch {
	case strings.HasPrefix(path, "page/"):
		return h.decide(parts[1], r.URL.Query().Get("deny") != "")
	case path == "agent-auth/v1/authorizations":
		return h.authorize(body)
	case path == "agent-auth/v1/token":
		return h.token(body)
	}
	s := h.bearer(r)
	if s == nil {
		return refuse(http.StatusUnauthorized, "unauthorized")
	}
	switch {
	case path == "agent-auth/v1/session":
		return ok(s.info())
	case path == "agent-auth/v1/revoke":
		s.revoked = true
		return ok(map[string]bool{"revoked": true})
	case strings.HasPrefix(path, "agent-api/v1/conversation-audits"):
		return h.archiveRoute(s, parts[3:], body)
	case strings.HasPrefix(path, "agent-api/v1/workspaces"), strings.HasPrefix(path, "agent-api/v1/runs/"):
		return h.runRoute(s, parts[2:], r.Header.Get("If-None-Match"), body)
	}
	return refuse(http.StatusNotFound, "not_found")
}

// uuid returns another UUID, always the same in the same order.
func (h *Hub) uuid() string {
	h.number++
	digits := strconv.Itoa(h.number)
	return "423e4567-e89b-42d3-a456-" + strings.Repeat("0", 12-len(digits)) + digits
}

func decode(body []byte, v any) bool {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	return d.Decode(v) == nil
}
