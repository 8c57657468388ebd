package client

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
)

// newUUID returns a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newSecret returns 32 random bytes in base64url: 43 characters.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return encodeBytes(b[:])
}

// challengeOf is the PKCE challenge of a verifier, method S256.
func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return encodeBytes(sum[:])
}

// sameSecret compares in constant time.
func sameSecret(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
