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
