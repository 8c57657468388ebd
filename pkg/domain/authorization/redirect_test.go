package authorization_test

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/authorization"
)

func TestRedirectsToTheLoopbackAreRead(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"http://127.0.0.1:1", "http://127.0.0.1:65535", "http://[::1]:8080", "http://127.0.0.1:8080/", "http://127.0.0.1:8080?",
		"http://[::1]:8080/a/b;c/%7Euser/..?x=1&y=a+b&&code2=1&xcode=2",
		"http://127.0.0.1:8080/code/state?x=code&y=error;z=1", "http://127.0.0.1:8080/?%63odes=1", "http://127.0.0.1:8080/?Code=1",
		"http://127.0.0.1:8080/@user:pass", "http://127.0.0.1:8080?@evil.example", "http://127.0.0.1:8080//evil.example/",
		"http://127.0.0.1:8080/" + strings.Repeat("a", 2048-22),
	} {
		if got, ok := authorization.ParseRedirect(in); !ok || string(got) != in {
			t.Errorf("%s: got %q, %v", in, got, ok)
		}
	}
}

func TestOtherRedirectsAreRefused(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"empty": "", "https": "https://127.0.0.1:8080", "upper-case scheme": "HTTP://127.0.0.1:8080", "no scheme": "127.0.0.1:8080",
		"a name": "http://localhost:8080", "another address": "http://127.0.0.2:8080", "an outer address": "http://10.0.0.1:8080",
		"a longer host": "http://127.0.0.1.evil.example:8080", "a short form": "http://127.1:8080", "a number": "http://2130706433:8080",
		"a long IPv6": "http://[0:0:0:0:0:0:0:1]:8080", "a mapped IPv6": "http://[::ffff:127.0.0.1]:8080", "a zone": "http://[::1%25lo]:8080", "IPv6 without brackets": "http://::1:8080",
		"no port": "http://127.0.0.1", "no port, but a path": "http://127.0.0.1/", "an empty port": "http://127.0.0.1:", "an empty port and a path": "http://127.0.0.1:/x",
		"port 0": "http://127.0.0.1:0", "port 65536": "http://127.0.0.1:65536", "port with six digits": "http://127.0.0.1:100000", "port 00080": "http://127.0.0.1:080", "a signed port": "http://127.0.0.1:+80",
		"user info": "http://user@127.0.0.1:8080", "user and password": "http://u:p@127.0.0.1:8080", "the port is user info": "http://127.0.0.1:8080@evil.example/",
		"user info by escapes": "http://127.0.0.1:8080%40evil.example/", "a fragment": "http://127.0.0.1:8080/#x", "an empty fragment": "http://127.0.0.1:8080/#", "a fragment in the query": "http://127.0.0.1:8080/?x#y",
		"a backslash": `http://127.0.0.1:8080\@evil.example`, "a space": "http://127.0.0.1:8080/a b", "a space before": " http://127.0.0.1:8080", "a line feed": "http://127.0.0.1:8080/\n", "a NUL": "http://127.0.0.1:8080/\x00",
		"beyond ASCII": "http://127.0.0.1:8080/é", "full-width dots": "http://127。0。0。1:8080", "half an escape": "http://127.0.0.1:8080/%4", "no escape": "http://127.0.0.1:8080/%zz", "a quote": `http://127.0.0.1:8080/"`, "a tag": "http://127.0.0.1:8080/<b>",
		"code": "http://127.0.0.1:8080/?code=x", "state": "http://127.0.0.1:8080/?a=1&state", "error": "http://127.0.0.1:8080/?error=", "code by an escape": "http://127.0.0.1:8080/?c%6Fde=x", "code after a semicolon": "http://127.0.0.1:8080/?a=1;code=x",
		"2049 bytes": "http://127.0.0.1:8080/" + strings.Repeat("a", 2049-22), "another scheme": "javascript://127.0.0.1:8080/%0aalert(1)", "two slashes more": "http:////127.0.0.1:8080",
	} {
		if got, ok := authorization.ParseRedirect(in); ok || got != "" {
			t.Errorf("%s: accepted as %q", name, got)
		}
	}
}

func TestParametersAreAddedToWhatIsThere(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http://127.0.0.1:1":             "http://127.0.0.1:1?n=v%20%26",
		"http://127.0.0.1:1/?":           "http://127.0.0.1:1/?n=v%20%26",
		"http://127.0.0.1:1/?a=%7e+b":    "http://127.0.0.1:1/?a=%7e+b&n=v%20%26",
		"http://127.0.0.1:1/?a&":         "http://127.0.0.1:1/?a&n=v%20%26",
		"https://shop.example/a?b=1#/c?": "https://shop.example/a?b=1&n=v%20%26#/c?",
		"https://shop.example#":          "https://shop.example?n=v%20%26#",
	} {
		if got := authorization.WithQuery(in, "n", "v &"); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// Whatever is added comes back as it was, beside what was there.
func TestAddedParametersComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name, value := rapid.StringN(1, -1, -1).Draw(t, "name"), rapid.String().Draw(t, "value")
		uri := rapid.SampledFrom([]string{"http://127.0.0.1:1", "http://[::1]:1/p?", "http://127.0.0.1:1/?before=1", "https://shop.example/?before=1#f"}).Draw(t, "uri")
		before, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		after, err := url.Parse(authorization.WithQuery(uri, name, value))
		if err != nil {
			t.Fatal(err)
		}
		want := before.Query()
		want.Add(name, value)
		if got := after.Query(); got.Encode() != want.Encode() || after.Host != before.Host || after.Path != before.Path || after.Fragment != before.Fragment {
			t.Errorf("%s became %s", uri, after)
		}
	})
}

// The parser decides without net/url; what it lets through must mean the same to it, as to
// a browser.
func FuzzParseRedirect(f *testing.F) {
	for _, seed := range []string{
		"http://127.0.0.1:8080/a?b=c", "http://[::1]:1?x;y=%20", "http://127.0.0.1:8080@evil.example", "http://127.0.0.1:08/#f",
		"http://127.0.0.1:65536", "http://127.0.0.1:1/?c%6fde=1", "http://[::1%25x]:1", "http://127.0.0.1:1/%2", "HTTP://127.0.0.1:1", `http://127.0.0.1:1/\`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		redirect, ok := authorization.ParseRedirect(in)
		u, err := url.Parse(in)
		if ok != (err == nil && isLoopback(in, u)) {
			t.Fatalf("%q: accepted is %v", in, ok)
		}
		if !ok {
			return
		}
		answered, err := url.Parse(redirect.With("code", "bhc_x", "state", "a b&c=d;é#"))
		if err != nil || answered.Host != u.Host || answered.Path != u.Path || answered.Fragment != "" || !strings.HasPrefix(answered.RawQuery, u.RawQuery) {
			t.Fatalf("%q: the answer goes to %v, %v", in, answered, err)
		}
		if q := answered.Query(); !slices.Equal(q["code"], []string{"bhc_x"}) || !slices.Equal(q["state"], []string{"a b&c=d;é#"}) {
			t.Fatalf("%q: the answer says %v", in, q)
		}
	})
}

// isLoopback says the same as ParseRedirect in other words.
func isLoopback(in string, u *url.URL) bool {
	port, err := strconv.Atoi(u.Port())
	prefix := "http://" + u.Host
	if err != nil || len(in) > 2048 || port < 1 || port > 65535 || u.Port() != strconv.Itoa(port) ||
		u.Host != "127.0.0.1:"+u.Port() && u.Host != "[::1]:"+u.Port() || !strings.HasPrefix(in, prefix) || u.User != nil {
		return false
	}
	for i := range len(in) - len(prefix) {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@/?%", rune(in[len(prefix)+i])) {
			return false
		}
	}
	if _, err := url.PathUnescape(in[len(prefix):]); err != nil {
		return false
	}
	query, err := url.ParseQuery(strings.ReplaceAll(u.RawQuery, ";", "&"))
	return err == nil && !query.Has("code") && !query.Has("state") && !query.Has("error")
}
