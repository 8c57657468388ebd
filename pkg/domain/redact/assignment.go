package redact

import "strings"

// manner is how a text assigns, which tells a value from a word of prose.
type manner int

const (
	// loose is a colon, as prose has it, too: "password: please rotate it".
	loose manner = iota
	// strict is an equals sign, a quoted value, a line of a settings file, an option.
	strict
	// random takes a random value only.
	random
)

// fullWidthColon is the colon of Chinese and Japanese texts.
const fullWidthColon = "："

// assignment finds the value that the sign at i assigns to a name of a secret.
func assignment(s string, i int) (span, bool) {
	after, how := sign(s, i)
	if after == 0 {
		return span{}, false
	}
	k, start := named(s, i)
	if k == plain || s[i] == ':' && isPartOfName(s, start) {
		return span{}, false
	}
	for after < len(s) && (s[after] == ' ' || s[after] == '\t') {
		after++
	}
	switch k {
	case header:
		return authorization(s, start, after)
	case jar:
		return cookies(s, start, after)
	case soft:
		return value(s, after, random)
	case plain, strong:
	}
	if how == loose && isLine(s, start, after) {
		how = strict
	}
	return value(s, after, how)
}

// isPartOfName reports whether the name that begins at start is a URL's user or a part of an
// Amazon resource name, behind which a colon assigns nothing.
func isPartOfName(s string, start int) bool {
	const most = 64
	before := s[max(0, start-most):start]
	return strings.HasSuffix(before, "//") || strings.HasSuffix(before, ":") && strings.Contains(before, "arn:")
}

// sign returns where the sign of assignment at i ends, and its manner; 0 when there is none.
func sign(s string, i int) (int, manner) {
	switch rest := s[i:]; {
	case strings.HasPrefix(rest, "==="):
		return i + 3, strict
	case strings.HasPrefix(rest, "=="), strings.HasPrefix(rest, "=>"), strings.HasPrefix(rest, ":="):
		return i + 2, strict
	case rest[0] == '=':
		return i + 1, strict
	case strings.HasPrefix(rest, "::"), strings.HasPrefix(rest, "://"):
		return 0, loose
	case rest[0] == ':':
		if i > 0 && s[i-1] == ':' {
			return 0, loose
		}
		return i + 1, loose
	case strings.HasPrefix(rest, fullWidthColon):
		return i + len(fullWidthColon), loose
	}
	return 0, loose
}

// isLine reports whether the name that begins at start begins a line, and the value at
// after, behind a space, is the line's only word: a line of settings. Without the space
// it may be a permission, as secret:read.
func isLine(s string, start, after int) bool {
	const most = 64
	if c := s[after-1]; c != ' ' && c != '\t' {
		return false
	}
	for begin := start; begin > 0 && s[begin-1] != '\n'; begin-- {
		if c := s[begin-1]; c != ' ' && c != '\t' && c != '-' && c != '"' && c != '\'' || start-begin > most {
			return false
		}
	}
	end := after
	for end < len(s) && end-after <= most && !isSpace(s[end]) {
		end++
	}
	for end < len(s) && end-after <= most && (s[end] == ' ' || s[end] == '\t') {
		end++
	}
	return end > after && (end == len(s) || s[end] == '\n' || s[end] == '\r')
}

// value finds the secret in the value that begins at i.
func value(s string, i int, how manner) (span, bool) {
	start, end, quoted := extent(s, i)
	if start == end {
		return span{}, false
	}
	v := s[start:end]
	if keeps(v) || isRemark(v) || !quoted && isCount(v) {
		return span{}, false
	}
	if quoted {
		how = max(how, strict)
	}
	switch how {
	case loose:
		if len(v) < minLoose || isWordish(v) {
			return span{}, false
		}
	case random:
		if len(v) < minRandom || isWordish(v) {
			return span{}, false
		}
	case strict:
		if !quoted && isOtherScript(v) {
			return span{}, false
		}
	}
	return span{start, end}, true
}

// What a value needs at least to be a secret, in bytes.
const (
	minLoose  = 4
	minRandom = 16
)

// extent returns where the value at i begins and ends: between quotes, plain or escaped,
// or up to what ends a word.
func extent(s string, i int) (start, end int, quoted bool) {
	open := i
	for open < len(s) && s[open] == '\\' && open-i < 4 {
		open++
	}
	if open < len(s) && strings.IndexByte("\"'`", s[open]) >= 0 {
		start = open + 1
		return start, closing(s, start, s[i:start]), true
	}
	if i < len(s) && (s[i] == '{' || s[i] == '[') && !strings.HasPrefix(s[i:], Marker) || isPlace(s, i) {
		return i, i, false // an object or a list: its members have names of their own
	}
	end = i
	for end < len(s) {
		if strings.HasPrefix(s[end:], Marker) {
			end += len(Marker)
			continue
		}
		if endsValue(s, end) {
			break
		}
		end++
	}
	for end > i && strings.IndexByte(".,:", s[end-1]) >= 0 {
		end--
	}
	return i, end, false
}

// closing returns where the quote that opened as quote closes: before the same quote,
// at the end of the line, or of the text.
func closing(s string, i int, quote string) int {
	for i < len(s) && s[i] != '\n' {
		if strings.HasPrefix(s[i:], quote) {
			return i
		}
		if s[i] == '\\' && len(quote) == 1 {
			i++
		}
		i++
	}
	return min(i, len(s))
}

// endsValue reports whether an unquoted value ends before the byte at i.
func endsValue(s string, i int) bool {
	switch c := s[i]; c {
	case ' ', '\t', '\n', '\r', '"', '\'', '`', '<', '>', ';', '&', '|':
		return true
	case '\\':
		return i+1 < len(s) && strings.IndexByte("\"'nrt", s[i+1]) >= 0
	case ',':
		name := runEnd(s[:min(len(s), i+maxName)], i+1, dotted)
		return i+1 == len(s) || isSpace(s[i+1]) || name > i+1 && name < len(s) && (s[name] == '=' || s[name] == ':')
	case ')', ']', '}':
		return i+1 == len(s) || isSpace(s[i+1]) || strings.IndexByte(".,;:!?)]}\"'`<\\", s[i+1]) >= 0
	case 0xe3: // U+3000 to U+303F, punctuation
		return strings.HasPrefix(s[i+1:], "\x80")
	case 0xef: // U+FF00 to U+FF3F, full-width punctuation
		return strings.HasPrefix(s[i+1:], "\xbc")
	}
	return false
}

// schemes are the names of HTTP authentication schemes, in lower case.
var schemes = []string{
	"bearer", "basic", "token", "digest", "negotiate", "ntlm", "apikey", "aws4-hmac-sha256", "sharedkey", "hoba", "dpop",
}

// authorization finds the credentials in the value at i of the header of that name, which
// begins at name: what follows a scheme, else a random value.
func authorization(s string, name, i int) (span, bool) {
	start := runEnd(s[:min(len(s), i+4)], i, openers)
	for _, scheme := range schemes {
		if !hasPrefixFold(s, start, scheme) {
			continue
		}
		from := credential(s, start+len(scheme))
		if from == 0 {
			continue
		}
		var end int
		switch scheme {
		case "bearer", "basic", "token": // one word
			_, end, _ = extent(s, from)
		default:
			end = endOfField(s, name, i, from)
		}
		if from == end || keeps(s[from:end]) || isRemark(s[from:end]) {
			return span{}, false
		}
		return span{from, end}, true
	}
	return value(s, i, random)
}

// openers are what a value's opening quote is made of.
var openers = newCharset("\\\"'`")

// cookies finds the pairs of the header at i, whose name begins at name.
func cookies(s string, name, i int) (span, bool) {
	const most = 256
	start := runEnd(s[:min(len(s), i+4)], i, openers)
	equals := strings.IndexByte(s[start:min(len(s), start+most)], '=')
	if equals < 0 {
		return span{}, false
	}
	end := endOfField(s, name, i, start)
	return span{start, end}, end > start+equals
}

// endOfField returns where the value of a header's field ends that begins at from: where
// the quote closes that opened at value or before the name, or at the end of the line.
func endOfField(s string, name, value, from int) int {
	quote := s[value:from]
	if !strings.HasSuffix(quote, "\"") && !strings.HasSuffix(quote, "'") {
		quote = "\n"
		if name > 0 && openers[s[name-1]] {
			quote = s[name-1 : name]
		}
	}
	end := closing(s, from, quote)
	if escaped := strings.Index(s[from:end], `\n`); escaped >= 0 {
		end = from + escaped
	}
	for end > from && (isSpace(s[end-1]) || s[end-1] == '\\') {
		end--
	}
	return end
}

// keeps reports whether a value stays whatever its name is: nothing, what was redacted
// already, a place for a value, a reference to a vault.
func keeps(v string) bool {
	v = strings.Trim(v, " ")
	if strings.Trim(strings.ReplaceAll(v, Marker, ""), ".,") == "" {
		return true
	}
	if len(v) > maxKept {
		return false
	}
	switch {
	case strings.Trim(v, "*.-_•?") == "", len(v) > 2 && strings.Trim(v, "xX") == "":
		return true
	case isPlace(v, 0):
		return strings.IndexByte("})>", v[len(v)-1]) >= 0
	case v[0] == '$':
		return strings.Trim(v[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
	}
	return hasVaultForm(v)
}

const maxKept = len(vaultScheme) + 2*maxVaultPart + 1

// isPlace reports whether a place for a value begins at i: ${NAME}, $(command), {{ name }},
// <description>.
func isPlace(s string, i int) bool {
	const most = 64
	for _, signs := range [...][2]string{{"${", "}"}, {"$(", ")"}, {"{{", "}}"}, {"<", ">"}} {
		if strings.HasPrefix(s[i:], signs[0]) && strings.Contains(s[i:min(len(s), i+most)], signs[1]) {
			return true
		}
	}
	return false
}

// isCount reports whether v is a short number.
func isCount(v string) bool {
	return len(v) <= maxWordDigits && strings.Trim(v, "0123456789") == ""
}

// isRemark reports whether v says something of a secret instead of being one.
func isRemark(v string) bool {
	const longest = 12
	if len(v) > longest {
		return false
	}
	switch strings.ToLower(v) {
	case "true", "false", "null", "nil", "none", "undefined", "yes", "no", "on", "off", "ok", "n/a", "na",
		"required", "optional", "missing", "expired", "invalid", "valid", "revoked", "refreshed", "rotated",
		"changed", "unchanged", "unset", "empty", "redacted", "hidden", "masked", "unknown", "present", "absent",
		"string", "str", "text", "bool", "boolean", "int", "integer", "number", "bytes", "varchar", "object",
		"is", "was", "and", "or", "must", "may", "can", "will", "has", "option", "flag", "for", "to", "in", "with":
		return true
	}
	return false
}

// isOtherScript reports whether v is written in letters beyond ASCII only: prose.
func isOtherScript(v string) bool {
	const most = 512
	other := false
	if len(v) > most {
		return false
	}
	for i := range len(v) {
		if isAlphanumeric(v[i]) {
			return false
		}
		other = other || v[i] >= 0x80
	}
	return other
}
