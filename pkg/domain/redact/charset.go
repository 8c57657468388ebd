package redact

import "strings"

// charset is a set of bytes.
type charset [256]bool

func newCharset(ranges ...string) *charset {
	var set charset
	for _, r := range ranges {
		if len(r) == 3 && r[1] == '-' {
			for c := int(r[0]); c <= int(r[2]); c++ {
				set[c] = true
			}
			continue
		}
		for i := range len(r) {
			set[r[i]] = true
		}
	}
	return &set
}

var (
	alphanumeric = newCharset("a-z", "A-Z", "0-9")
	upperDigit   = newCharset("A-Z", "0-9")
	base64URL    = newCharset("a-z", "A-Z", "0-9", "_", "-")
	base64Std    = newCharset("a-z", "A-Z", "0-9", "+/")
	dotted       = newCharset("a-z", "A-Z", "0-9", "_", "-", ".")
	// token68 is what a credential in an HTTP header may be made of (RFC 9110, 11.2).
	token68 = newCharset("a-z", "A-Z", "0-9", "-", "._~+/=")
)

func isAlphanumeric(c byte) bool { return alphanumeric[c] }

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// runEnd returns the end of the run of set's bytes that begins at i.
func runEnd(s string, i int, set *charset) int {
	for i < len(s) && set[s[i]] {
		i++
	}
	return i
}

// startsWord reports whether a word may begin at i: no letter or digit stands before it,
// unless it belongs to an escape such as \n, \u000a or %20.
func startsWord(s string, i int) bool {
	switch {
	case i == 0 || !isAlphanumeric(s[i-1]):
		return true
	case i >= 2 && s[i-2] == '\\' && strings.IndexByte("nrtbf0", s[i-1]) >= 0:
		return true
	case i >= 3 && s[i-3] == '%':
		return true
	}
	return i >= 6 && s[i-6] == '\\' && s[i-5] == 'u'
}

// hasPrefixFold reports whether s[i:] begins with prefix, which is in lower case, in any case.
func hasPrefixFold(s string, i int, prefix string) bool {
	return len(s)-i >= len(prefix) && strings.EqualFold(s[i:i+len(prefix)], prefix)
}

// Bounds of what may be a word or a name.
const (
	maxWordish     = 128
	maxWord        = 20
	maxWordDigits  = 3
	lettersPerHump = 3
)

// isWordish reports whether s reads as words or a name rather than as a random value:
// words of letters, short numbers and versions, joined by punctuation.
func isWordish(s string) bool {
	if len(s) > maxWordish {
		return false
	}
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && strings.IndexByte("-_./:@+,#*!?", s[i]) < 0 {
			continue
		}
		if !isWord(s[start:i]) {
			return false
		}
		start = i + 1
	}
	return true
}

// isWord reports whether s is a word, a short number, a version as v2, or nothing.
// A word has letters only, and humps as in camelCase only where a word could begin.
func isWord(s string) bool {
	digits := s
	if s != "" && s[0] == 'v' {
		digits = s[1:]
	}
	if len(digits) <= maxWordDigits && strings.Trim(digits, "0123456789") == "" {
		return true
	}
	letters, humps := 0, 1
	for i := range len(s) {
		switch c := s[i]; {
		case isLower(c):
			letters++
		case isUpper(c):
			letters++
			if i > 0 && isLower(s[i-1]) {
				humps++
			}
		case c < 0x80:
			return false
		}
	}
	return letters <= maxWord && (humps == 1 || humps*lettersPerHump <= letters)
}
