package identity_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"verbatim.internal/pkg/domain/identity"
)

func TestPrincipalsAreValidated(t *testing.T) {
	t.Parallel()
	long, tooLong := strings.Repeat("é", 191), strings.Repeat("é", 192)
	hundred := slices.Repeat([]string{"r"}, 100)
	for name, tc := range map[string]struct {
		p  identity.Principal
		ok bool
	}{
		"an id alone":           {identity.Principal{ID: "a"}, true},
		"all":                   {identity.Principal{ID: "a", Tenant: "b", Roles: []string{"c"}, Audience: "d", Channel: "e"}, true},
		"191 characters each":   {identity.Principal{ID: long, Tenant: long, Roles: []string{long}, Audience: long, Channel: long}, true},
		"100 roles":             {identity.Principal{ID: "a", Roles: hundred}, true},
		"no id":                 {identity.Principal{Tenant: "b"}, false},
		"long id":               {identity.Principal{ID: tooLong}, false},
		"long tenant":           {identity.Principal{ID: "a", Tenant: tooLong}, false},
		"long role":             {identity.Principal{ID: "a", Roles: []string{"c", tooLong}}, false},
		"long audience":         {identity.Principal{ID: "a", Audience: tooLong}, false},
		"long channel":          {identity.Principal{ID: "a", Channel: tooLong}, false},
		"an empty role":         {identity.Principal{ID: "a", Roles: []string{"c", ""}}, false},
		"101 roles":             {identity.Principal{ID: "a", Roles: append(hundred[:100:100], "r")}, false},
		"an id that is no text": {identity.Principal{ID: "\xff"}, false},
		"a role that is no text": {
			identity.Principal{ID: "a", Roles: []string{"\xc3"}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := tc.p.Validate(); (err == nil) != tc.ok || !tc.ok && !errors.Is(err, identity.ErrPrincipal) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPrincipalsComeBackAsTheyWereStored(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]identity.Principal{
		`{"id":"operator-7"}`: {ID: "operator-7"},
		`{"id":"a","tenant":"b","roles":["z","a"],"audience":"d","channel":"e"}`: {
			ID: "a", Tenant: "b", Roles: []string{"z", "a"}, Audience: "d", Channel: "e",
		},
		`{"id":"<é&😀>\"\\\n` + "\u2028" + `"}`: {ID: "<é&😀>\"\\\n\u2028"},
	} {
		data, err := p.Marshal()
		if err != nil || string(data) != want {
			t.Errorf("got %s, %v; want %s", data, err, want)
		}
		back, err := identity.ParsePrincipal(data)
		if err != nil || !reflect.DeepEqual(back, p) {
			t.Errorf("%s came back as %+v, %v", data, back, err)
		}
	}
}

func TestParsingAPrincipalIsStrict(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"empty": ``, "null": `null`, "no id": `{}`, "an array": `["a"]`, "a number": `{"id":1}`, "undeclared": `{"id":"a","token":"b"}`,
		"another case": `{"ID":"a"}`, "repeated": `{"id":"a","id":"a"}`, "trailing": `{"id":"a"} x`, "role of null": `{"id":"a","roles":[null]}`,
		"not UTF-8": "{\"id\":\"\xff\"}", "lone surrogate": `{"id":"\ud800"}`,
	} {
		if p, err := identity.ParsePrincipal([]byte(in)); !errors.Is(err, identity.ErrPrincipal) {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
	}
}

func FuzzParsePrincipal(f *testing.F) {
	f.Add([]byte(`{"id":"operator-7","tenant":"store-a","roles":["manager"]}`))
	f.Add([]byte(`{"id":"\ud83d\ude00","roles":[],"audience":"","channel":"agent:crm"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := identity.ParsePrincipal(data)
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("accepted, but: %v", err)
		}
		stored, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := identity.ParsePrincipal(stored)
		if err != nil || !reflect.DeepEqual(back, p) {
			t.Fatalf("%s came back as %+v, %v", stored, back, err)
		}
		if again, err := back.Marshal(); err != nil || !bytes.Equal(again, stored) {
			t.Errorf("%s changed to %s, %v", stored, again, err)
		}
	})
}
