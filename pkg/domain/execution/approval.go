package execution

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/redact"
	"verbatim.internal/pkg/domain/trace"
)

// ApprovalFields are what is said of an approval, as it was sent: what is absent is nil.
type ApprovalFields struct {
	Operation     *string
	RiskLevel     *string
	Decision      *string
	CredentialRef *string
	LeaseID       *string
	Scope         *string
	ExpiresAt     *string
	Reason        *string
	DecidedAt     *string
}

// Approval is all that is known of an approval, in the form that is stored and sent on.
// What is unknown is absent.
type Approval struct {
	Operation     string `json:"operation,omitzero"`
	RiskLevel     string `json:"risk_level,omitzero"`
	Decision      string `json:"decision,omitzero"`       // approved or rejected
	CredentialRef string `json:"credential_ref,omitzero"` // azkv://vault/name
	LeaseID       string `json:"lease_id,omitzero"`
	Scope         string `json:"scope,omitzero"`
	ExpiresAt     string `json:"expires_at,omitzero"`
	// Reason is redacted; it is the one text that an execution keeps.
	Reason    string `json:"reason,omitzero"`
	DecidedAt string `json:"decided_at,omitzero"`
	// DecidedBy is whom the deciding call was attributed to.
	DecidedBy *Decider `json:"decided_by,omitzero"`
}

// Decider is a user and a channel.
type Decider struct {
	UserID    string `json:"user_id,omitzero"`
	ChannelID string `json:"channel_id,omitzero"`
}

// NewApproval validates what is said of an approval, else InvalidRequest. A blank reason
// is none.
func NewApproval(f ApprovalFields, by Attribution) (Approval, error) {
	var read form
	a := Approval{
		Operation: read.name(f.Operation), RiskLevel: read.name(f.RiskLevel), Decision: read.name(f.Decision),
		CredentialRef: read.vaultRef(f.CredentialRef), LeaseID: read.name(f.LeaseID), Scope: read.name(f.Scope),
		ExpiresAt: read.moment(f.ExpiresAt), Reason: read.reason(f.Reason), DecidedAt: read.moment(f.DecidedAt),
	}
	switch a.Decision {
	case "":
	case string(trace.Approved), string(trace.Rejected):
		if decider := (Decider{UserID: by.UserID, ChannelID: by.ChannelID}); decider != (Decider{}) {
			a.DecidedBy = &decider
		}
	default:
		read.require(false)
	}
	if read.broken {
		return Approval{}, errApproval
	}
	return a, nil
}

// reason returns an optional text without its secrets, "" for none. It is measured as
// sent and as kept: a marker may be longer than the secret that it stands for.
func (f *form) reason(s *string) string {
	if s == nil || strings.TrimSpace(*s) == "" {
		return ""
	}
	if f.require(archive.IsText(*s, MaxReason)); f.broken {
		return ""
	}
	redacted := redact.Text(*s)
	f.require(archive.IsText(redacted, MaxReason))
	return redacted
}

// Over implements [Fact]. Until it is decided an approval is replaced as a whole; then it
// is frozen: the same values again change nothing, whoever says them, others are refused
// with ErrDecided.
func (a Approval) Over(stored jsontext.Value) (jsontext.Value, bool, error) {
	if stored == nil {
		return write(a, nil)
	}
	before, err := read[Approval](stored)
	if err != nil {
		return nil, false, err
	}
	if !before.Final() {
		return write(a, stored)
	}
	a.DecidedBy, before.DecidedBy = nil, nil
	if a != before {
		return nil, false, ErrDecided
	}
	return stored, false, nil
}

// Final implements [Fact].
func (a Approval) Final() bool { return a.Decision != "" }
