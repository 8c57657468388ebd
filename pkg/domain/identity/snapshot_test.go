package identity_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"verbatim.internal/pkg/domain/identity"
)

func person() identity.Session {
	return identity.Session{
		ID: "123e4567-e89b-42d3-a456-426614174001", ClientAppID: "example-business",
		Principal: identity.Principal{
			ID: "operator-7", Tenant: "store-ä", Roles: []string{"manager", "buyer"}, Audience: "staff", Channel: "desk",
		},
		OnBehalfOf: "store-a:operator-7", AllowedRoutes: []string{"orders"}, RefreshExpiresAt: instant.Add(time.Hour),
	}
}

func snapshotOf(t *testing.T, s identity.Session) identity.Snapshot {
	t.Helper()
	snapshot, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// The golden value is what sha256sum says of the text. A change of it means
// that every member confirmed so far would be refused.
func TestSnapshotIsTheHashOfRFC8785Bytes(t *testing.T) {
	t.Parallel()
	const golden = "d338deb889b8f8546696ab04bb31335ed9a5df48dccaeb55d5a9e8d29dc38518"
	const text = `{"client_app_id":"example-business","on_behalf_of":"store-a:operator-7",` +
		`"principal":{"audience":"staff","channel":"desk","id":"operator-7","roles":["manager","buyer"],"tenant":"store-ä"},` +
		`"session_id":"123e4567-e89b-42d3-a456-426614174001"}`
	got := snapshotOf(t, person())
	if hex.EncodeToString(got[:]) != golden {
		t.Errorf("got %x", got)
	}
	if got != identity.Snapshot(sha256.Sum256([]byte(text))) {
		t.Error("not the hash of the RFC 8785 text")
	}

	bare := identity.Session{ID: person().ID, ClientAppID: "crm-demo", Principal: identity.Principal{ID: "<a>"}}
	const bareText = `{"client_app_id":"crm-demo","on_behalf_of":"","principal":{"id":"<a>"},"session_id":"123e4567-e89b-42d3-a456-426614174001"}`
	if snapshotOf(t, bare) != identity.Snapshot(sha256.Sum256([]byte(bareText))) {
		t.Error("absent members of a principal are part of the hash")
	}
}

func TestSnapshotChangesExactlyWithItsInputs(t *testing.T) {
	t.Parallel()
	revoked := instant
	for name, tc := range map[string]struct {
		change  func(*identity.Session)
		changes bool
	}{
		"session":                          {func(s *identity.Session) { s.ID = "123e4567-e89b-42d3-a456-426614174002" }, true},
		"client":                           {func(s *identity.Session) { s.ClientAppID = "crm-demo" }, true},
		"on behalf of":                     {func(s *identity.Session) { s.OnBehalfOf = "" }, true},
		"principal id":                     {func(s *identity.Session) { s.Principal.ID = "operator-8" }, true},
		"principal tenant":                 {func(s *identity.Session) { s.Principal.Tenant = "" }, true},
		"principal audience":               {func(s *identity.Session) { s.Principal.Audience = "all" }, true},
		"principal channel":                {func(s *identity.Session) { s.Principal.Channel = "" }, true},
		"a role less":                      {func(s *identity.Session) { s.Principal.Roles = s.Principal.Roles[:1] }, true},
		"order of roles":                   {func(s *identity.Session) { s.Principal.Roles = []string{"buyer", "manager"} }, true},
		"a value in the next":              {func(s *identity.Session) { s.Principal.Tenant, s.Principal.Audience = "staff", "store-ä" }, true},
		"Unicode normal form":              {func(s *identity.Session) { s.Principal.Tenant = "store-a\u0308" }, true},
		"allowed routes":                   {func(s *identity.Session) { s.AllowedRoutes = []string{"*"} }, false},
		"refresh expiry":                   {func(s *identity.Session) { s.RefreshExpiresAt = instant }, false},
		"revocation":                       {func(s *identity.Session) { s.RevokedAt = &revoked }, false},
		"equal, but other roles in memory": {func(s *identity.Session) { s.Principal.Roles = append([]string{}, s.Principal.Roles...) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := person()
			before := snapshotOf(t, s)
			tc.change(&s)
			if got := snapshotOf(t, s) != before; got != tc.changes {
				t.Errorf("the snapshot changed: %v", got)
			}
		})
	}
}

func TestSnapshotOfWhatIsNoTextFails(t *testing.T) {
	t.Parallel()
	s := person()
	s.OnBehalfOf = "\xff"
	if _, err := s.Snapshot(); err == nil {
		t.Error("accepted")
	}
}
