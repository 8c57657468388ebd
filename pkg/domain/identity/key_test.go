package identity_test

import (
	"regexp"
	"strings"
	"testing"

	"verbatim.internal/pkg/domain/identity"
)

var keyPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{1,63}\z`)

func TestResourceKeys(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"ab", "00", "zz", "99", "a-", "a_", "crm-demo", "orders_2", "automatic", "aut", strings.Repeat("a", 64)} {
		if !identity.IsResourceKey(in) || !identity.IsRouteKey(in) {
			t.Errorf("%q: refused", in)
		}
	}
	for name, in := range map[string]string{
		"empty": "", "one character": "a", "65 characters": strings.Repeat("a", 65),
		"starts with a hyphen": "-a", "starts with an underscore": "_a",
		"upper case": "Orders", "upper case inside": "oRders", "dot": "a.b", "colon": "a:b", "slash": "a/b", "star": "*",
		"space": "a b", "newline at the end": "orders\n", "zero byte": "a\x00",
		"before a": "a`", "after z": "a{", "before 0": "a/", "after 9": "a:", "e acute": "é", "kelvin sign": "aK",
	} {
		if identity.IsResourceKey(in) || identity.IsRouteKey(in) {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAutoNamesAClientButNoRoute(t *testing.T) {
	t.Parallel()
	if !identity.IsResourceKey("auto") {
		t.Error("no client may be called auto")
	}
	if identity.IsRouteKey("auto") {
		t.Error("a route may be called auto")
	}
}

func FuzzIsResourceKey(f *testing.F) {
	f.Add("orders")
	f.Add("auto")
	f.Add("-a")
	f.Add("a\n")
	f.Fuzz(func(t *testing.T, in string) {
		want := keyPattern.MatchString(in)
		if got := identity.IsResourceKey(in); got != want {
			t.Errorf("%q: a resource key is %v", in, got)
		}
		if got := identity.IsRouteKey(in); got != (want && in != "auto") {
			t.Errorf("%q: a route key is %v", in, got)
		}
	})
}
