// Package canonical gives values one spelling: RFC 8785 (JSON Canonicalization
// Scheme) bytes, and their SHA-256.
package canonical

import (
	"crypto/sha256"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// JSON returns v as RFC 8785 bytes: members sorted by name, no white space, one
// spelling per number and string. Equal values give equal bytes, always.
// It fails when v is not representable as JSON, such as text that is not UTF-8.
func JSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("canonical: %w", err)
	}
	raw := jsontext.Value(b)
	if err := raw.Canonicalize(); err != nil {
		return nil, fmt.Errorf("canonical: %w", err)
	}
	return raw, nil
}

// Sum returns the SHA-256 of JSON(v).
func Sum(v any) ([sha256.Size]byte, error) {
	b, err := JSON(v)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(b), nil
}
