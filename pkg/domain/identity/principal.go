package identity

import (
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

const (
	// maxValue bounds every string of a principal and on_behalf_of, in characters.
	maxValue = 191
	// maxRoles bounds a principal's roles, so that a message about members stays bounded.
	maxRoles = 100
)

// ErrPrincipal is a principal whose members are missing, empty, too long or too many.
var ErrPrincipal = errors.New("a principal needs an id, its values have 1 to 191 characters, and it has at most 100 roles")

// Principal is whom a session acts as. Absent members are empty; roles keep
// their order. Its JSON has no white space and no member that is absent.
type Principal struct {
	ID       string   `json:"id"`
	Tenant   string   `json:"tenant,omitzero"`
	Roles    []string `json:"roles,omitzero"`
	Audience string   `json:"audience,omitzero"`
	Channel  string   `json:"channel,omitzero"`
}

// Validate reports ErrPrincipal when a value is missing, not UTF-8 or longer than
// 191 characters, or there are more than 100 roles.
func (p Principal) Validate() error {
	if p.ID == "" || len(p.Roles) > maxRoles {
		return ErrPrincipal
	}
	values := append([]string{p.ID, p.Tenant, p.Audience, p.Channel}, p.Roles...)
	for _, v := range values {
		if !utf8.ValidString(v) || utf8.RuneCountInString(v) > maxValue {
			return ErrPrincipal
		}
	}
	if slices.Contains(p.Roles, "") {
		return ErrPrincipal
	}
	return nil
}

// Marshal returns the principal's JSON, the bytes that are stored and come back.
func (p Principal) Marshal() ([]byte, error) { return json.Marshal(p) }

// ParsePrincipal reads what Marshal wrote. It is strict and validates.
func ParsePrincipal(data []byte) (Principal, error) {
	var p Principal
	if err := json.Unmarshal(data, &p, json.RejectUnknownMembers(true)); err != nil {
		return Principal{}, ErrPrincipal
	}
	return p, p.Validate()
}

// Audience is a route's audience policy: who may use it.
type Audience struct {
	// Enabled false admits everybody, whatever the lists say.
	Enabled bool `json:"enabled"`
	// Each list that is not empty must contain "*" or the caller's value.
	Clients    []string `json:"clients,omitzero"`
	Channels   []string `json:"channels,omitzero"`
	Tenants    []string `json:"tenants,omitzero"`
	Roles      []string `json:"roles,omitzero"`
	Principals []string `json:"principals,omitzero"`
	Audiences  []string `json:"audiences,omitzero"`
}

// Admits reports whether the policy lets p in, acting through the client.
// A principal without a channel has channel "agent:<clientAppID>".
func (a Audience) Admits(clientAppID string, p Principal) bool {
	if !a.Enabled {
		return true
	}
	channel := p.Channel
	if channel == "" {
		channel = "agent:" + clientAppID
	}
	return admits(a.Clients, clientAppID) &&
		admits(a.Channels, channel) &&
		admits(a.Tenants, p.Tenant) &&
		admits(a.Roles, p.Roles...) &&
		admits(a.Principals, p.ID) &&
		admits(a.Audiences, p.Audience)
}

// admits reports whether list is empty, holds "*", or holds one of values.
func admits(list []string, values ...string) bool {
	if len(list) == 0 || slices.Contains(list, anyValue) {
		return true
	}
	for _, v := range values {
		if v != "" && slices.Contains(list, v) {
			return true
		}
	}
	return false
}
