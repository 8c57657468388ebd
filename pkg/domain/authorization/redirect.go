package authorization

import (
	"slices"
	"strings"
)

const maxRedirectBytes = 2048

// Redirect is where an agent on a person's machine waits for the answer:
// http://127.0.0.1:PORT or http://[::1]:PORT, with an optional path and query. It is kept
// and compared as it was sent.
type Redirect string

// reserved are the names in a query by which the answer is told.
var reserved = []string{"code", "state", "error"}

// ParseRedirect reads a redirect of at most 2048 bytes. The host is one of the two literal
// addresses, since a name may lead elsewhere; a port from 1 to 65535 is required; there
// is no user info and no fragment, and the query names none of code, state and error.
// It reports false for everything else.
func ParseRedirect(s string) (Redirect, bool) {
	if len(s) > maxRedirectBytes {
		return "", false
	}
	rest, ok := strings.CutPrefix(s, "http://127.0.0.1:")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://[::1]:")
	}
	if !ok {
		return "", false
	}
	rest, ok = cutPort(rest)
	if !ok || rest != "" && rest[0] != '/' && rest[0] != '?' || !isPathAndQuery(rest) {
		return "", false
	}
	_, query, _ := strings.Cut(rest, "?")
	// Some readers of queries separate parameters at semicolons too.
	for parameter := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(parameter, "=")
		if slices.Contains(reserved, unescape(name)) {
			return "", false
		}
	}
	return Redirect(s), true
}

// cutPort returns what follows the port that s begins with. A port has no leading zero.
func cutPort(s string) (rest string, ok bool) {
	const maxDigits, maxPort = 5, 65535
	port, n := 0, 0
	for n < len(s) && n <= maxDigits && '0' <= s[n] && s[n] <= '9' {
		port = 10*port + int(s[n]-'0')
		n++
	}
	return s[n:], n > 0 && s[0] != '0' && port <= maxPort
}

// With returns the redirect with parameters, names and values in turn, added to its query.
func (r Redirect) With(parameters ...string) string { return WithQuery(string(r), parameters...) }

// WithQuery returns a URI with parameters, names and values in turn, added to its query.
// What is there stays as it is, a fragment at the end too.
func WithQuery(uri string, parameters ...string) string {
	base, fragment, hasFragment := strings.Cut(uri, "#")
	var b strings.Builder
	b.WriteString(base)
	separator := "?"
	if _, query, has := strings.Cut(base, "?"); has {
		separator = "&"
		if query == "" || strings.HasSuffix(query, "&") {
			separator = ""
		}
	}
	for i := 0; i+1 < len(parameters); i += 2 {
		b.WriteString(separator + escape(parameters[i]) + "=" + escape(parameters[i+1]))
		separator = "&"
	}
	if hasFragment {
		b.WriteString("#" + fragment)
	}
	return b.String()
}

// isPathAndQuery reports whether s has only characters that RFC 3986 allows in a path and
// a query, with whole percent escapes.
func isPathAndQuery(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isUnreserved(c), strings.IndexByte("!$&'()*+,;=:@/?", c) >= 0:
		case c == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0:
			i += 2
		default:
			return false
		}
	}
	return true
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// escape writes every byte that is not unreserved as a percent escape.
func escape(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; isUnreserved(c) {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + hexDigits[c>>4:c>>4+1] + hexDigits[c&15:c&15+1])
		}
	}
	return b.String()
}

// unescape reads whole percent escapes, and a plus as a space, as forms do.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '%':
			b.WriteByte(byte(unhex(s[i+1])<<4 | unhex(s[i+2]))) //nolint:gosec // two hexadecimal digits, as isPathAndQuery saw
			i += 2
		case '+':
			b.WriteByte(' ')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unhex returns a hexadecimal digit's value, or -1.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}
