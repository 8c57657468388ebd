package client

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Token is a bearer or a refresh token. It prints as [redacted] wherever it goes:
// fmt, slog, JSON.
type Token struct{ value string }

// NewToken returns the token that an operator or a host has issued.
func NewToken(value string) Token { return Token{value} }

// String returns "[redacted]".
func (Token) String() string { return redacted }

// GoString returns "[redacted]".
func (Token) GoString() string { return redacted }

// Format prints "[redacted]", whatever the verb.
func (Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue is "[redacted]".
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[redacted]".
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// valid reports whether the token can stand in a header: printable ASCII, no space.
func (t Token) valid() bool {
	if t.value == "" || len(t.value) > 512 {
		return false
	}
	for i := range len(t.value) {
		if c := t.value[i]; c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
