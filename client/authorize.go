package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	maxRoutes = 64
	// decisionGrace is how long after an authorization's end the redirect is waited for.
	decisionGrace = 30 * time.Second
	infoPatience  = 5 * time.Second
)

// Authorization is what an agent asks a person for.
type Authorization struct {
	// ClientAppID is the client whose page the person decides at.
	ClientAppID string
	// Routes are the routes asked for: 1 to 64, distinct, neither "auto" nor "*".
	Routes []string
	// DeviceLabel tells the person which device asks: at most 128 UTF-16 code units.
	DeviceLabel string
	// OpenURL opens the page, an http or https URL, in the person's browser. It may return
	// before the person has decided.
	OpenURL func(ctx context.Context, url string) error
}

func (a Authorization) check() error {
	if !isKey(a.ClientAppID) {
		return invalid("the client's id is no resource key")
	}
	if len(a.Routes) == 0 || len(a.Routes) > maxRoutes {
		return invalid("1 to %d routes are asked for", maxRoutes)
	}
	seen := map[string]bool{}
	for _, route := range a.Routes {
		if !isRoute(route) || seen[route] {
			return invalid("the routes are distinct resource keys other than auto")
		}
		seen[route] = true
	}
	if !isText(a.DeviceLabel, MaxLabelUnits) {
		return invalid("the device's label is no visible text of at most %d UTF-16 code units", MaxLabelUnits)
	}
	if a.OpenURL == nil {
		return invalid("nothing opens the page")
	}
	return nil
}

// Authorize gets a session through the person's browser: it listens on 127.0.0.1, opens
// the client's page, waits for the redirect and exchanges the code (PKCE, S256). The
// session is on disk when Authorize returns; a crash before that leaves a session at the
// hub that nobody holds the tokens of, and the person authorizes again.
//
// Errors: ErrInvalid, RefusedError (invalid_client), ErrDenied, ErrExpired,
// ErrReauthorize when the exchange's answer is lost, ErrUnsupported, the context's.
func (s *Spool) Authorize(ctx context.Context, a Authorization) (*Session, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	loop, err := listen(ctx)
	if err != nil {
		return nil, err
	}
	defer loop.close(context.WithoutCancel(ctx))
	verifier := newSecret()
	begun, err := s.hub.beginAuthorization(ctx, a, loop, verifier)
	if err != nil {
		return nil, err
	}
	if err := a.OpenURL(ctx, begun.URL); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, time.Duration(begun.ExpiresIn)*time.Second+decisionGrace)
	defer cancel()
	code, err := loop.wait(waiting)
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil, ErrExpired
		}
		return nil, err
	}
	session, err := s.exchange(ctx, a.ClientAppID, code, loop.redirectURI, verifier)
	if err != nil {
		return nil, err
	}
	// Which routes it may use makes later checks local; without it the hub checks alone.
	brief, cancel := context.WithTimeout(ctx, infoPatience)
	defer cancel()
	_, _ = session.Info(brief)
	return session, nil
}

// authorizationAnswer answers the request for an authorization.
type authorizationAnswer struct {
	URL       string `json:"authorization_url"`
	ExpiresIn int64  `json:"expires_in"`
}

func (h *Hub) beginAuthorization(ctx context.Context, a Authorization, loop *loopback, verifier string) (begun authorizationAnswer, err error) {
	body, err := encode(map[string]any{
		"client_app_id": a.ClientAppID, "redirect_uri": loop.redirectURI, "state": loop.state,
		"requested_routes": a.Routes, "device_label": a.DeviceLabel,
		"code_challenge": challengeOf(verifier), "code_challenge_method": "S256",
	})
	if err != nil {
		return begun, err
	}
	err = h.retry(ctx, func() error {
		in, err := h.send(ctx, post("/agent-auth/v1/authorizations", body), Token{})
		if err != nil {
			return err
		}
		if err := in.decode("", &begun); err != nil {
			return err
		}
		page, err := url.Parse(begun.URL)
		if err != nil || page.Scheme != "https" && page.Scheme != "http" || page.Host == "" || begun.ExpiresIn <= 0 || begun.ExpiresIn > 86_400 {
			return in.unintelligible()
		}
		return nil
	})
	return begun, err
}

// exchange turns the code into a stored session. A code works once: when the answer is
// lost, the repetition is refused and the person has to authorize again.
func (s *Spool) exchange(ctx context.Context, clientAppID, code, redirectURI, verifier string) (session *Session, err error) {
	body, err := encode(map[string]string{
		"grant_type": "authorization_code", "client_app_id": clientAppID, "code": code,
		"redirect_uri": redirectURI, "code_verifier": verifier,
	})
	if err != nil {
		return nil, err
	}
	err = s.hub.retry(ctx, func() error {
		s.step("exchange: before send")
		asked := s.clock()
		a, err := s.hub.send(ctx, post("/agent-auth/v1/token", body), Token{})
		s.step("exchange: answered")
		if err != nil {
			return err
		}
		var t tokenAnswer
		err = a.decode("", &t)
		var refused *RefusedError
		if errors.As(err, &refused) && refused.Code == "invalid_grant" {
			return ErrReauthorize
		}
		if err != nil {
			return err
		}
		id, ok := parseUUID(t.SessionID)
		if !ok || !t.complete() || t.ClientAppID != clientAppID {
			return a.unintelligible()
		}
		session, err = s.storeSession(ctx, id, t.apply(sessionRecord{ClientAppID: clientAppID}, asked))
		return err
	})
	return session, err
}

// loopback is where the person's browser is sent back to.
type loopback struct {
	redirectURI, state string

	host   string
	server *http.Server
	result chan url.Values
}

// callbackPath is where the browser comes back; the port is the machine's choice.
const callbackPath = "/callback"

func listen(ctx context.Context) (*loopback, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &loopback{state: newSecret(), host: listener.Addr().String(), result: make(chan url.Values, 1)}
	l.redirectURI = "http://" + l.host + callbackPath
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = l.server.Serve(listener) }()
	return l, nil
}

// ServeHTTP takes the redirect. Whatever does not show the state (another page of the
// browser, another program) is turned away and changes nothing.
func (l *loopback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	query := r.URL.Query()
	if r.Method != http.MethodGet || r.Host != l.host || r.URL.Path != callbackPath || !sameSecret(query.Get("state"), l.state) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("Nothing is here.\n"))
		return
	}
	select {
	case l.result <- query:
	default: // the browser repeats itself
	}
	text := "Done. You can close this window.\n"
	if query.Get("code") == "" {
		text = "Not authorized. You can close this window.\n"
	}
	_, _ = w.Write([]byte(text))
}

// wait returns the code that the redirect brought.
func (l *loopback) wait(ctx context.Context) (string, error) {
	select {
	case query := <-l.result:
		code := query.Get("code")
		switch {
		case query.Get("error") == "access_denied":
			return "", ErrDenied
		case query.Has("error") || !NewToken(code).valid():
			return "", &RefusedError{Code: "authorization_failed", Message: "the page sent the browser back without a code"}
		}
		return code, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// close lets the browser have its answer, and ends.
func (l *loopback) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
}
