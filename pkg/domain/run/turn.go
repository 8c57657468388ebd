package run

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/archive"
)

// TurnFields are a turn as it was sent: what is absent is nil.
type TurnFields struct {
	ClientConversationID string         `json:"client_conversation_id"`
	ClientTurnID         string         `json:"client_turn_id"`
	UserMessageID        string         `json:"user_message_id"`
	UserInput            string         `json:"user_input"`
	PageContext          jsontext.Value `json:"page_context,omitzero"`
	Renderers            []string       `json:"renderers,omitzero"`
}

// Turn is what opens a run. Its fields are what was sent, the page context in its one
// spelling; only the hashes of its texts may be stored.
type Turn struct {
	TurnFields
	// InputHash tells whether a repeated turn is the same: the SHA-256 of the whole request's
	// RFC 8785 JSON, in which integers keep their digits.
	InputHash [sha256.Size]byte
	// UserInputHash is the SHA-256 of the user input's UTF-8.
	UserInputHash [sha256.Size]byte
	// PageContextHash is the SHA-256 of the page context, nil when there is none.
	PageContextHash []byte
}

// NewTurn validates a turn. The identifiers are those of the archive's contract. The user
// input is a visible text. The page context is any JSON object, written anew with its names
// sorted and without white space, of at most 16 KiB then (RunLimit). Renderers are up to 32
// distinct names, ^[a-z0-9][a-z0-9_.-]{0,63}$. Everything else is refused with InvalidRequest.
func NewTurn(f TurnFields) (Turn, error) {
	if !archive.IsIdentifier(f.ClientConversationID) || !archive.IsIdentifier(f.ClientTurnID) ||
		!archive.IsIdentifier(f.UserMessageID) || !archive.IsText(f.UserInput, maxTextUnits) || !areRenderers(f.Renderers) {
		return Turn{}, errTurn
	}
	t := Turn{TurnFields: f, UserInputHash: sha256.Sum256([]byte(f.UserInput))}
	if f.PageContext != nil {
		if f.PageContext.Kind() != jsontext.KindBeginObject {
			return Turn{}, errTurn
		}
		spelled, err := canonicalJSON(f.PageContext)
		if err != nil {
			return Turn{}, errTurn
		}
		if len(spelled) > MaxPageContextBytes {
			return Turn{}, errPageContext
		}
		hash := sha256.Sum256(spelled)
		t.PageContext, t.PageContextHash = spelled, hash[:]
	}
	var err error
	if t.InputHash, err = sum(t.TurnFields); err != nil {
		return Turn{}, errTurn
	}
	return t, nil
}

func areRenderers(names []string) bool {
	if len(names) > MaxRenderers {
		return false
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] || !isRenderer(name) {
			return false
		}
		seen[name] = true
	}
	return true
}

// isRenderer reports whether s is ^[a-z0-9][a-z0-9_.-]{0,63}$.
func isRenderer(s string) bool {
	if s == "" || len(s) > 64 || !isLower(s[0]) && !isDigit(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLower(c) && !isDigit(c) && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}
