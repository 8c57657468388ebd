package authorization_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

func routes(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("route-%d", i)
	}
	return keys
}

func TestRequestsOfTheRightShapeAreKeptAsSent(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*authorization.Fields){
		"as it is":                  func(*authorization.Fields) {},
		"shortest state":            func(f *authorization.Fields) { f.State = "12345678" },
		"longest state":             func(f *authorization.Fields) { f.State = strings.Repeat("é", 512) },
		"a state beyond the plane":  func(f *authorization.Fields) { f.State = strings.Repeat("😀", 4) },
		"a state with spaces":       func(f *authorization.Fields) { f.State = " a b c d " },
		"64 routes":                 func(f *authorization.Fields) { f.RequestedRoutes = routes(64) },
		"a label of one":            func(f *authorization.Fields) { f.DeviceLabel = "x" },
		"the longest label":         func(f *authorization.Fields) { f.DeviceLabel = strings.Repeat("😀", 64) },
		"every base64url character": func(f *authorization.Fields) { f.CodeChallenge = "-_09azAZ" + strings.Repeat("A", 35) },
		"IPv6":                      func(f *authorization.Fields) { f.RedirectURI = "http://[::1]:1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fields()
			change(&f)
			r, err := authorization.NewRequest(f)
			if err != nil {
				t.Fatal(err)
			}
			if r.ClientAppID != f.ClientAppID || string(r.Redirect) != f.RedirectURI || r.State != f.State || r.DeviceLabel != f.DeviceLabel ||
				r.Challenge != f.CodeChallenge || strings.Join(r.RequestedRoutes, " ") != strings.Join(f.RequestedRoutes, " ") {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestRequestsOfAnotherShapeAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*authorization.Fields){
		"no client":                     func(f *authorization.Fields) { f.ClientAppID = "" },
		"a client that is no key":       func(f *authorization.Fields) { f.ClientAppID = "Shop" },
		"no redirect":                   func(f *authorization.Fields) { f.RedirectURI = "" },
		"a redirect elsewhere":          func(f *authorization.Fields) { f.RedirectURI = "http://localhost:1" },
		"no state":                      func(f *authorization.Fields) { f.State = "" },
		"a short state":                 func(f *authorization.Fields) { f.State = "1234567" },
		"a long state":                  func(f *authorization.Fields) { f.State = strings.Repeat("s", 513) },
		"a long state in UTF-16":        func(f *authorization.Fields) { f.State = strings.Repeat("😀", 257) },
		"a state with a line feed":      func(f *authorization.Fields) { f.State = "12345678\n" },
		"a state with a NUL":            func(f *authorization.Fields) { f.State = "12345678\x00" },
		"a state with a C1 control":     func(f *authorization.Fields) { f.State = "12345678\u0085" },
		"a state that is no text":       func(f *authorization.Fields) { f.State = "12345678\xff" },
		"no routes":                     func(f *authorization.Fields) { f.RequestedRoutes = nil },
		"65 routes":                     func(f *authorization.Fields) { f.RequestedRoutes = routes(65) },
		"a route twice":                 func(f *authorization.Fields) { f.RequestedRoutes = []string{"orders", "returns", "orders"} },
		"auto":                          func(f *authorization.Fields) { f.RequestedRoutes = []string{"orders", "auto"} },
		"a star":                        func(f *authorization.Fields) { f.RequestedRoutes = []string{"*"} },
		"a route that is no key":        func(f *authorization.Fields) { f.RequestedRoutes = []string{"Orders"} },
		"no label":                      func(f *authorization.Fields) { f.DeviceLabel = "" },
		"a blank label":                 func(f *authorization.Fields) { f.DeviceLabel = " \u3000" },
		"a long label":                  func(f *authorization.Fields) { f.DeviceLabel = strings.Repeat("l", 129) },
		"a label with a control":        func(f *authorization.Fields) { f.DeviceLabel = "a\x1bb" },
		"no challenge":                  func(f *authorization.Fields) { f.CodeChallenge = "" },
		"a short challenge":             func(f *authorization.Fields) { f.CodeChallenge = f.CodeChallenge[1:] },
		"a long challenge":              func(f *authorization.Fields) { f.CodeChallenge += "A" },
		"a padded challenge":            func(f *authorization.Fields) { f.CodeChallenge = f.CodeChallenge[1:] + "=" },
		"a challenge of plain base64":   func(f *authorization.Fields) { f.CodeChallenge = f.CodeChallenge[1:] + "+" },
		"a challenge with a dot":        func(f *authorization.Fields) { f.CodeChallenge = f.CodeChallenge[1:] + "." },
		"the plain method":              func(f *authorization.Fields) { f.CodeChallengeMethod = "plain" },
		"the method in lower case":      func(f *authorization.Fields) { f.CodeChallengeMethod = "s256" },
		"no method, which is not plain": func(f *authorization.Fields) { f.CodeChallengeMethod = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fields()
			change(&f)
			_, err := authorization.NewRequest(f)
			wantCode(t, err, refusal.InvalidRequest)
		})
	}
}

func TestOnlyAClientWithAPageAndTheRoutesIsAsked(t *testing.T) {
	t.Parallel()
	r, err := authorization.NewRequest(fields())
	if err != nil {
		t.Fatal(err)
	}
	everything, disabled, other, narrow := shop(), shop(), shop(), shop()
	everything.AllowedRoutes = []string{"*"}
	disabled.Enabled = false
	other.AppID = "other"
	narrow.AllowedRoutes = []string{"orders"}
	for name, tc := range map[string]struct {
		client  *identity.Client
		hasPage bool
		want    refusal.Code
	}{
		"it may":             {shop(), true, ""},
		"it allows all":      {everything, true, ""},
		"it does not exist":  {nil, true, refusal.InvalidClient},
		"it is disabled":     {disabled, true, refusal.InvalidClient},
		"it has no page":     {shop(), false, refusal.InvalidClient},
		"facts of another":   {other, true, refusal.InvalidClient},
		"a route is not its": {narrow, true, refusal.InvalidClient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantCode(t, r.Admit(tc.client, tc.hasPage), tc.want)
		})
	}
}

// Whatever the times of asking are: at most ten are within any minute, and nobody waits
// longer than needed.
func TestAskingIsBoundedWithinASlidingMinute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := instant
		var admitted []time.Time
		within := func(end time.Time) (last []time.Time) {
			for _, at := range admitted {
				if at.After(end.Add(-authorization.AskWindow)) {
					last = append(last, at)
				}
			}
			return last
		}
		for range rapid.IntRange(1, 60).Draw(t, "asked") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "pause")) * time.Millisecond)
			last := within(now)
			wait := authorization.RetryAfter(last, now)
			if (wait <= 0) != (len(last) < authorization.MaxAsked) {
				t.Fatalf("%d in the last minute, and %v to wait", len(last), wait)
			}
			if wait > 0 {
				if wait > authorization.AskWindow || len(within(now.Add(wait-1))) < authorization.MaxAsked || len(within(now.Add(wait))) >= authorization.MaxAsked {
					t.Fatalf("%v is not how long to wait", wait)
				}
				continue
			}
			admitted = append(admitted, now)
		}
	})
}
