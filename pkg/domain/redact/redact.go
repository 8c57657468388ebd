package redact

import "strings"

// Marker stands in a redacted text where a secret was.
const Marker = "[REDACTED]"

// maxPasses bounds how often a text is scanned again because a replacement may have
// bared another secret beside it. Texts made by people or programs need two.
const maxPasses = 8

// IsSecret reports whether s holds anything that [Text] would replace.
func IsSecret(s string) bool {
	_, found := next(&scanner{text: s}, 0)
	return found
}

// Text returns s with each secret replaced by [Marker] and everything else byte for byte.
// It returns s itself when there is none: IsSecret(s) == (Text(s) != s).
// Redacting again changes nothing: Text(Text(s)) == Text(s).
func Text(s string) string {
	for range maxPasses {
		redacted, changed := pass(s)
		if !changed {
			return s
		}
		s = redacted
	}
	if IsSecret(s) {
		return Marker // only a text made for it gets here; rather nothing of it than a part
	}
	return s
}

// pass replaces the secrets that one scan of s finds.
func pass(s string) (string, bool) {
	var out strings.Builder
	sc, done := &scanner{text: s}, 0
	for {
		found, ok := next(sc, done)
		if !ok {
			break
		}
		out.WriteString(s[done:found.start])
		out.WriteString(Marker)
		done = found.end
	}
	if done == 0 {
		return s, false
	}
	out.WriteString(s[done:])
	return out.String(), true
}

// span is where a secret stands in a text: start inclusive, end exclusive, not empty.
type span struct{ start, end int }

// scanner is one scan of a text, with what it remembers so as to read nothing twice.
type scanner struct {
	text string
	// header and payload remember the ends of the runs that were last read as a JWT's parts.
	header, payload run
}

// next returns the first secret of the text that a rule finds at or after from.
func next(sc *scanner, from int) (span, bool) {
	s := sc.text
	for i := from; i < len(s); i++ {
		var found span
		var ok bool
		switch s[i] {
		case ':', fullWidthColon[0]:
			found, ok = assignment(s, i)
		case '=':
			if found, ok = assignment(s, i); !ok {
				found, ok = accountKey(s, i)
			}
		case '/':
			found, ok = userInfo(s, i)
		case '@':
			found, ok = dataSource(s, i)
		case '>':
			found, ok = element(s, i)
		case '-':
			if found, ok = privateKey(s, i); !ok {
				found, ok = flag(s, i)
			}
		default:
			if !begins[s[i]] {
				continue
			}
			found, ok = sc.token(i)
		}
		if ok && found.start >= from { // what looks back may see what was found already
			return found, true
		}
	}
	return span{}, false
}

const vaultScheme = "azkv://"

// IsVaultRef reports whether s is exactly a reference azkv://vault/name, which says where
// a secret is kept without holding it. Both parts are 1 to 127 of letters, digits, '-',
// '_' and '.', begin with a letter or digit, and have not the form of a secret themselves.
func IsVaultRef(s string) bool {
	return hasVaultForm(s) && !IsSecret(s)
}

// hasVaultForm reports whether s is spelled like a reference to a vault.
func hasVaultForm(s string) bool {
	path, ok := strings.CutPrefix(s, vaultScheme)
	if !ok || len(path) > 2*maxVaultPart+1 {
		return false
	}
	vault, name, ok := strings.Cut(path, "/")
	return ok && isVaultPart(vault) && isVaultPart(name)
}

const maxVaultPart = 127

func isVaultPart(s string) bool {
	return s != "" && len(s) <= maxVaultPart && isAlphanumeric(s[0]) && runEnd(s, 0, dotted) == len(s)
}
