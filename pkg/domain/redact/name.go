package redact

import "strings"

// kind is how far a name tells that its value is a secret.
type kind int

const (
	// plain names something else.
	plain kind = iota
	// soft names what may be a secret or only a word for one: a random value is one.
	soft
	// strong names a secret.
	strong
	// header names a field of an HTTP request with credentials: Authorization.
	header
	// jar names a field of an HTTP message with cookies.
	jar
)

// maxName bounds the bytes before a sign of assignment that are read as a name.
const maxName = 48

// The ends of names, in lower case and without separators.
var (
	strongNames = []string{
		"password", "passwd", "passwort", "pwd", "passphrase", "passcode",
		"secret", "secretvalue", "token", "apikey", "accesskey", "accesskeys", "secretkey", "accountkey", "privatekey",
		"signingkey", "encryptionkey", "masterkey", "sharedkey", "storagekey", "authkey", "servicekey",
		"subscriptionkey", "clientkey", "hmackey", "xapikey", "sharedaccesssignature", "connectionstring",
	}
	softNames  = []string{"credential", "credentials", "bearer", "auth", "codeverifier"}
	localNames = []string{"密码", "口令", "密钥", "令牌", "凭证"}
)

// nameKind tells what the end of a name, as userPassword, DB_PASS or x-api-key, says of its value.
func nameKind(name string) kind {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	var folded [maxName]byte
	letters := folded[:0]
	for i := range len(name) {
		if c := name[i]; isAlphanumeric(c) {
			letters = append(letters, lower(c))
		}
	}
	word := string(letters)
	switch {
	case word == "pwd" && name != "pwd" || word == "oldpwd":
		return plain // a shell's working directory
	case word == "authorization" || word == "proxyauthorization":
		return header
	case word == "cookie" || word == "setcookie":
		return jar
	case word == "sig":
		return soft
	}
	for _, suffix := range strongNames {
		if strings.HasSuffix(word, suffix) {
			return strong
		}
	}
	for _, suffix := range softNames {
		if strings.HasSuffix(word, suffix) {
			return soft
		}
	}
	if endsWithWord(name, "pass") || endsWithWord(name, "pw") {
		return strong
	}
	return plain
}

// endsWithWord reports whether the last word of a name is word; that of bypass is not pass.
func endsWithWord(name, word string) bool {
	i := len(name) - len(word)
	if i < 0 || !strings.EqualFold(name[i:], word) {
		return false
	}
	return i == 0 || !isAlphanumeric(name[i-1]) || isUpper(name[i]) && isLower(name[i-1])
}

func lower(c byte) byte {
	if isUpper(c) {
		return c + 'a' - 'A'
	}
	return c
}

// named returns what the name says that ends before the sign of assignment at i, and
// where it begins. Quotes, brackets and a space may stand between, and a name may be of
// several words: "api key".
func named(s string, i int) (kind, int) {
	const maxClosers = 6
	end := i
	for end > 0 && i-end < maxClosers && strings.IndexByte(" \t\"'`\\])*", s[end-1]) >= 0 {
		end--
	}
	start := end
	for start > 0 && end-start < maxName && (dotted[s[start-1]] || s[start-1] == ' ') {
		start--
	}
	if start < end {
		name := s[start:end]
		start += strings.LastIndexByte(name, ' ') + 1
		if k := nameKind(s[start:end]); k != plain {
			return k, start
		}
		return nameKind(name), start
	}
	for _, name := range localNames {
		if strings.HasSuffix(s[:end], name) {
			return strong, end - len(name)
		}
	}
	return plain, end
}
