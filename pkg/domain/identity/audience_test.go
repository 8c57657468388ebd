package identity_test

import (
	"testing"

	"verbatim.internal/pkg/domain/identity"
)

func TestAudiencePolicies(t *testing.T) {
	t.Parallel()
	full := identity.Principal{ID: "operator-7", Tenant: "store-a", Roles: []string{"buyer", "manager"}, Audience: "staff", Channel: "desk"}
	bare := identity.Principal{ID: "operator-8"}
	other := []string{"other"}
	for name, tc := range map[string]struct {
		policy     identity.Audience
		full, bare bool // admitted
	}{
		"absent":             {identity.Audience{}, true, true},
		"enabled, but empty": {identity.Audience{Enabled: true}, true, true},
		"disabled, whatever the lists say": {
			identity.Audience{Clients: other, Channels: other, Tenants: other, Roles: other, Principals: other, Audiences: other}, true, true,
		},
		"client":           {identity.Audience{Enabled: true, Clients: []string{"other", "crm-demo"}}, true, true},
		"another client":   {identity.Audience{Enabled: true, Clients: other}, false, false},
		"every client":     {identity.Audience{Enabled: true, Clients: []string{"other", "*"}}, true, true},
		"channel":          {identity.Audience{Enabled: true, Channels: []string{"desk"}}, true, false},
		"agents' channel":  {identity.Audience{Enabled: true, Channels: []string{"agent:crm-demo"}}, false, true},
		"others' channel":  {identity.Audience{Enabled: true, Channels: []string{"agent:other"}}, false, false},
		"every channel":    {identity.Audience{Enabled: true, Channels: []string{"*"}}, true, true},
		"tenant":           {identity.Audience{Enabled: true, Tenants: []string{"store-a"}}, true, false},
		"another tenant":   {identity.Audience{Enabled: true, Tenants: []string{"store-b", "STORE-A", "store-a "}}, false, false},
		"every tenant":     {identity.Audience{Enabled: true, Tenants: []string{"*"}}, true, true},
		"an empty tenant":  {identity.Audience{Enabled: true, Tenants: []string{""}}, false, false},
		"first role":       {identity.Audience{Enabled: true, Roles: []string{"buyer"}}, true, false},
		"last role":        {identity.Audience{Enabled: true, Roles: []string{"x", "manager"}}, true, false},
		"another role":     {identity.Audience{Enabled: true, Roles: other}, false, false},
		"every role":       {identity.Audience{Enabled: true, Roles: []string{"*"}}, true, true},
		"principal":        {identity.Audience{Enabled: true, Principals: []string{"operator-7"}}, true, false},
		"other principal":  {identity.Audience{Enabled: true, Principals: other}, false, false},
		"every principal":  {identity.Audience{Enabled: true, Principals: []string{"*"}}, true, true},
		"audience":         {identity.Audience{Enabled: true, Audiences: []string{"staff"}}, true, false},
		"another audience": {identity.Audience{Enabled: true, Audiences: other}, false, false},
		"every audience":   {identity.Audience{Enabled: true, Audiences: []string{"*"}}, true, true},
		"a star inside is no pattern": {
			identity.Audience{Enabled: true, Tenants: []string{"store-*"}}, false, false,
		},
		"all lists at once": {identity.Audience{
			Enabled: true, Clients: []string{"crm-demo"}, Channels: []string{"desk"}, Tenants: []string{"store-a"},
			Roles: []string{"manager"}, Principals: []string{"operator-7"}, Audiences: []string{"staff"},
		}, true, false},
		"all but one": {identity.Audience{
			Enabled: true, Clients: []string{"crm-demo"}, Channels: []string{"desk"}, Tenants: []string{"store-a"},
			Roles: []string{"manager"}, Principals: other, Audiences: []string{"staff"},
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.policy.Admits("crm-demo", full); got != tc.full {
				t.Errorf("a full principal is admitted: %v", got)
			}
			if got := tc.policy.Admits("crm-demo", bare); got != tc.bare {
				t.Errorf("a bare principal is admitted: %v", got)
			}
		})
	}
}
