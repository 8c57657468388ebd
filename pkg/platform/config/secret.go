package config

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a string that must not be shown: a password, a token, a data source
// name. Every way of printing it (each fmt verb, slog, JSON, text) gives
// "[redacted]"; only [Secret.Reveal] gives the value. The zero value is "not set".
//
// Two things are out of its reach, because fmt then calls no method: the verb %p, which
// go vet refuses for it, and a struct's unexported fields. Who keeps a secret in an
// unexported field keeps the method value Reveal, which prints as an address.
type Secret string

var (
	_ fmt.Formatter  = Secret("")
	_ fmt.Stringer   = Secret("")
	_ fmt.GoStringer = Secret("")
	_ slog.LogValuer = Secret("")
)

// Reveal returns the secret itself, for the one call that needs it.
func (s Secret) Reveal() string { return string(s) }

// String returns "[redacted]", also for an empty secret.
func (Secret) String() string { return redacted }

// GoString returns "[redacted]", also for an empty secret.
func (Secret) GoString() string { return redacted }

// Format writes "[redacted]" for every verb, so that %x or %q cannot show the value either.
func (Secret) Format(f fmt.State, _ rune) {
	// A fmt.State does not fail: fmt collects into memory first.
	_, _ = io.WriteString(f, redacted)
}

// LogValue makes slog print "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText makes JSON and other text encodings print "[redacted]". There is no
// counterpart: a printed configuration cannot be read back.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
