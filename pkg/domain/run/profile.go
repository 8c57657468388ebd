package run

import (
	"encoding/hex"

	"verbatim.internal/pkg/domain/canonical"
)

// Workspace is a route that a session may use, with what its agents are told.
type Workspace struct {
	RouteKey     string
	Name         string
	Instructions string // "" for none
}

// Revision names the content of an answer, which must not have a revision yet: the SHA-256
// of its RFC 8785 JSON, as 64 hexadecimal digits. It changes exactly when the content does.
func Revision(answer any) (string, error) {
	hash, err := canonical.Sum(answer)
	return hex.EncodeToString(hash[:]), err
}
