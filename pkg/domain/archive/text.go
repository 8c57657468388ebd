package archive

import (
	"strings"
	"unicode/utf8"
)

// IsText reports whether s is a visible text of at most limit UTF-16 code units:
// valid UTF-8, not blank, and without control characters other than tab, LF and CR.
func IsText(s string, limit int) bool {
	if len(s) > 3*limit || !utf8.ValidString(s) || hasControl(s) {
		return false
	}
	return utf16Len(s, limit) <= limit && strings.TrimFunc(s, isTrimmed) != ""
}

// hasControl looks at eight bytes at a time. Bytes of characters outside of ASCII have
// their highest bit set, and are none.
func hasControl(s string) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for ; len(s) >= 8; s = s[8:] {
		x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		del := x ^ 0x7f*ones
		// Tab, LF and CR are below the space too: then the bytes are looked at one by one.
		if ((x-' '*ones)&^x|(del-ones)&^del)&highs != 0 && hasControlByte(s[:8]) {
			return true
		}
	}
	return hasControlByte(s)
}

func hasControlByte(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return true
		}
	}
	return false
}

// utf16Len counts the UTF-16 code units of s; it may skip the count when len(s) is within enough.
func utf16Len(s string, enough int) int {
	if len(s) <= enough { // a code unit takes at least one byte
		return len(s)
	}
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// isTrimmed reports whether ECMAScript's String.prototype.trim removes r
// (ECMA-262, WhiteSpace and LineTerminator).
func isTrimmed(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
		return true
	}
	return 0x2000 <= r && r <= 0x200a
}

// IsIdentifier reports whether s names a conversation, an event or a turn:
// ^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$.
func IsIdentifier(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && (i == 0 || c != '_' && c != '.' && c != ':' && c != '-') {
			return false
		}
	}
	return true
}
