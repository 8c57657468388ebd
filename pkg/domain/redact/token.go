package redact

import (
	"encoding/base64"
	"strings"
)

// issued is how an issuer spells its secrets: a prefix and a run of at least min bytes.
type issued struct {
	prefix string
	set    *charset
	min    int
	// anywhere says that the prefix is a secret's in the middle of a word, too.
	anywhere bool
}

// issuers by the first byte of their prefix.
var issuers = func() (table [256][]issued) {
	add := func(set *charset, minimum int, prefixes ...string) {
		for _, p := range prefixes {
			table[p[0]] = append(table[p[0]], issued{prefix: p, set: set, min: minimum})
		}
	}
	for _, p := range []string{"bha_", "bhr_", "bhc_", "bhk_", "bva_", "bvc_"} { // Verbatim's own
		table[p[0]] = append(table[p[0]], issued{prefix: p, set: base64URL, min: 43, anywhere: true})
	}
	add(alphanumeric, 30, "ghp_", "gho_", "ghu_", "ghs_", "ghr_") // GitHub
	add(base64URL, 22, "github_pat_")
	add(base64URL, 16, "glpat-", "gldt-", "glrt-", "glptt-") // GitLab
	add(base64URL, 10, "xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-")
	add(alphanumeric, 16, "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_") // Stripe
	add(base64URL, 35, "AIza")                                                      // Google
	add(dotted, 20, "ya29.")
	add(base64URL, 20, "GOCSPX-")
	add(base64URL, 16, "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-") // OpenAI, Anthropic, OpenRouter
	add(alphanumeric, 30, "hf_", "npm_", "gsk_", "r8_")
	add(base64URL, 40, "pypi-", "nvapi-", "pplx-", "xai-")
	add(dotted, 40, "SG.")                       // SendGrid
	add(dotted, 20, "hvs.", "hvb.", "hvr.")      // Vault
	add(alphanumeric, 32, "dapi", "dop_v1_")     // Databricks, DigitalOcean
	add(base64URL, 20, "dckr_pat_", "lin_api_")  // Docker, Linear
	add(alphanumeric, 32, "shpat_", "shpss_")    // Shopify
	add(upperDigit, 50, "AGE-SECRET-KEY-1")      // age
	add(base64URL, 50, "ATATT3", "EAACEdEose0c") // Atlassian, Facebook
	return table
}()

// others are the first bytes of the secrets without an issuer's fixed prefix.
const others = "ABbehs"

// begins holds the first bytes of both.
var begins = func() (set charset) {
	for c := range set {
		set[c] = issuers[c] != nil || strings.IndexByte(others, byte(c)) >= 0
	}
	return set
}()

// token finds a secret that begins with the letter or digit at i.
func (sc *scanner) token(i int) (span, bool) {
	s := sc.text
	for _, by := range issuers[s[i]] {
		if !strings.HasPrefix(s[i:], by.prefix) || !by.anywhere && !startsWord(s, i) {
			continue
		}
		start := i + len(by.prefix)
		if end := runEnd(s, start, by.set); end-start >= by.min {
			return span{i, end}, true
		}
	}
	if strings.IndexByte(others, s[i]) < 0 || !startsWord(s, i) {
		return span{}, false
	}
	switch s[i] {
	case 'A':
		return accessKeyID(s, i)
	case 's':
		return serviceKey(s, i)
	case 'e':
		return sc.jwt(i)
	case 'h':
		return webhook(s, i)
	}
	if found, ok := bearer(s, i); ok {
		return found, true
	}
	return basic(s, i)
}

// accessKeyID finds the id of an AWS key, which is a secret's other half.
func accessKeyID(s string, i int) (span, bool) {
	const prefix, length = 4, 20
	if len(s)-i < length {
		return span{}, false
	}
	switch s[i : i+prefix] {
	case "AKIA", "ASIA", "ABIA", "ACCA":
		if end := i + length; runEnd(s[:end], i, upperDigit) == end && (end == len(s) || !isAlphanumeric(s[end])) {
			return span{i, end}, true
		}
	}
	return span{}, false
}

// accountKey finds an Azure account's key, 64 bytes in base64, whose padding begins at i. A
// SHA-512 digest has the same form and says what it is.
func accountKey(s string, i int) (span, bool) {
	const length = 86
	start, end := i-length, i+2
	if start < 0 || !strings.HasPrefix(s[i:], "==") || end < len(s) && s[end] == '=' || runEnd(s[:i], start, base64Std) != i {
		return span{}, false
	}
	if !startsWord(s, start) || start > 0 && s[start-1] == '+' { // a longer value's end
		return span{}, false
	}
	for _, digest := range []string{"sha512-", "sha512:", "sha-512=", "sha512="} {
		if n := start - len(digest); n >= 0 && hasPrefixFold(s, n, digest) {
			return span{}, false
		}
	}
	return span{start, end}, true
}

// serviceKey finds a key sk-… of a model's provider, and no name such as sk-learn-model.
func serviceKey(s string, i int) (span, bool) {
	const prefix, least = "sk-", 16
	if !strings.HasPrefix(s[i:], prefix) {
		return span{}, false
	}
	start := i + len(prefix)
	bound := runEnd(s[:min(len(s), start+maxWordish+1)], start, base64URL)
	if bound-start < least || isWordish(s[start:bound]) {
		return span{}, false
	}
	// A long word or number is a key's; a name has none.
	for from := start; from < bound; {
		end := runEnd(s[:bound], from, alphanumeric)
		if end-from >= least {
			return span{i, runEnd(s, start, base64URL)}, true
		}
		from = end + 1
	}
	return span{}, false
}

// run is where a run of base64url was read.
type run struct{ start, end int }

// within returns the end of the run of base64url that begins at i, reading each byte once.
func (r *run) within(s string, i int) int {
	if i < r.start || i >= r.end {
		*r = run{i, runEnd(s, i, base64URL)}
	}
	return r.end
}

// jwt finds a JSON Web Token: at least a header, which begins {" or {\n, and a payload;
// with encryption the second part may be empty.
func (sc *scanner) jwt(i int) (span, bool) {
	const least = 8
	s := sc.text
	if !strings.HasPrefix(s[i:], "eyJ") && !strings.HasPrefix(s[i:], "eyI") && !strings.HasPrefix(s[i:], "ewog") {
		return span{}, false
	}
	header := sc.header.within(s, i)
	if header-i < least || header >= len(s) || s[header] != '.' {
		return span{}, false
	}
	payload := header + 1
	if payload < len(s) && base64URL[s[payload]] {
		if sc.payload.within(s, payload)-payload < least {
			return span{}, false
		}
	} else if !strings.HasPrefix(s[header:], "..") {
		return span{}, false
	}
	end := runEnd(s, payload, dotted)
	for s[end-1] == '.' {
		end--
	}
	return span{i, max(end, header)}, true
}

// webhook finds the path of an address that is itself the permission to post.
func webhook(s string, i int) (span, bool) {
	const address, least = "hooks.slack.com/", 20
	if !hasPrefixFold(s, i, address) {
		return span{}, false
	}
	start := i + len(address)
	if end := runEnd(s, start, token68); end-start >= least {
		return span{start, end}, true
	}
	return span{}, false
}

// bearer finds the credential after the word Bearer.
func bearer(s string, i int) (span, bool) {
	const word, least = "bearer", 6
	if !hasPrefixFold(s, i, word) {
		return span{}, false
	}
	start := credential(s, i+len(word))
	if start == 0 {
		return span{}, false
	}
	end := runEnd(s, start, token68)
	for end > start && s[end-1] == '.' {
		end--
	}
	if value := s[start:end]; len(value) >= least && !isWordish(value) {
		return span{start, end}, true
	}
	return span{}, false
}

// basic finds the user and password after the word Basic.
func basic(s string, i int) (span, bool) {
	const word, most = "basic", 4096
	if !hasPrefixFold(s, i, word) {
		return span{}, false
	}
	start := credential(s, i+len(word))
	if start == 0 {
		return span{}, false
	}
	end := runEnd(s, start, base64Std)
	plain, err := base64.RawStdEncoding.DecodeString(s[start:min(end, start+most)])
	if err != nil && len(plain) == 0 || !strings.Contains(string(plain), ":") || isWordish(s[start:end]) {
		return span{}, false
	}
	for end < len(s) && s[end] == '=' {
		end++
	}
	return span{start, end}, true
}

// credential returns where the value begins that follows a scheme's name ending at i,
// or 0 when none does. Between them is white space, written plainly or as %20 or +.
func credential(s string, i int) int {
	start := i
	for start < len(s) && (s[start] == ' ' || s[start] == '\t') && start-i < 8 {
		start++
	}
	if start == i {
		switch {
		case strings.HasPrefix(s[i:], "%20"):
			start += 3
		case strings.HasPrefix(s[i:], "+"):
			start++
		default:
			return 0
		}
	}
	return start
}
