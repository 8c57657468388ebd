package postgres

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
)

type authorizationRow struct {
	AuthorizationID string `gorm:"primaryKey"`
	ClientAppID     string
	RedirectURI     string
	State           string
	RequestedRoutes textArray
	DeviceLabel     string
	CodeChallenge   string
	Address         string
	CreatedAt       time.Time
	ExpiresAt       time.Time
	DecidedAt       *time.Time
	Approved        *bool
	Principal       *string
	OnBehalfOf      *string
	AllowedRoutes   *textArray
	CodeHash        []byte
	CodeExpiresAt   *time.Time
	ConsumedAt      *time.Time
	SessionID       *string
}

// TableName implements gorm's Tabler.
func (authorizationRow) TableName() string { return "bz_agent_authorizations" }

// decisionColumns are what an authorization changes in.
var decisionColumns = []string{
	"decided_at", "approved", "principal", "on_behalf_of", "allowed_routes", "code_hash", "code_expires_at", "consumed_at", "session_id",
}

func newAuthorizationRow(a *authorization.Authorization, from netip.Prefix) (authorizationRow, error) {
	row := authorizationRow{
		AuthorizationID: string(a.ID), ClientAppID: a.ClientAppID, RedirectURI: string(a.Redirect), State: a.State,
		RequestedRoutes: a.RequestedRoutes, DeviceLabel: a.DeviceLabel, CodeChallenge: a.Challenge,
		Address: from.String(), CreatedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt,
	}
	if a.Decision == nil {
		return row, nil
	}
	approval := a.Decision.Approval
	approved := approval != nil
	row.DecidedAt, row.Approved = &a.Decision.At, &approved
	if !approved {
		return row, nil
	}
	principal, err := approval.Principal.Marshal()
	if err != nil {
		return authorizationRow{}, fmt.Errorf("authorization %s: %w", a.ID, err)
	}
	text, routes := string(principal), textArray(approval.AllowedRoutes)
	row.Principal, row.OnBehalfOf, row.AllowedRoutes = &text, &approval.OnBehalfOf, &routes
	row.CodeHash, row.CodeExpiresAt = approval.CodeHash[:], &approval.CodeExpiresAt
	if c := approval.Consumption; c != nil {
		session := string(c.SessionID)
		row.ConsumedAt, row.SessionID = &c.At, &session
	}
	return row, nil
}

// authorization gives the row the domain's form. What the table's checks promise is not
// asked again.
func (r *authorizationRow) authorization() (*authorization.Authorization, error) {
	a := &authorization.Authorization{
		ID: identity.UUID(r.AuthorizationID), CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt,
		Request: authorization.Request{
			ClientAppID: r.ClientAppID, Redirect: authorization.Redirect(r.RedirectURI), State: r.State,
			RequestedRoutes: r.RequestedRoutes, DeviceLabel: r.DeviceLabel, Challenge: r.CodeChallenge,
		},
	}
	if r.DecidedAt == nil {
		return a, nil
	}
	a.Decision = &authorization.Decision{At: *r.DecidedAt}
	if !*r.Approved {
		return a, nil
	}
	principal, err := identity.ParsePrincipal([]byte(*r.Principal))
	if err != nil {
		return nil, fmt.Errorf("read authorization %s: %w", r.AuthorizationID, err)
	}
	approval := &authorization.Approval{CodeExpiresAt: *r.CodeExpiresAt, Grant: authorization.Grant{
		Principal: principal, OnBehalfOf: *r.OnBehalfOf, AllowedRoutes: *r.AllowedRoutes,
	}}
	if approval.CodeHash, err = hashOf(r.CodeHash); err != nil {
		return nil, fmt.Errorf("read authorization %s: %w", r.AuthorizationID, err)
	}
	if r.ConsumedAt != nil {
		approval.Consumption = &authorization.Consumption{At: *r.ConsumedAt, SessionID: identity.UUID(*r.SessionID)}
	}
	a.Decision.Approval = approval
	return a, nil
}

func hashOf(b []byte) (hash [sha256.Size]byte, err error) {
	if copy(hash[:], b) != len(hash) {
		err = errors.New("a hash is too short")
	}
	return hash, err
}

type refreshTokenRow struct {
	TokenHash     []byte `gorm:"primaryKey"`
	SessionID     string
	CreatedAt     time.Time
	ExpiresAt     time.Time
	UsedAt        *time.Time
	SuccessorHash []byte
	AccessHash    []byte
}

// TableName implements gorm's Tabler.
func (refreshTokenRow) TableName() string { return "bz_agent_refresh_tokens" }
