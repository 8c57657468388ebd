package database

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

const (
	scramIterations = 4096 // PostgreSQL's own default
	scramSaltBytes  = 16
)

// errPasswordCharacters refuses what SCRAM would have to normalise: PostgreSQL, libpq
// and pgx do not agree on it for all characters.
var errPasswordCharacters = errors.New("a password must be of printable ASCII characters and not be empty")

// scramVerifier returns what PostgreSQL stores for a password (RFC 5803). With it, the
// password itself never reaches the server's logs or its statistics views.
func scramVerifier(password string) (string, error) {
	if password == "" {
		return "", errPasswordCharacters
	}
	for _, c := range []byte(password) {
		if c < ' ' || c > '~' {
			return "", errPasswordCharacters
		}
	}
	salt := make([]byte, scramSaltBytes)
	// Never fails: the standard library ends the program instead.
	_, _ = rand.Read(salt)
	return scramVerifierSalted(password, salt)
}

func scramVerifierSalted(password string, salt []byte) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("derive the password's key: %w", err)
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	enc := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramIterations, enc(salt), enc(stored[:]), enc(mac(salted, "Server Key"))), nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
