package execution

import (
	"crypto/sha256"
	"strconv"
	"strings"

	"verbatim.internal/pkg/domain/redact"
)

// Bounds of a URL, in bytes.
const (
	maxURL  = 8192
	maxHost = 253
)

// ParseEndpoint reads an absolute http or https URL of at most 8192 bytes. Its user info,
// path, query and fragment are in the SHA-256 and nowhere else, so of them it is only asked
// that they have no white space and no control character. It reports false for everything
// else, and for a host that the redactor would change.
func ParseEndpoint(url string) (Endpoint, bool) {
	if len(url) > maxURL || strings.ContainsFunc(url, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return Endpoint{}, false
	}
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return Endpoint{}, false
	}
	e := Endpoint{Scheme: strings.ToLower(scheme), SHA256: sha256.Sum256([]byte(url))}
	switch e.Scheme {
	case "http":
		e.Port = 80
	case "https":
		e.Port = 443
	default:
		return Endpoint{}, false
	}
	authority := rest
	if end := strings.IndexAny(rest, `/?#\`); end >= 0 { // a browser takes \ for /
		authority = rest[:end]
	}
	host, port := splitPort(authority[strings.LastIndexByte(authority, '@')+1:])
	e.Host = strings.ToLower(host)
	if port != "" && port != ":" { // an empty port is the scheme's own, too (RFC 3986, 3.2.3)
		if e.Port, ok = parsePort(port[1:]); !ok {
			return Endpoint{}, false
		}
	}
	// As it was sent, too: some secrets are known by their capital letters.
	return e, isHost(e.Host) && !redact.IsSecret(e.Host) && !redact.IsSecret(host)
}

// splitPort cuts an authority before the colon of its port.
func splitPort(authority string) (host, port string) {
	colon := strings.LastIndexByte(authority, ':')
	if colon < 0 || colon < strings.LastIndexByte(authority, ']') {
		return authority, ""
	}
	return authority[:colon], authority[colon:]
}

// parsePort reads 1 to 65535 without leading zeros or a sign.
func parsePort(s string) (int, bool) {
	const maxDigits = 5
	if len(s) > maxDigits || s == "" || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil
}

// isHost reports whether s, in lower case, is the spelling of a DNS name, an IPv4 address,
// or an IPv6 address in brackets. Names in other scripts come as punycode.
func isHost(s string) bool {
	if address, ok := strings.CutPrefix(s, "["); ok {
		address, ok = strings.CutSuffix(address, "]")
		const longest = len("0000:0000:0000:0000:0000:ffff:255.255.255.255")
		return ok && len(address) <= longest && strings.Count(address, ":") >= 2 &&
			strings.Trim(address, "0123456789abcdef:.") == ""
	}
	if len(s) > maxHost {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// isLabel reports whether s is one part of a name; names of services have underscores.
func isLabel(s string) bool {
	const most = 63
	if s == "" || len(s) > most || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLower(c) && !isDigit(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
