package authorization_test

import (
	"strings"
	"testing"
	"time"

	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

func TestGrantsAreValidated(t *testing.T) {
	t.Parallel()
	full := identity.Principal{ID: "operator-7", Tenant: "store ä", Roles: []string{"buyer"}, Audience: "staff", Channel: "desk"}
	long := strings.Repeat("é", 192)
	with := func(change func(p *identity.Principal)) identity.Principal {
		p := full
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		principal  identity.Principal
		onBehalfOf string
		routes     []string
		want       refusal.Code
	}{
		"full":                     {full, "a:b", []string{"orders"}, ""},
		"bare":                     {identity.Principal{ID: "o"}, "x", []string{"orders"}, ""},
		"the longest":              {full, long[2:], routes(64), ""},
		"no id":                    {identity.Principal{}, "x", []string{"orders"}, refusal.InvalidRequest},
		"a long tenant":            {with(func(p *identity.Principal) { p.Tenant = long }), "x", []string{"orders"}, refusal.InvalidRequest},
		"an empty role":            {with(func(p *identity.Principal) { p.Roles = []string{""} }), "x", []string{"orders"}, refusal.InvalidRequest},
		"a control in a role":      {with(func(p *identity.Principal) { p.Roles = []string{"a\x00"} }), "x", []string{"orders"}, refusal.InvalidRequest},
		"a control in the channel": {with(func(p *identity.Principal) { p.Channel = "a\n" }), "x", []string{"orders"}, refusal.InvalidRequest},
		"on behalf of nobody":      {full, "", []string{"orders"}, refusal.InvalidRequest},
		"a long on behalf of":      {full, long, []string{"orders"}, refusal.InvalidRequest},
		"a NUL in on behalf of":    {full, "a\x00", []string{"orders"}, refusal.InvalidRequest},
		"no text":                  {full, "\xff", []string{"orders"}, refusal.InvalidRequest},
		"no routes":                {full, "x", nil, refusal.InvalidRequest},
		"65 routes":                {full, "x", routes(65), refusal.InvalidRequest},
		"a star":                   {full, "x", []string{"*"}, refusal.InvalidRequest},
		"auto":                     {full, "x", []string{"auto"}, refusal.InvalidRequest},
		"a route twice":            {full, "x", []string{"orders", "orders"}, refusal.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := authorization.NewGrant(tc.principal, tc.onBehalfOf, tc.routes)
			wantCode(t, err, tc.want)
			if err == nil && (g.Principal.ID != tc.principal.ID || g.OnBehalfOf != tc.onBehalfOf || len(g.AllowedRoutes) != len(tc.routes)) {
				t.Errorf("got %+v", g)
			}
		})
	}
}

func TestStatusFollowsTime(t *testing.T) {
	t.Parallel()
	denied, consumed := asked(t), approved(t)
	if err := denied.Deny(instant); err != nil {
		t.Fatal(err)
	}
	if err := consumed.Exchange("shop", redirect, verifier, sessionID, instant); err != nil {
		t.Fatal(err)
	}
	const never = 1000 * time.Hour
	for name, tc := range map[string]struct {
		a       *authorization.Authorization
		first   authorization.Status
		expires time.Duration
	}{
		"asked":    {asked(t), authorization.Pending, 10 * time.Minute},
		"approved": {approved(t), authorization.Approved, 2 * time.Minute},
		"denied":   {denied, authorization.Denied, never},
		"consumed": {consumed, authorization.Consumed, never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, now := range []time.Time{instant, instant.Add(tc.expires - 1)} {
				if got := tc.a.Status(now); got != tc.first {
					t.Errorf("after %v: %s", now.Sub(instant), got)
				}
			}
			if got := tc.a.Status(instant.Add(tc.expires)); tc.expires != never && got != authorization.Expired {
				t.Errorf("in the end: %s", got)
			}
		})
	}
}

func TestAnAuthorizationIsDecidedOnceAndInTime(t *testing.T) {
	t.Parallel()
	decisions := map[string]func(a *authorization.Authorization, now time.Time) error{
		"approve": func(a *authorization.Authorization, now time.Time) error {
			return a.Approve(*shop(), grant("orders"), codeHash, now)
		},
		"deny": (*authorization.Authorization).Deny,
	}
	for first, decide := range decisions {
		for second, again := range decisions {
			a := asked(t)
			if err := decide(a, instant.Add(10*time.Minute-1)); err != nil {
				t.Fatalf("%s: %v", first, err)
			}
			before := *a.Decision
			for _, later := range []time.Duration{0, time.Hour} { // decided is said also when it is over
				if err := again(a, instant.Add(later)); refusal.CodeOf(err) != refusal.AuthorizationDecided {
					t.Errorf("%s after %s: got %v", second, first, err)
				}
			}
			if *a.Decision != before {
				t.Errorf("%s after %s changed the decision", second, first)
			}
		}
		a := asked(t)
		wantCode(t, decide(a, instant.Add(10*time.Minute)), refusal.AuthorizationExpired)
		if a.Decision != nil {
			t.Errorf("%s: too late, and decided", first)
		}
	}
}

func TestNoRouteBeyondRequestOrClientIsApproved(t *testing.T) {
	t.Parallel()
	everything, narrow := shop(), shop()
	everything.AllowedRoutes = []string{"*"}
	narrow.AllowedRoutes = []string{"orders"}
	for name, tc := range map[string]struct {
		client *identity.Client
		routes []string
		want   refusal.Code
	}{
		"all that was requested":             {shop(), []string{"returns", "orders"}, ""},
		"a part of it":                       {shop(), []string{"returns"}, ""},
		"the client allows all":              {everything, []string{"orders"}, ""},
		"not requested, but the client's":    {shop(), []string{"orders", "stock"}, refusal.RouteNotAllowed},
		"not requested, the client has all":  {everything, []string{"stock"}, refusal.RouteNotAllowed},
		"requested, but no more the client":  {narrow, []string{"orders", "returns"}, refusal.RouteNotAllowed},
		"requested, and the client's by now": {narrow, []string{"orders"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := asked(t)
			wantCode(t, a.Approve(*tc.client, grant(tc.routes...), codeHash, instant), tc.want)
			if (a.Decision == nil) != (tc.want != "") {
				t.Errorf("decided: %+v", a.Decision)
			}
		})
	}
}

func TestOnlyWhoAskedExchangesTheCodeOnceAndInTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		client, redirect, verifier string
		after                      time.Duration
	}{
		"another client":            {"other", redirect, verifier, 0},
		"another redirect":          {"shop", redirect + "&y=2", verifier, 0},
		"no redirect":               {"shop", "", verifier, 0},
		"another verifier":          {"shop", redirect, strings.Repeat("w", 43), 0},
		"no verifier":               {"shop", redirect, "", 0},
		"the challenge as verifier": {"shop", redirect, challengeOf(verifier), 0},
		"a verifier's beginning":    {"shop", redirect, verifier[1:], 0},
		"a longer verifier":         {"shop", redirect, verifier + "v", 0},
		"too late":                  {"shop", redirect, verifier, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := approved(t)
			wantCode(t, a.Exchange(tc.client, tc.redirect, tc.verifier, sessionID, instant.Add(tc.after)), refusal.InvalidGrant)
			if a.Decision.Approval.Consumption != nil {
				t.Fatal("a failed exchange consumed the code")
			}
			if err := a.Exchange("shop", redirect, verifier, sessionID, instant.Add(2*time.Minute-1)); err != nil {
				t.Fatal(err)
			}
			stored := *a.Decision.Approval.Consumption
			wantCode(t, a.Exchange("shop", redirect, verifier, askID, instant), refusal.InvalidGrant)
			if *a.Decision.Approval.Consumption != stored || stored.SessionID != sessionID {
				t.Error("a replayed code changed what it was consumed for")
			}
		})
	}
}

func TestVerifiersAreTakenByTheirShape(t *testing.T) {
	t.Parallel()
	for v, ok := range map[string]bool{
		strings.Repeat("v", 43): true, strings.Repeat("~", 128): true, "-._~" + strings.Repeat("9", 39): true,
		strings.Repeat("v", 42): false, strings.Repeat("v", 129): false, strings.Repeat("v", 42) + "+": false, strings.Repeat("é", 43): false,
	} {
		a := approved(t)
		a.Challenge = challengeOf(v)
		if err := a.Exchange("shop", redirect, v, sessionID, instant); (err == nil) != ok {
			t.Errorf("%q: got %v", v, err)
		}
	}
}

func TestNothingButAnApprovalIsExchanged(t *testing.T) {
	t.Parallel()
	denied := asked(t)
	if err := denied.Deny(instant); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]*authorization.Authorization{"pending": asked(t), "denied": denied} {
		if err := a.Exchange("shop", redirect, verifier, sessionID, instant); refusal.CodeOf(err) != refusal.InvalidGrant {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAnswersGoBackToTheAgentWithItsState(t *testing.T) {
	t.Parallel()
	a := asked(t)
	a.State = "a b&c=é"
	if got, want := a.CodeRedirect("bhc_x"), redirect+"&code=bhc_x&state=a%20b%26c%3D%C3%A9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := a.DeniedRedirect(), redirect+"&error=access_denied&state=a%20b%26c%3D%C3%A9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
