package httpapi_test

import (
	"errors"
	"strings"
	"testing"

	"verbatim.internal/pkg/contracts/httpapi"
)

func TestAuthorizationRequestsAreBounded(t *testing.T) {
	t.Parallel()
	var r httpapi.AuthorizationRequest
	list := func(n int) []byte {
		return []byte(`{"requested_routes":[` + strings.TrimSuffix(strings.Repeat(`"",`, n), ",") + `]}`)
	}
	if err := httpapi.Decode(list(64), &r); err != nil || len(r.RequestedRoutes) != 64 {
		t.Errorf("got %d, %v", len(r.RequestedRoutes), err)
	}
	for _, in := range []string{string(list(65)), `{"requested_routes":"orders"}`, `{"requested_routes":{}}`, `{"requested_routes":null}`, `{"requested_routes":[1]}`, `{"scope":"x"}`, `{"state":1}`, `[]`} {
		if err := httpapi.Decode([]byte(in), &r); !errors.Is(err, httpapi.ErrInvalid) {
			t.Errorf("%.40s: got %v", in, err)
		}
	}
}

func TestApprovalsNameThePrincipalInFull(t *testing.T) {
	t.Parallel()
	for in, ok := range map[string]bool{
		`{"principal":{"id":"o","roles":[]},"on_behalf_of":"x","allowed_routes":["orders"]}`:                                            true,
		`{"principal":{"id":"o","tenant":"t","roles":["r"],"audience":"a","channel":"c"},"on_behalf_of":"x","allowed_routes":["o"]}`:    true,
		`{"principal":{"id":"o"},"on_behalf_of":"x","allowed_routes":["orders"]}`:                                                       false,
		`{"principal":{"id":"o","roles":null},"on_behalf_of":"x","allowed_routes":["orders"]}`:                                          false,
		`{"principal":{"id":"o","roles":"r"},"on_behalf_of":"x","allowed_routes":["orders"]}`:                                           false,
		`{"principal":{"id":"o","roles":[],"tenant":""},"on_behalf_of":"x","allowed_routes":["orders"]}`:                                false,
		`{"principal":{"id":"o","roles":[],"audience":""}}`:                                                                             false,
		`{"principal":{"id":"o","roles":[],"channel":""}}`:                                                                              false,
		`{"principal":{"id":"o","roles":[],"email":"e"}}`:                                                                               false,
		`{"on_behalf_of":"x","allowed_routes":["orders"]}`:                                                                              false,
		`{"principal":{"id":"o","roles":[` + strings.TrimSuffix(strings.Repeat(`"r",`, 101), ",") + `]},"allowed_routes":["o"]}`:        false,
		`{"principal":{"id":"o","roles":[]},"allowed_routes":[` + strings.TrimSuffix(strings.Repeat(`"r",`, 65), ",") + `]}`:            false,
		`{"principal":{"id":"o","roles":[]},"on_behalf_of":"x","allowed_routes":["orders"],"session_id":"123e4567-e89b-42d3-a456-426"}`: false,
	} {
		if a, err := httpapi.DecodeApproval([]byte(in)); (err == nil) != ok || err != nil && !errors.Is(err, httpapi.ErrInvalid) {
			t.Errorf("%.60s: got %+v, %v", in, a, err)
		}
	}
}

func TestTheGrantTypeIsReadBesideWhateverElseIsThere(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"grant_type":"password","username":null,"x":[{}]}`: "password",
		`{"grant_type":""}`:                              "",
		`{"grant_type":"authorization_code"}`:            httpapi.GrantAuthorizationCode,
		`{"x":1,"grant_type":"refresh_token","Code":[]}`: httpapi.GrantRefreshToken,
	} {
		if got, err := httpapi.DecodeGrantType([]byte(in)); err != nil || got != want {
			t.Errorf("%s: got %q, %v", in, got, err)
		}
	}
	for _, in := range []string{
		``, `{}`, `[]`, `null`, `"authorization_code"`, `{"grant_type":null}`, `{"grant_type":1}`, `{"grant_type":["refresh_token"]}`, `{"Grant_Type":"refresh_token"}`,
		`{"grant_type":"refresh_token","grant_type":"refresh_token"}`, `{"grant_type":"refresh_token"}x`, `grant_type=refresh_token`, `{"x":{"a":1,"a":2},"grant_type":"refresh_token"}`,
	} {
		if _, err := httpapi.DecodeGrantType([]byte(in)); !errors.Is(err, httpapi.ErrInvalid) {
			t.Errorf("%s: got %v", in, err)
		}
	}
}

func TestGrantsHaveExactlyTheirFields(t *testing.T) {
	t.Parallel()
	code := map[string]string{"grant_type": `"authorization_code"`, "client_app_id": `"shop"`, "code": `"c"`, "redirect_uri": `"r"`, "code_verifier": `"v"`}
	refresh := map[string]string{"grant_type": `"refresh_token"`, "client_app_id": `"shop"`, "refresh_token": `"t"`}
	revocation := map[string]string{"client_app_id": `"shop"`, "refresh_token": `"t"`}
	for name, tc := range map[string]struct {
		fields map[string]string
		decode func([]byte) error
	}{
		"code": {code, func(b []byte) error {
			g, err := httpapi.DecodeCodeGrant(b)
			if err == nil && g != (httpapi.CodeGrant{ClientAppID: "shop", Code: "c", RedirectURI: "r", CodeVerifier: "v"}) {
				t.Errorf("got %+v", g)
			}
			return err
		}},
		"refresh": {refresh, func(b []byte) error {
			g, err := httpapi.DecodeRefreshGrant(b)
			if err == nil && g != (httpapi.RefreshGrant{ClientAppID: "shop", RefreshToken: "t"}) {
				t.Errorf("got %+v", g)
			}
			return err
		}},
		"revocation": {revocation, func(b []byte) error {
			_, err := httpapi.DecodeRevocation(b)
			return err
		}},
	} {
		body := func(without, instead string) []byte {
			var members []string
			for field, value := range tc.fields {
				if field != without {
					members = append(members, `"`+field+`":`+value)
				}
			}
			if instead != "" {
				members = append(members, instead)
			}
			return []byte("{" + strings.Join(members, ",") + "}")
		}
		if err := tc.decode(body("", "")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := tc.decode(body("", `"scope":"x"`)); !errors.Is(err, httpapi.ErrInvalid) {
			t.Errorf("%s with another field: got %v", name, err)
		}
		for field := range tc.fields {
			for _, instead := range []string{"", `"` + field + `":null`, `"` + field + `":1`} {
				if err := tc.decode(body(field, instead)); !errors.Is(err, httpapi.ErrInvalid) {
					t.Errorf("%s with %s in place of %s: got %v", name, instead, field, err)
				}
			}
		}
	}
}
