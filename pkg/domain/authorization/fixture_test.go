package authorization_test

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

const (
	askID     = identity.UUID("323e4567-e89b-42d3-a456-426614174001")
	sessionID = identity.UUID("123e4567-e89b-42d3-a456-426614174001")
	redirect  = "http://127.0.0.1:4711/callback?x=1"
)

var (
	instant  = time.Date(2030, time.January, 2, 3, 4, 5, 0, time.UTC)
	verifier = strings.Repeat("v", 43)
	codeHash = sha256.Sum256([]byte("bhc_"))
)

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// fields returns a request that is right.
func fields() authorization.Fields {
	return authorization.Fields{
		ClientAppID: "shop", RedirectURI: redirect, State: "state-of-the-agent", RequestedRoutes: []string{"orders", "returns"},
		DeviceLabel: "Laptop of Ä", CodeChallenge: challengeOf(verifier), CodeChallengeMethod: "S256",
	}
}

func shop() *identity.Client {
	return &identity.Client{AppID: "shop", Name: "Shop", AllowedRoutes: []string{"orders", "returns", "stock"}, Enabled: true}
}

func grant(routes ...string) authorization.Grant {
	g, err := authorization.NewGrant(identity.Principal{ID: "operator-7", Roles: []string{}}, "store-a:operator-7", routes)
	if err != nil {
		panic(err) // a mistake in the test
	}
	return g
}

func asked(t *testing.T) *authorization.Authorization {
	t.Helper()
	r, err := authorization.NewRequest(fields())
	if err != nil {
		t.Fatal(err)
	}
	return r.Open(askID, instant)
}

func approved(t *testing.T) *authorization.Authorization {
	t.Helper()
	a := asked(t)
	if err := a.Approve(*shop(), grant("orders"), codeHash, instant); err != nil {
		t.Fatal(err)
	}
	return a
}

func wantCode(t *testing.T, err error, code refusal.Code) {
	t.Helper()
	if refusal.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}
