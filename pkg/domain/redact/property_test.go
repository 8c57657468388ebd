package redact_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/redact"
)

// Pieces that rules act on, put together in any order, are redacted once and for all.
func TestRedactingIsIdempotent(t *testing.T) {
	t.Parallel()
	pieces := append(ordinary(), "password", "token", "Authorization", "Bearer ", "Basic ", "Cookie", "eyJ", "sk-", "AKIA", "//", "://", "@", ":", "=", "\"", "'", "\\",
		"\\\"", "\n", " ", "{", "}", "[", "]", "<", ">", "--", ",", ";", "&", "，", "：", "密码", "hunter2", "REDACTED]", "[REDACTED")
	pieces = append(pieces, slices.Sorted(maps.Values(standalone()))...)
	pieces = append(pieces, slices.Sorted(maps.Keys(within()))...)
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces), rapid.String(), rapid.StringN(0, 3, 3)), 0, 12).Draw(t, "parts")
		check(t, strings.Join(parts, ""))
	})
}

// A secret goes wherever it stands among words, and the words stay.
func TestWordsAroundASecretStay(t *testing.T) {
	t.Parallel()
	secrets := slices.Sorted(maps.Values(standalone()))
	words := rapid.SliceOf(rapid.StringMatching(`[a-z]{1,12}|[0-9]{1,3}|[A-Z][a-z]{2,9}|[一-龥]{1,5}|[א-ת]{1,5}|[.,;!?]`))
	rapid.Check(t, func(t *rapid.T) {
		before := strings.Join(words.Draw(t, "before"), " ")
		after := strings.Join(words.Draw(t, "after"), " ")
		secret := rapid.SampledFrom(secrets).Draw(t, "secret")
		if got, want := check(t, before+" "+secret+" "+after), before+" "+mark+" "+after; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Names of things are kept: UUIDs, digests, numbers, times, keys of clients and routes.
func TestNamesStay(t *testing.T) {
	t.Parallel()
	names := rapid.OneOf(
		rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`),
		rapid.StringMatching(`(sha256:)?[0-9a-f]{64}`),
		rapid.StringMatching(`[0-9a-f]{40}`),
		rapid.StringMatching(`-?[0-9]{1,15}(\.[0-9]{1,6})?`),
		rapid.StringMatching(`20[0-9]{2}-0[1-9]-1[0-9]T0[0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z`),
		rapid.StringMatching(`[a-z][a-z0-9_]{0,20}(\.[a-z][a-z0-9_]{0,20}){1,3}`),
		rapid.StringMatching(`[a-z0-9]{2,20}(-[a-z0-9]{1,20}){0,4}`).Filter(func(s string) bool { return !strings.HasPrefix(s, "sk-") }),
		rapid.StringMatching(`(/[a-z][a-z0-9_.-]{0,20}|/\{[a-z_]{1,20}\}){1,6}`),
		rapid.StringMatching(`[a-z][a-z0-9.]{0,20}@[a-z]{1,20}\.(com|example)`),
	)
	rapid.Check(t, func(t *rapid.T) {
		name := names.Draw(t, "name")
		if redact.IsSecret(name) {
			t.Errorf("%q is taken for a secret", name)
		}
	})
}

// A random value of 43 characters is a secret where a text calls it one, however it is spelled.
func TestAssignedValuesGo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{
			"password", "PASSWORD", "Passwd", "db_password", "dbPassword", "passphrase", "secret", "client-secret", "CLIENT_SECRET", "token", "accessToken",
			"X-Auth-Token", "api_key", "apiKey", "x-api-key", "private key", "AccountKey", "SharedAccessKey", "secret access key", "DB_PASS",
		}).Draw(t, "name")
		forms := rapid.SampledFrom([]string{
			"N=V", "N = V", "N: V", "N:V", "N='V'", `N="V"`, `"N":"V"`, `"N": "V"`, `'N': 'V'`, `\"N\":\"V\"`, `"N" => "V"`, "?N=V&x=1", "N := `V`", "a=1;N=V;b=2",
			"{N: V}", "(N=V)", "{N:V, x:1}", "export N=V\n", "- N: V\n", "N：V",
		}).Draw(t, "form")
		value := rapid.StringMatching(`[A-Z][0-9][a-z][A-Za-z0-9_-]{40}`).Draw(t, "value")
		form := func(value string) string {
			return strings.NewReplacer("N", name, "V", value).Replace(forms)
		}
		if got := check(t, form(value)); got != form(mark) {
			t.Errorf("got %q, want %q", got, form(mark))
		}
	})
}

func FuzzText(f *testing.F) {
	for _, in := range ordinary() {
		f.Add(in)
	}
	for _, in := range standalone() {
		f.Add(in)
	}
	for in := range within() {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := check(t, in)
		if in == out {
			return
		}
		// What is left is the text's own, in its order, around the marks.
		rest := in
		for part := range strings.SplitSeq(out, redact.Marker) {
			at := strings.Index(rest, part)
			if at < 0 {
				t.Fatalf("%q: %q is not of the text", in, part)
			}
			rest = rest[at+len(part):]
		}
	})
}
