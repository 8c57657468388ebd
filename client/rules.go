package client

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// The hub's limits.
const (
	// MaxMembers is the number of members an archive may have.
	MaxMembers = 64
	// MaxContentUnits is the length of one visible text, in UTF-16 code units.
	MaxContentUnits = 64_000
	// MaxLabelUnits is the length of a member's or a device's label, in UTF-16 code units.
	MaxLabelUnits = 128
	// MaxEvents is the number of events an archive may hold.
	MaxEvents = 20_000
	// MaxArchiveBytes is the visible text an archive may hold, in bytes of UTF-8.
	MaxArchiveBytes = 16 << 20

	maxBatchEvents   = 50
	maxBatchText     = 256 << 10
	maxEnvelopeBytes = 2<<20 - 1
	maxRunBytes      = 512 << 10
)

// isText reports whether s is a visible text of at most limit UTF-16 code units: valid
// UTF-8, not blank, no control characters but tab, line feed and carriage return.
func isText(s string, limit int) bool {
	return len(s) <= 3*limit && isClean(s) && utf16Len(s) <= limit && strings.TrimFunc(s, isTrimmed) != ""
}

// isClean reports whether s is valid UTF-8 without forbidden control characters.
func isClean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return utf8.ValidString(s)
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// isTrimmed reports whether ECMAScript's String.prototype.trim removes r.
func isTrimmed(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
		return true
	}
	return 0x2000 <= r && r <= 0x200a
}

// isIdentifier: ^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$.
func isIdentifier(s string) bool { return matches(s, 1, 128, isAlphanumeric, "_.:-") }

// isKey: ^[a-z0-9][a-z0-9_-]{1,63}$.
func isKey(s string) bool { return matches(s, 2, 64, isLowerAlphanumeric, "_-") }

func isRoute(s string) bool { return isKey(s) && s != "auto" }

func matches(s string, shortest, longest int, class func(byte) bool, also string) bool {
	if len(s) < shortest || len(s) > longest {
		return false
	}
	for i := range len(s) {
		if !class(s[i]) && (i == 0 || strings.IndexByte(also, s[i]) < 0) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool { return isLowerAlphanumeric(c) || 'A' <= c && c <= 'Z' }

func isLowerAlphanumeric(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// parseUUID returns the UUID in lower case: RFC 4122, version 1 to 5, any case.
func parseUUID(s string) (string, bool) {
	if len(s) != 36 {
		return "", false
	}
	lower := strings.ToLower(s)
	for i := range len(lower) {
		c := lower[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return "", false
			}
		case 14:
			if c < '1' || c > '5' {
				return "", false
			}
		case 19:
			if strings.IndexByte("89ab", c) < 0 {
				return "", false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return "", false
			}
		}
	}
	return lower, true
}

// encodeBytes is base64url without padding.
func encodeBytes(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
