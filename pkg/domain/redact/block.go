package redact

import "strings"

// privateKey finds a PEM block (RFC 7468) or an SSH2 block of a private key that begins
// with the dashes at i. A block without an end goes on to the end of the text.
func privateKey(s string, i int) (span, bool) {
	const maxLabel = 64
	if i > 0 && s[i-1] == '-' || !strings.HasPrefix(s[i:], "----") {
		return span{}, false
	}
	dashes := i + 4
	if dashes < len(s) && s[dashes] == '-' {
		dashes++
	}
	line := strings.TrimPrefix(s[dashes:min(len(s), dashes+maxLabel)], " ")
	label, ok := strings.CutPrefix(line, "BEGIN ")
	if !ok {
		return span{}, false
	}
	label, _, ok = strings.Cut(label, "--")
	if !ok || !strings.Contains(label, privateKeyLabel) {
		return span{}, false
	}
	end := strings.Index(s[dashes:], "END "+strings.TrimSpace(label))
	if end < 0 {
		return span{i, len(s)}, true
	}
	end += dashes + len("END ") + len(strings.TrimSpace(label))
	for end < len(s) && (s[end] == '-' || s[end] == ' ' && strings.HasPrefix(s[end+1:], "--")) {
		end++
	}
	return span{i, end}, true
}

const privateKeyLabel = "PRIVATE KEY"

// userInfo finds the password of a URL whose authority follows the two slashes at i.
func userInfo(s string, i int) (span, bool) {
	if !strings.HasPrefix(s[i:], "//") {
		return span{}, false
	}
	start := i + 2
	end := start
	for end < len(s) && !endsAuthority(s[end]) {
		end++
	}
	at := strings.LastIndexByte(s[start:end], '@')
	if at < 0 {
		at = strayAt(s, start, end)
	}
	if at < 0 {
		return span{}, false
	}
	user, password, ok := strings.Cut(s[start:start+at], ":")
	if !ok { // a token may stand in the user's place
		if len(user) >= minUserToken && !isWordish(user) && runEnd(user, 0, base64URL) == len(user) {
			return span{start, start + at}, true
		}
		return span{}, false
	}
	if keeps(password) {
		return span{}, false
	}
	return span{start + len(user) + 1, start + at}, true
}

const minUserToken = 20

func endsAuthority(c byte) bool {
	return isSpace(c) || strings.IndexByte("/?#\"'<>`\\", c) >= 0
}

// strayAt returns where, counted from start, the user information ends of an authority
// that seems to end at end because its password holds a '/', '?' or '#'; or -1.
// A host's port has digits only.
func strayAt(s string, start, end int) int {
	const most = 128
	host, port, ok := strings.Cut(s[start:end], ":")
	if !ok || host != "" && host[0] == '[' || strings.Trim(port, "0123456789") == "" {
		return -1
	}
	for i := end; i < len(s) && i < end+most; i++ {
		if c := s[i]; c == '@' {
			return i - start
		} else if isSpace(c) || c == '"' || c == '\'' {
			break
		}
	}
	return -1
}

// dataSource finds the password in user:password@tcp(…), as drivers spell it.
func dataSource(s string, i int) (span, bool) {
	const most = 128
	if !strings.HasPrefix(s[i:], "@tcp(") && !strings.HasPrefix(s[i:], "@unix(") {
		return span{}, false
	}
	start := i
	for start > 0 && i-start < most && !isSpace(s[start-1]) && s[start-1] != '"' && s[start-1] != '\'' {
		start--
	}
	user, password, ok := strings.Cut(s[start:i], ":")
	if !ok || keeps(password) {
		return span{}, false
	}
	return span{start + len(user) + 1, i}, true
}

// element finds the text of an XML element that is named as a secret and opened by the '>' at i.
func element(s string, i int) (span, bool) {
	start := i
	for start > 0 && i-start < maxName && (dotted[s[start-1]] || s[start-1] == ':') {
		start--
	}
	if start == 0 || s[start-1] != '<' || nameKind(s[start:i]) == plain {
		return span{}, false
	}
	length := strings.IndexByte(s[i+1:], '<')
	if length < 0 || !strings.HasPrefix(s[i+1+length:], "</") || keeps(strings.TrimSpace(s[i+1:i+1+length])) {
		return span{}, false
	}
	return span{i + 1, i + 1 + length}, true
}

// flag finds the value of a command's option --password value that begins at i.
func flag(s string, i int) (span, bool) {
	if !strings.HasPrefix(s[i:], "--") || i > 0 && s[i-1] == '-' {
		return span{}, false
	}
	end := runEnd(s[:min(len(s), i+maxName)], i+2, base64URL)
	if end == len(s) || s[end] != ' ' || nameKind(s[i+2:end]) == plain {
		return span{}, false
	}
	if end+1 < len(s) && s[end+1] == '-' {
		return span{}, false
	}
	return value(s, end+1, strict)
}
