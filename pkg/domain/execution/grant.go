package execution

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/redact"
)

// GrantFields are what is said of a grant, as it was sent: what is absent is nil.
type GrantFields struct {
	SecretRef      *string
	AllowedActions []string
	Constraints    jsontext.Value
	ExpiresAt      *string
	Status         *string
	CreatedBy      *string
	RevokedBy      *string
	CreatedAt      *string
	RevokedAt      *string
}

// Grant is all that is known of a grant, in the form that is stored and sent on: a
// reference to a secret and what may be done with it. What is unknown is absent.
type Grant struct {
	SecretRef      string   `json:"secret_ref,omitzero"` // azkv://vault/name
	AllowedActions []string `json:"allowed_actions,omitzero"`
	// Constraints is a canonical JSON object of scalars.
	Constraints jsontext.Value `json:"constraints,omitzero"`
	ExpiresAt   string         `json:"expires_at,omitzero"`
	Status      string         `json:"status,omitzero"`
	CreatedBy   string         `json:"created_by,omitzero"`
	RevokedBy   string         `json:"revoked_by,omitzero"`
	CreatedAt   string         `json:"created_at,omitzero"`
	RevokedAt   string         `json:"revoked_at,omitzero"`
}

// statusRevoked is the one status with a meaning here.
const statusRevoked = "revoked"

// NewGrant validates what is said of a grant, else InvalidRequest, and tells how many
// constraints were dropped: those that are no scalars, and those whose name is not
// ^[a-z][a-z0-9_]{0,63}$.
func NewGrant(f GrantFields) (g Grant, dropped int, err error) {
	var read form
	g = Grant{
		SecretRef: read.vaultRef(f.SecretRef), AllowedActions: read.names(f.AllowedActions, MaxAllowedActions),
		ExpiresAt: read.moment(f.ExpiresAt), Status: read.name(f.Status), CreatedBy: read.name(f.CreatedBy),
		RevokedBy: read.name(f.RevokedBy), CreatedAt: read.moment(f.CreatedAt), RevokedAt: read.moment(f.RevokedAt),
	}
	if !isAbsent(f.Constraints) {
		constraints, ok := filterConstraints(f.Constraints)
		read.require(ok && constraints.fields <= MaxConstraints)
		g.Constraints, dropped = constraints.payload, constraints.droppedCount
	}
	if read.broken {
		return Grant{}, 0, errGrant
	}
	return g, dropped, nil
}

// filterConstraints keeps the scalars. A name that its caller chose may make a secret of
// a value: {"password":"swordfish"} is refused.
func filterConstraints(raw jsontext.Value) (kept, bool) {
	return filter(raw, func(name string, value jsontext.Value) (jsontext.Value, verdict) {
		if !isFieldName(name) {
			return nil, drop
		}
		value, what := filterScalar(value)
		if what == keep && redact.IsSecret(name+"="+string(bytes.Trim(value, `"`))) {
			return nil, refuse
		}
		return value, what
	})
}

// Over implements [Fact]. Until it is revoked a grant is replaced as a whole; then it is
// final: the same values again change nothing, others are refused with ErrRevoked.
func (g Grant) Over(stored jsontext.Value) (jsontext.Value, bool, error) {
	if stored == nil {
		return write(g, nil)
	}
	before, err := read[Grant](stored)
	if err != nil {
		return nil, false, err
	}
	facts, err := canonical.JSON(g)
	if err != nil {
		return nil, false, err
	}
	changed := !bytes.Equal(facts, stored)
	if changed && before.Final() {
		return nil, false, ErrRevoked
	}
	return facts, changed, nil
}

// Final implements [Fact]: a grant is revoked when its status says so, or when it has a
// time of revocation.
func (g Grant) Final() bool { return g.Status == statusRevoked || g.RevokedAt != "" }
