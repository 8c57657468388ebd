package run

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/execution"
)

// Status says how a run ended.
type Status string

// The statuses of a completion.
const (
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Usage is what a run used: tokens and calls from 0 to 2^53-1, US dollars from 0 to 1e12.
// What a host does not say is nil.
type Usage struct {
	InputTokens       *int64   `json:"input_tokens,omitzero"`
	CachedInputTokens *int64   `json:"cached_input_tokens,omitzero"`
	OutputTokens      *int64   `json:"output_tokens,omitzero"`
	TotalTokens       *int64   `json:"total_tokens,omitzero"`
	ToolCalls         *int64   `json:"tool_calls,omitzero"`
	CostUSD           *float64 `json:"cost_usd,omitzero"`
}

// CompletionFields are a completion as it was sent: what is absent is nil.
type CompletionFields struct {
	AssistantMessageID string  `json:"assistant_message_id"`
	Status             string  `json:"status"`
	Content            *string `json:"content"`
	Model              *string `json:"model,omitzero"`
	Runtime            *string `json:"runtime,omitzero"`
	Usage              *Usage  `json:"usage,omitzero"`
}

// Completion is how a run ended: what may be stored of it.
type Completion struct {
	AssistantMessageID string
	Status             Status
	Model, Runtime     string         // "" where the host did not say
	Usage              jsontext.Value // canonical JSON, nil where the host did not say
	// RequestHash tells whether a repeated completion is the same: the SHA-256 of the whole
	// request's RFC 8785 JSON.
	RequestHash [sha256.Size]byte
	// ContentHash is the SHA-256 of the content's UTF-8.
	ContentHash [sha256.Size]byte
}

// NewCompletion validates a completion, else InvalidRequest. The message id is an
// identifier. The content is a visible text; it may be empty unless the status is
// completed. Model and runtime are names of the audit record ([execution.IsName]).
func NewCompletion(f CompletionFields) (Completion, error) {
	c := Completion{AssistantMessageID: f.AssistantMessageID, Status: Status(f.Status)}
	switch c.Status {
	case Completed, Failed, Cancelled:
	default:
		return Completion{}, errCompletion
	}
	if !archive.IsIdentifier(f.AssistantMessageID) || f.Content == nil || !f.Usage.isValid() {
		return Completion{}, errCompletion
	}
	if empty := *f.Content == ""; empty && c.Status == Completed || !empty && !archive.IsText(*f.Content, maxTextUnits) {
		return Completion{}, errCompletion
	}
	for _, name := range []struct {
		sent *string
		kept *string
	}{{f.Model, &c.Model}, {f.Runtime, &c.Runtime}} {
		if name.sent == nil {
			continue
		}
		if *name.kept = *name.sent; !execution.IsName(*name.sent) {
			return Completion{}, errCompletion
		}
	}
	var err error
	if f.Usage != nil {
		if c.Usage, err = canonicalJSON(f.Usage); err != nil {
			return Completion{}, errCompletion
		}
	}
	if c.RequestHash, err = sum(f); err != nil {
		return Completion{}, errCompletion
	}
	c.ContentHash = sha256.Sum256([]byte(*f.Content))
	return c, nil
}

func (u *Usage) isValid() bool {
	if u == nil {
		return true
	}
	for _, n := range []*int64{u.InputTokens, u.CachedInputTokens, u.OutputTokens, u.TotalTokens, u.ToolCalls} {
		if n != nil && (*n < 0 || *n > MaxSafeInteger) {
			return false
		}
	}
	const maxCost = 1e12
	return u.CostUSD == nil || *u.CostUSD >= 0 && *u.CostUSD <= maxCost
}

// CompletionHistory is what a completion is judged against, read under the run's lock.
type CompletionHistory struct {
	// Stored is the run's completion, nil while there is none.
	Stored *[sha256.Size]byte
	// MessageUsed is true when another run of the thread has the completion's message id.
	MessageUsed bool
}

// Complete decides about a completion: true when it repeats the stored one, false when it
// is to be stored, ErrCompleted or ErrMessage when it contradicts what is stored.
func (c Completion) Complete(h CompletionHistory) (replay bool, err error) {
	switch {
	case h.Stored != nil && *h.Stored == c.RequestHash:
		return true, nil
	case h.Stored != nil:
		return false, ErrCompleted
	case h.MessageUsed:
		return false, ErrMessage
	}
	return false, nil
}
