package run

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// canonicalJSON is RFC 8785 but for one thing: an integer keeps all its digits, also beyond
// 2^53. What a host sends comes back to it, and its long numbers are mostly names of things.
func canonicalJSON(v any) (jsontext.Value, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	raw := jsontext.Value(b)
	err = raw.Canonicalize(jsontext.CanonicalizeRawInts(false))
	return raw, err
}

// sum returns the SHA-256 of canonicalJSON.
func sum(v any) ([sha256.Size]byte, error) {
	b, err := canonicalJSON(v)
	return sha256.Sum256(b), err
}

// isMetadata reports whether s may be kept as a value of metadata:
// ^[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,127}$.
func isMetadata(s string) bool {
	return s != "" && len(s) <= 128 && isAlphanumeric(s[0]) && consistsOf(s, "_.:/@+-")
}

// consistsOf reports whether every byte of s is alphanumeric or one of others.
func consistsOf(s, others string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && !contains(others, s[i]) {
			return false
		}
	}
	return true
}

func contains(s string, c byte) bool {
	for i := range len(s) {
		if s[i] == c {
			return true
		}
	}
	return false
}

func isAlphanumeric(c byte) bool { return isLower(c) || isDigit(c) || 'A' <= c && c <= 'Z' }

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
