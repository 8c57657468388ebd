package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/client/internal/hubtest"
)

func asking(open func(ctx context.Context, url string) error) client.Authorization {
	return client.Authorization{ClientAppID: "crm-demo", Routes: []string{"customers", "leads"}, DeviceLabel: "a device", OpenURL: open}
}

func TestAuthorization(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	session, err := b.spool.Authorize(t.Context(), asking(browse))
	require.NoError(t, err)
	require.Equal(t, "crm-demo", session.ClientAppID())
	got, err := session.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"customers", "leads"}, got.AllowedRoutes)
	_, err = b.spool.OpenArchive(client.ArchiveSpec{ConversationID: "c", Route: "orders", Members: []client.Member{{Session: session}}})
	require.ErrorIs(t, err, client.ErrInvalid, "the session is not allowed the route")
	b.reopen(t)
	kept, err := b.spool.Session(session.ID())
	require.NoError(t, err)
	info(t, kept)
	begun := b.hub.Requests("/authorizations")
	require.Len(t, begun, 1)
	require.Contains(t, begun[0].Body, `"redirect_uri":"http://127.0.0.1:`)
}

func TestWhoDoesNotKnowTheStateChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	_, err := b.spool.Authorize(t.Context(), asking(func(ctx context.Context, page string) error {
		redirect := redirectOf(t, ctx, page)
		for name, change := range map[string]func(r *http.Request){
			"no state":     func(r *http.Request) { r.URL.RawQuery = "code=bhc_stolen" },
			"other state":  func(r *http.Request) { r.URL.RawQuery = "code=bhc_stolen&state=guessed" },
			"a denial":     func(r *http.Request) { r.URL.RawQuery = "error=access_denied&state=" },
			"another path": func(r *http.Request) { r.URL.Path = "/" },
			"another host": func(r *http.Request) { r.Host = "rebound.example.com" },
			"a post":       func(r *http.Request) { r.Method = http.MethodPost },
		} {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, redirect, nil)
			require.NoError(t, err)
			change(r)
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			require.Equal(t, http.StatusNotFound, answer.StatusCode, name)
			require.NoError(t, answer.Body.Close())
		}
		return browse(ctx, redirect)
	}))
	require.NoError(t, err)
}

// redirectOf asks the page and returns where it sends the browser.
func redirectOf(t *testing.T, ctx context.Context, page string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	require.NoError(t, err)
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	redirect := answer.Header.Get("Location")
	u, err := url.Parse(redirect)
	require.NoError(t, err)
	require.Len(t, u.Query().Get("state"), 43)
	return redirect
}

func TestTheBrowserIsToldAndKeepsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	_, err := b.spool.Authorize(t.Context(), asking(func(ctx context.Context, page string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, redirectOf(t, ctx, page), nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { require.NoError(t, answer.Body.Close()) }()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, "Done. You can close this window.\n", string(text))
		require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
		require.Equal(t, "no-referrer", answer.Header.Get("Referrer-Policy"))
		return nil
	}))
	require.NoError(t, err)
}

func TestAuthorizationsThatFail(t *testing.T) {
	t.Parallel()
	noBrowser := errors.New("no browser")
	for name, c := range map[string]struct {
		open  func(ctx context.Context, url string) error
		fault func(*http.Request) hubtest.Fault
		want  error
	}{
		"denied":     {open: func(ctx context.Context, url string) error { return browse(ctx, url+"?deny=1") }, want: client.ErrDenied},
		"no browser": {open: func(context.Context, string) error { return noBrowser }, want: noBrowser},
		"nobody":     {open: func(context.Context, string) error { return nil }, want: context.DeadlineExceeded},
		"an older hub": {
			open: browse, fault: always("/authorizations", hubtest.Fault{Status: 404}), want: client.ErrUnsupported,
		},
		"a lost exchange": {
			open: browse, fault: failOnce("/token", hubtest.Fault{Lost: true, Done: true}), want: client.ErrReauthorize,
		},
		"a strange page": {
			open: browse, want: client.ErrUnavailable,
			fault: always("/authorizations", hubtest.Fault{Body: `{"authorization_url":"file:///etc/passwd","expires_in":600}`}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, client.Hooks{})
			b.hub.OnRequest(c.fault)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := b.spool.Authorize(ctx, asking(c.open))
			require.ErrorIs(t, err, c.want)
			require.Len(t, b.spool.Sessions(), 2)
		})
	}
	b := setup(t, client.Hooks{})
	b.hub.OnRequest(always("/authorizations", hubtest.Fault{Status: 400, Code: "invalid_client"}))
	var refused *client.RefusedError
	_, err := b.spool.Authorize(t.Context(), asking(browse))
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "invalid_client", refused.Code)
}

func TestAuthorizationsThatAreNotAskedFor(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	for name, change := range map[string]func(*client.Authorization){
		"client":     func(a *client.Authorization) { a.ClientAppID = "" },
		"no routes":  func(a *client.Authorization) { a.Routes = nil },
		"65 routes":  func(a *client.Authorization) { a.Routes = strings.Split(strings.Repeat("ab ", 65), " ") },
		"any route":  func(a *client.Authorization) { a.Routes = []string{"*"} },
		"auto":       func(a *client.Authorization) { a.Routes = []string{"auto"} },
		"twice":      func(a *client.Authorization) { a.Routes = []string{"orders", "orders"} },
		"no label":   func(a *client.Authorization) { a.DeviceLabel = " " },
		"long label": func(a *client.Authorization) { a.DeviceLabel = strings.Repeat("a", 129) },
		"no browser": func(a *client.Authorization) { a.OpenURL = nil },
	} {
		a := asking(browse)
		change(&a)
		_, err := b.spool.Authorize(t.Context(), a)
		require.ErrorIs(t, err, client.ErrInvalid, name)
	}
	require.Empty(t, b.hub.Requests(""))
}
