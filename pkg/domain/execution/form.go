package execution

import (
	"strings"

	"verbatim.internal/pkg/domain/redact"
	"verbatim.internal/pkg/domain/timestamp"
)

const maxName = 128

// IsName reports whether s may be stored as an identifier or a kept string:
// ^[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,127}$, and nothing that the redactor would change.
func IsName(s string) bool { return hasNameForm(s) && !redact.IsSecret(s) }

func hasNameForm(s string) bool {
	if s == "" || len(s) > maxName || !isAlphanumeric(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && strings.IndexByte("_.:/@+-", c) < 0 {
			return false
		}
	}
	return true
}

// IsEventType reports whether s is two to four parts [a-z][a-z0-9_]* with dots between
// them, of at most 128 characters, and nothing that the redactor would change.
func IsEventType(s string) bool {
	if len(s) > maxName || strings.Count(s, ".") > 3 {
		return false
	}
	parts := 0
	for part := range strings.SplitSeq(s, ".") {
		if !isWord(part) {
			return false
		}
		parts++
	}
	return parts >= 2 && !redact.IsSecret(s)
}

// isFieldName reports whether s may be kept as the name of a field, whatever its value:
// ^[a-z][a-z0-9_]{0,63}$, and no secret itself.
func isFieldName(s string) bool {
	const most = 64
	return len(s) <= most && isWord(s) && !redact.IsSecret(s)
}

// isWord reports whether s is [a-z][a-z0-9_]*.
func isWord(s string) bool {
	if s == "" || !isLower(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLower(c) && !isDigit(c) && c != '_' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool { return isLower(c) || isDigit(c) || 'A' <= c && c <= 'Z' }

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// form reads what was sent, and remembers whether anything was not of its form.
type form struct{ broken bool }

func (f *form) require(ok bool) {
	f.broken = f.broken || !ok
}

// name returns an optional name, "" for none.
func (f *form) name(s *string) string {
	if s == nil {
		return ""
	}
	f.require(IsName(*s))
	return *s
}

// names returns an optional list of at most limit names, nil for none.
func (f *form) names(list []string, limit int) []string {
	f.require(len(list) <= limit)
	for i := 0; i < len(list) && !f.broken; i++ {
		f.require(IsName(list[i]))
	}
	return list
}

// moment returns an optional time in its one spelling, "" for none.
func (f *form) moment(s *string) string {
	if s == nil {
		return ""
	}
	at, ok := timestamp.Normalize(*s)
	f.require(ok)
	return at
}

// count returns an optional number from 0 to 2^53-1, nil for none.
func (f *form) count(n *int64) *int64 {
	f.require(n == nil || 0 <= *n && *n <= MaxSafeInteger)
	return n
}

// vaultRef returns an optional reference to a secret, "" for none.
func (f *form) vaultRef(s *string) string {
	if s == nil {
		return ""
	}
	f.require(redact.IsVaultRef(*s))
	return *s
}
