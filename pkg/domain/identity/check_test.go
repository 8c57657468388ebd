package identity_test

import (
	"fmt"
	"testing"
	"time"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

var (
	instant = time.Date(2030, time.January, 2, 3, 4, 5, 0, time.UTC)
	orders  = identity.Binding{ClientAppID: "example-business", RouteKey: "orders"}
)

// goodFacts pass the member check for orders.
func goodFacts() identity.Facts {
	s := person()
	return identity.Facts{
		Session: &s,
		Client:  &identity.Client{AppID: "example-business", Name: "Example", AllowedRoutes: []string{"returns", "orders"}, Enabled: true},
		Route:   &identity.Route{RouteKey: "orders", Enabled: true, AgentAccess: true},
	}
}

func TestMemberCheckPasses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*identity.Facts){
		"as it is":             func(*identity.Facts) {},
		"client allows all":    func(f *identity.Facts) { f.Client.AllowedRoutes = []string{"*"} },
		"session allows all":   func(f *identity.Facts) { f.Session.AllowedRoutes = []string{"x1", "*"} },
		"a nanosecond is left": func(f *identity.Facts) { f.Session.RefreshExpiresAt = instant.Add(1) },
		"the policy admits": func(f *identity.Facts) {
			f.Route.Audience = identity.Audience{Enabled: true, Tenants: []string{"store-ä"}}
		},
		"the policy is disabled": func(f *identity.Facts) { f.Route.Audience = identity.Audience{Tenants: []string{"other"}} },
		"another display name":   func(f *identity.Facts) { f.Client.Name = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := goodFacts()
			frozen := snapshotOf(t, *f.Session)
			change(&f)
			if err := identity.Check(orders, f, nil, instant); err != nil {
				t.Errorf("not confirmed: %v", err)
			}
			if err := identity.Check(orders, f, &frozen, instant); err != nil {
				t.Errorf("confirmed: %v", err)
			}
		})
	}
}

// Every condition alone refuses, with one answer for all of them.
func TestEachConditionOfTheMemberCheckAloneRefuses(t *testing.T) {
	t.Parallel()
	later := instant.Add(time.Hour)
	for name, change := range map[string]func(*identity.Facts){
		"no session":                 func(f *identity.Facts) { f.Session = nil },
		"no client":                  func(f *identity.Facts) { f.Client = nil },
		"no route":                   func(f *identity.Facts) { f.Route = nil },
		"revoked":                    func(f *identity.Facts) { f.Session.RevokedAt = &instant },
		"revoked, by a clock ahead":  func(f *identity.Facts) { f.Session.RevokedAt = &later },
		"refresh expired":            func(f *identity.Facts) { f.Session.RefreshExpiresAt = instant.Add(-time.Hour) },
		"refresh expires right now":  func(f *identity.Facts) { f.Session.RefreshExpiresAt = instant },
		"refresh expiry absent":      func(f *identity.Facts) { f.Session.RefreshExpiresAt = time.Time{} },
		"session of another client":  func(f *identity.Facts) { f.Session.ClientAppID = "crm-demo" },
		"facts of another client":    func(f *identity.Facts) { f.Client.AppID = "crm-demo" },
		"facts of another route":     func(f *identity.Facts) { f.Route.RouteKey = "returns" },
		"client disabled":            func(f *identity.Facts) { f.Client.Enabled = false },
		"route disabled":             func(f *identity.Facts) { f.Route.Enabled = false },
		"route without agent access": func(f *identity.Facts) { f.Route.AgentAccess = false },
		"client does not allow":      func(f *identity.Facts) { f.Client.AllowedRoutes = []string{"returns"} },
		"client allows none":         func(f *identity.Facts) { f.Client.AllowedRoutes = nil },
		"session does not allow":     func(f *identity.Facts) { f.Session.AllowedRoutes = []string{"returns", "order", "orders2"} },
		"session allows none":        func(f *identity.Facts) { f.Session.AllowedRoutes = nil },
		"policy of clients": func(f *identity.Facts) {
			f.Route.Audience = identity.Audience{Enabled: true, Clients: []string{"crm-demo"}}
		},
		"policy of channels": func(f *identity.Facts) {
			f.Route.Audience = identity.Audience{Enabled: true, Channels: []string{"agent:example-business"}}
		},
		"policy of tenants": func(f *identity.Facts) {
			f.Route.Audience = identity.Audience{Enabled: true, Tenants: []string{"store-b"}}
		},
		"policy of roles": func(f *identity.Facts) { f.Route.Audience = identity.Audience{Enabled: true, Roles: []string{"owner"}} },
		"policy of principals": func(f *identity.Facts) {
			f.Route.Audience = identity.Audience{Enabled: true, Principals: []string{"operator-8"}}
		},
		"policy of audiences": func(f *identity.Facts) {
			f.Route.Audience = identity.Audience{Enabled: true, Audiences: []string{"public"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := goodFacts()
			frozen := snapshotOf(t, *f.Session)
			change(&f)
			wantRefused(t, identity.Check(orders, f, nil, instant))
			wantRefused(t, identity.Check(orders, f, &frozen, instant))
		})
	}
}

func TestAChangedIdentityRefusesOnlyTheConfirmed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*identity.Session){
		"principal":    func(s *identity.Session) { s.Principal.Tenant = "store-b" },
		"roles":        func(s *identity.Session) { s.Principal.Roles = append(s.Principal.Roles, "auditor") },
		"on behalf of": func(s *identity.Session) { s.OnBehalfOf = "store-b:operator-7" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := goodFacts()
			frozen := snapshotOf(t, *f.Session)
			change(f.Session)
			if err := identity.Check(orders, f, nil, instant); err != nil {
				t.Errorf("not confirmed: %v", err)
			}
			wantRefused(t, identity.Check(orders, f, &frozen, instant))
		})
	}
}

func wantRefused(t *testing.T, err error) {
	t.Helper()
	if refusal.CodeOf(err) != refusal.AuthorizationInvalid {
		t.Errorf("got %v", err)
		return
	}
	if err.Error() != identity.Check(orders, identity.Facts{}, nil, instant).Error() {
		t.Error("the answer tells which condition failed")
	}
}

// A member is held to one binding: its session, client and route must all stand.
func ExampleCheck() {
	now := time.Date(2030, time.January, 2, 3, 4, 5, 0, time.UTC)
	session := identity.Session{
		ID: "123e4567-e89b-42d3-a456-426614174001", ClientAppID: "crm-demo", Principal: identity.Principal{ID: "operator-7"},
		AllowedRoutes: []string{"customers"}, RefreshExpiresAt: now.Add(time.Hour),
	}
	facts := identity.Facts{
		Session: &session,
		Client:  &identity.Client{AppID: "crm-demo", AllowedRoutes: []string{"*"}, Enabled: true},
		Route:   &identity.Route{RouteKey: "customers", Enabled: true, AgentAccess: true},
	}
	binding := identity.Binding{ClientAppID: "crm-demo", RouteKey: "customers"}
	frozen, err := session.Snapshot() // taken when the member confirms
	if err != nil {
		return
	}

	fmt.Println("unchanged:", identity.Check(binding, facts, &frozen, now) == nil)
	session.Principal.Roles = []string{"manager"}
	fmt.Println("another identity:", refusal.CodeOf(identity.Check(binding, facts, &frozen, now)))
	// Output:
	// unchanged: true
	// another identity: conversation_audit_authorization_invalid
}
