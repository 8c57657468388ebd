package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Permissions that grant something.
const (
	// PermissionRead opens everything, conversations included.
	PermissionRead = "runs:read"
	// PermissionMetadata opens lists, traces and audit records: no text, no principal.
	PermissionMetadata = "runs:metadata"
)

// TokenPrefix begins every administrator's token; 43 base64url characters follow.
const TokenPrefix = "bva_"

var tokenPattern = regexp.MustCompile(`^bva_[A-Za-z0-9_-]{43}$`)

// Administrator is somebody who may read.
type Administrator struct {
	Name        string
	Permissions []string
}

// May reports whether the administrator has a permission; runs:read includes runs:metadata.
func (a Administrator) May(permission string) bool {
	return slices.Contains(a.Permissions, permission) ||
		permission == PermissionMetadata && slices.Contains(a.Permissions, PermissionRead)
}

// TokenHash is the SHA-256 of a token: all that is stored of it.
type TokenHash [sha256.Size]byte

// ParseToken returns the hash of a token, and false for what has not a token's form.
func ParseToken(token string) (TokenHash, bool) {
	if !tokenPattern.MatchString(token) {
		return TokenHash{}, false
	}
	return sha256.Sum256([]byte(token)), true
}

// newToken returns a random token.
func newToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// AdministratorStore keeps administrators. Errors of a store that is away are
// ErrUnavailable. Safe for concurrent use.
type AdministratorStore interface {
	// Administrator returns whose token it is; false when it is nobody's.
	Administrator(ctx context.Context, token TokenHash) (Administrator, bool, error)
	// ChangeAdministrators runs fn in one transaction that no other change runs beside.
	ChangeAdministrators(ctx context.Context, fn func(tx AdministratorTx) error) error
}

// AdministratorTx changes administrators within a transaction.
type AdministratorTx interface {
	// Get returns an administrator and its tokens' hashes; false when there is none.
	Get(ctx context.Context, name string) (Administrator, []TokenHash, bool, error)
	// Put creates or replaces an administrator.
	Put(ctx context.Context, a Administrator, now time.Time) error
	// SetToken makes a token the only one of an administrator. It reports false when the
	// token is somebody else's; the transaction must then be given up.
	SetToken(ctx context.Context, name string, token TokenHash, now time.Time) (bool, error)
}

// Change says what applying a file did with one thing.
type Change struct {
	Kind   string // "administrator"
	Name   string
	Action string // "created", "updated" or "unchanged"
	Fields []string
}

// Token is a token that was generated. It is shown once and stored nowhere.
type Token struct {
	Kind  string
	Name  string
	Value string
}

// ApplyResult is what applying a file did.
type ApplyResult struct {
	Changes []Change
	Tokens  []Token
	// Warnings are sentences about what was accepted and has no effect.
	Warnings []string
}

// Administrators applies files and authenticates bearers. Safe for concurrent use.
type Administrators struct {
	store AdministratorStore
	now   func() time.Time
}

// NewAdministrators returns the use case; now is the clock.
func NewAdministrators(store AdministratorStore, now func() time.Time) *Administrators {
	return &Administrators{store, now}
}

// Authenticate returns whose token it is; false when it is malformed or nobody's.
func (a *Administrators) Authenticate(ctx context.Context, token string) (Administrator, bool, error) {
	hash, ok := ParseToken(token)
	if !ok {
		return Administrator{}, false, nil
	}
	return a.store.Administrator(ctx, hash)
}

// Apply upserts the administrators of a file, YAML or JSON, in one transaction: all of
// it holds afterwards, or nothing changed. Administrators that the file does not name
// stay as they are. A given token replaces an administrator's tokens; without one, a
// token is generated for whoever has none. Errors are sentences for an operator and
// never contain a token.
func (a *Administrators) Apply(ctx context.Context, file []byte) (ApplyResult, error) {
	entries, warnings, err := parseAdministrators(file)
	if err != nil {
		return ApplyResult{}, err
	}
	var result ApplyResult
	err = a.store.ChangeAdministrators(ctx, func(tx AdministratorTx) error {
		result = ApplyResult{Warnings: warnings}
		for _, e := range entries {
			if err := a.applyOne(ctx, tx, e, &result); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return ApplyResult{}, err
	}
	return result, nil
}

const kindAdministrator = "administrator"

func (a *Administrators) applyOne(ctx context.Context, tx AdministratorTx, e administratorEntry, result *ApplyResult) error {
	now := a.now().UTC().Truncate(time.Microsecond)
	stored, tokens, exists, err := tx.Get(ctx, e.Name)
	if err != nil {
		return fmt.Errorf("read administrator %q: %w", e.Name, err)
	}
	change := Change{Kind: kindAdministrator, Name: e.Name, Action: "unchanged"}
	if !exists || !slices.Equal(stored.Permissions, e.Permissions) {
		if err := tx.Put(ctx, Administrator{e.Name, e.Permissions}, now); err != nil {
			return fmt.Errorf("write administrator %q: %w", e.Name, err)
		}
		change.Fields = append(change.Fields, "permissions")
	}
	token := e.Token
	if token == "" && len(tokens) == 0 {
		token = newToken()
		result.Tokens = append(result.Tokens, Token{kindAdministrator, e.Name, token})
	}
	if hash, ok := ParseToken(token); ok && !slices.Equal(tokens, []TokenHash{hash}) {
		free, err := tx.SetToken(ctx, e.Name, hash, now)
		if err != nil {
			return fmt.Errorf("write the token of administrator %q: %w", e.Name, err)
		}
		if !free {
			return fmt.Errorf("the token of administrator %q is another administrator's", e.Name)
		}
		change.Fields = append(change.Fields, "token")
	}
	switch {
	case !exists:
		change.Action = "created"
	case len(change.Fields) > 0:
		change.Action = "updated"
	}
	result.Changes = append(result.Changes, change)
	return nil
}
