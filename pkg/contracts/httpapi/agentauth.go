package httpapi

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxAuthBytes is the size of a request body of Agent Auth: 64 KiB.
const MaxAuthBytes = 64 << 10

// Grant types of the token endpoint.
const (
	GrantAuthorizationCode = "authorization_code"
	GrantRefreshToken      = "refresh_token"
)

// TokenType is the type of every access token.
const TokenType = "Bearer"

// Counts that are asked for while decoding.
const (
	maxRoutes = 64
	maxRoles  = 100
)

type (
	routeList []string
	roleList  []string
)

// UnmarshalJSONFrom reads at most 64 elements.
func (l *routeList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList((*[]string)(l), dec, maxRoutes)
}

// UnmarshalJSONFrom reads at most 100 elements.
func (l *roleList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList((*[]string)(l), dec, maxRoles)
}

// AuthorizationRequest is the body with which an agent asks for an authorization. What is
// absent is empty, which the rules refuse.
type AuthorizationRequest struct {
	ClientAppID         string    `json:"client_app_id"`
	RedirectURI         string    `json:"redirect_uri"`
	State               string    `json:"state"`
	RequestedRoutes     routeList `json:"requested_routes"`
	DeviceLabel         string    `json:"device_label"`
	CodeChallenge       string    `json:"code_challenge"`
	CodeChallengeMethod string    `json:"code_challenge_method"`
}

// AuthorizationOpened answers a request for an authorization.
type AuthorizationOpened struct {
	AuthorizationID  string `json:"authorization_id"`
	AuthorizationURL string `json:"authorization_url"`
	ExpiresIn        int64  `json:"expires_in"` // seconds
}

// Authorization is what a client's backend shows to the person who decides.
type Authorization struct {
	AuthorizationID string              `json:"authorization_id"`
	Client          AuthorizationClient `json:"client"`
	Device          AuthorizationDevice `json:"device"`
	RequestedRoutes []string            `json:"requested_routes"`
	Status          string              `json:"status"`
	ExpiresAt       string              `json:"expires_at"`
}

// AuthorizationClient is the client that is asked.
type AuthorizationClient struct {
	AppID string `json:"app_id"`
	Name  string `json:"name"`
}

// AuthorizationDevice is the device that asks.
type AuthorizationDevice struct {
	Name string `json:"name"`
}

// Approval is the body with which a client's backend approves. What is absent is nil or
// empty.
type Approval struct {
	Principal     *ApprovalPrincipal `json:"principal"`
	OnBehalfOf    string             `json:"on_behalf_of"`
	AllowedRoutes routeList          `json:"allowed_routes"`
}

// ApprovalPrincipal is whom the agent's session will act as.
type ApprovalPrincipal struct {
	ID       string    `json:"id"`
	Tenant   *string   `json:"tenant"`
	Roles    *roleList `json:"roles"`
	Audience *string   `json:"audience"`
	Channel  *string   `json:"channel"`
}

// DecodeApproval reads an approval. A principal without roles says so with an empty list,
// and what a principal does not have is absent, not empty: anything else is ErrInvalid.
func DecodeApproval(data []byte) (Approval, error) {
	var a Approval
	if err := Decode(data, &a); err != nil {
		return Approval{}, err
	}
	p := a.Principal
	if p == nil || p.Roles == nil {
		return Approval{}, ErrInvalid
	}
	for _, s := range []*string{p.Tenant, p.Audience, p.Channel} {
		if s != nil && *s == "" {
			return Approval{}, ErrInvalid
		}
	}
	return a, nil
}

// AuthorizationRedirect answers a decision: where the person's browser goes next.
type AuthorizationRedirect struct {
	RedirectURI string `json:"redirect_uri"`
}

// DecodeGrantType reads only which grant a token request asks for, so that an unknown one
// can be named whatever else it carries. A body that is not one JSON object with a text
// as its grant_type is ErrInvalid.
func DecodeGrantType(data []byte) (string, error) {
	var head struct {
		GrantType *string `json:"grant_type"`
	}
	if err := json.Unmarshal(data, &head); err != nil || head.GrantType == nil {
		return "", ErrInvalid
	}
	return *head.GrantType, nil
}

// CodeGrant is the token request that exchanges a code.
type CodeGrant struct {
	ClientAppID  string
	Code         string
	RedirectURI  string
	CodeVerifier string
}

// DecodeCodeGrant reads a token request of GrantAuthorizationCode. A field that is missing
// or undeclared is ErrInvalid.
func DecodeCodeGrant(data []byte) (CodeGrant, error) {
	var g struct {
		GrantType    *string `json:"grant_type"`
		ClientAppID  *string `json:"client_app_id"`
		Code         *string `json:"code"`
		RedirectURI  *string `json:"redirect_uri"`
		CodeVerifier *string `json:"code_verifier"`
	}
	if err := Decode(data, &g); err != nil {
		return CodeGrant{}, err
	}
	if g.GrantType == nil || g.ClientAppID == nil || g.Code == nil || g.RedirectURI == nil || g.CodeVerifier == nil {
		return CodeGrant{}, ErrInvalid
	}
	return CodeGrant{ClientAppID: *g.ClientAppID, Code: *g.Code, RedirectURI: *g.RedirectURI, CodeVerifier: *g.CodeVerifier}, nil
}

// RefreshGrant is the token request that renews a session's tokens.
type RefreshGrant struct {
	ClientAppID  string
	RefreshToken string
}

// DecodeRefreshGrant reads a token request of GrantRefreshToken. A field that is missing
// or undeclared is ErrInvalid.
func DecodeRefreshGrant(data []byte) (RefreshGrant, error) {
	var g struct {
		GrantType    *string `json:"grant_type"`
		ClientAppID  *string `json:"client_app_id"`
		RefreshToken *string `json:"refresh_token"`
	}
	if err := Decode(data, &g); err != nil {
		return RefreshGrant{}, err
	}
	if g.GrantType == nil || g.ClientAppID == nil || g.RefreshToken == nil {
		return RefreshGrant{}, ErrInvalid
	}
	return RefreshGrant{ClientAppID: *g.ClientAppID, RefreshToken: *g.RefreshToken}, nil
}

// DecodeRevocation reads the revocation of the session that a refresh token belongs to. A
// field that is missing or undeclared is ErrInvalid.
func DecodeRevocation(data []byte) (RefreshGrant, error) {
	var g struct {
		ClientAppID  *string `json:"client_app_id"`
		RefreshToken *string `json:"refresh_token"`
	}
	if err := Decode(data, &g); err != nil {
		return RefreshGrant{}, err
	}
	if g.ClientAppID == nil || g.RefreshToken == nil {
		return RefreshGrant{}, ErrInvalid
	}
	return RefreshGrant{ClientAppID: *g.ClientAppID, RefreshToken: *g.RefreshToken}, nil
}

// Tokens answer a token request.
type Tokens struct {
	TokenType        string `json:"token_type"`
	AccessToken      string `json:"access_token"`
	ExpiresIn        int64  `json:"expires_in"` // seconds
	RefreshToken     string `json:"refresh_token"`
	RefreshExpiresIn int64  `json:"refresh_expires_in"` // seconds
	SessionID        string `json:"session_id"`
	ClientAppID      string `json:"client_app_id"`
}

// AgentSession is what an agent sees of its own session. ExpiresAt is that of the access token
// it asks with.
type AgentSession struct {
	SessionID        string         `json:"session_id"`
	ClientAppID      string         `json:"client_app_id"`
	DeviceLabel      string         `json:"device_label"`
	Principal        jsontext.Value `json:"principal"`
	OnBehalfOf       string         `json:"on_behalf_of"`
	AllowedRoutes    []string       `json:"allowed_routes"`
	CreatedAt        string         `json:"created_at"`
	ExpiresAt        string         `json:"expires_at"`
	RefreshExpiresAt string         `json:"refresh_expires_at"`
}

// Revoked answers every revocation.
type Revoked struct {
	Revoked bool `json:"revoked"`
}
