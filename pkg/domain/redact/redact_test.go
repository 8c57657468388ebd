package redact_test

import (
	"strings"
	"testing"
	"time"

	"verbatim.internal/pkg/domain/redact"
)

// check holds what is so for every text, and returns the redacted one.
func check(t interface {
	Helper()
	Errorf(string, ...any)
}, in string,
) string {
	t.Helper()
	out := redact.Text(in)
	if redact.IsSecret(in) != (out != in) {
		t.Errorf("%q: IsSecret and Text disagree", in)
	}
	if again := redact.Text(out); again != out {
		t.Errorf("%q: redacted twice: %q, then %q", in, out, again)
	}
	if redact.IsSecret(out) {
		t.Errorf("%q: still a secret in %q", in, out)
	}
	return out
}

// A secret alone, and the same in quotes, in a sentence, in a path, in a script without spaces.
func TestSecretsAreReplaced(t *testing.T) {
	t.Parallel()
	for name, secret := range standalone() {
		for _, around := range []struct{ before, after string }{
			{},
			{"see ", " there"},
			{"see ", ", or not"},
			{`"`, `"`},
			{"x=(", ")"},
			{"'", "'"},
			{"/v1/", "/x"},
			{"钥匙是", "，请"},
			{"line\\n", "\\n"},
			{"https://example.com/?q=", "&x=1"},
			{"[REDACTED] ", " [REDACTED]"},
			{"\x00", "\x00"},
		} {
			in, want := around.before+secret+around.after, around.before+mark+around.after
			if got := check(t, in); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
}

func TestSecretsByTheirPlaceAreReplaced(t *testing.T) {
	t.Parallel()
	for in, want := range within() {
		if got := check(t, in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestOrdinaryTextsStay(t *testing.T) {
	t.Parallel()
	for _, in := range ordinary() {
		if got := check(t, in); got != in {
			t.Errorf("%q: became %q", in, got)
		}
	}
}

func TestVaultReferences(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"azkv://vault/git", "azkv://v/n", "azkv://kv-prod/Orders-DB", "azkv://kv_1/a.b_c", "azkv://" + strings.Repeat("v", 127) + "/" + strings.Repeat("n", 127),
	} {
		if !redact.IsVaultRef(in) || redact.IsSecret(in) || redact.Text("password="+in) != "password="+in {
			t.Errorf("%q: refused", in)
		}
	}
	for _, in := range []string{
		"", "azkv://", "azkv:///", "azkv://vault", "azkv://vault/", "azkv:///name", "azkv://vault/name/", "azkv://vault/name/version", "azkv://vault/name ",
		" azkv://vault/name", "AZKV://vault/name", "azkv:/vault/name", "https://vault/name", "azkv://user:pw@vault/name", "azkv://vault/name?x=1", "azkv://vault/na me",
		"azkv://vault/-name", "azkv://-/name", "azkv://vault/név", "azkv://vault/name\n", "azkv://vault/" + awsID(), "azkv://bha_" + random + "/name",
		"azkv://" + strings.Repeat("v", 128) + "/n", "azkv://v/" + strings.Repeat("n", 128), "[REDACTED]",
	} {
		if redact.IsVaultRef(in) {
			t.Errorf("%q: accepted", in)
		}
	}
}

// Verbatim's own tokens have 43 characters after their prefix; less is no token.
func TestOwnTokensByTheirLength(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"bha_", "bhr_", "bhc_", "bhk_", "bva_", "bvc_"} {
		if token := prefix + random; !redact.IsSecret(token) || !redact.IsSecret("x"+token) || redact.IsSecret(token[:len(token)-1]) {
			t.Errorf("%s: not by its length", prefix)
		}
	}
}

// Eight times the text takes eight times the time, whatever it is made of; what is scanned
// again and again would take 64 times. The best of some runs is compared, so that other
// programs do not matter.
func TestHostileTextsTakeLinearTime(t *testing.T) {
	t.Parallel()
	const short, long, bound = 1 << 12, 1 << 15, 32
	large := hostile(long)
	for name, in := range hostile(short) {
		check(t, in)
		best := func(in string, before time.Duration) time.Duration {
			start := time.Now()
			redact.Text(in)
			return min(before, time.Since(start))
		}
		brief, took := time.Hour, time.Hour
		for range 50 {
			brief, took = best(in, brief), best(large[name], took)
			if took < bound*brief {
				break
			}
		}
		if took >= bound*brief {
			t.Errorf("%q: %v, and %v for eight times as much", name, brief, took)
		}
	}
}

// hostile are texts of about n bytes that begin a secret at every position and end none.
func hostile(n int) map[string]string {
	texts := map[string]string{
		"open quotes, by lines": strings.Repeat("token=\"'`\n", n/10),
		"a long run, then dots": strings.Repeat("eyJa-", n/10) + "." + strings.Repeat(".eyJ", n/8),
	}
	for _, unit := range []string{
		"a", "eyJ-", "eyJhbGciOi.", "eyJa.eyJb.", "sk-", "sk-a1-", "bha_", "ghp_", "-----BEGIN ", "-----BEGIN PRIVATE KEY", "--", "--token ",
		"//", "//u:p/", "//u:p", "//@", "@tcp(", "u:@tcp(", ":", "=", "token:", "token=", "token=\"", "token='\"", "\"token\":\"", "token:a-", "password is ",
		"<token>", "<token>a", "Bearer ", "Basic ", "Basic a", "Authorization: ", "Authorization: Digest", "Cookie: ", "Cookie=", "[REDACTED]", "[REDACTED",
		"token=[REDACTED]", "azkv://a/", "token=azkv://", "密码：", "\\\"token\\\":\\\"", "\\", "token={{", "token=${", "hooks.slack.com/", "AKIA", " ", "\n", "token: a\n",
		"Authorization: Bearer true ", "Authorization: Digest [REDACTED]", "密码=", "密码=密", "Cookie: a", "Cookie: a'=", "'Cookie: ", "x y ", "token=(", "a,b=",
	} {
		texts[unit] = strings.Repeat(unit, n/len(unit))
	}
	return texts
}
