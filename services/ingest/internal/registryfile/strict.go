package registryfile

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/identity"
)

// What opens a door is never guessed: a field that is there without a value would
// otherwise count as absent, and an absent policy admits everybody.
var (
	errNull     = errors.New("a value is missing")
	errDisabled = errors.New("lists without enabled: true would admit everybody")
	refuseNull  = json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, _ **audience) error { return notNull(dec) }),
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, _ *[]string) error { return notNull(dec) }),
	))
)

// notNull leaves everything but a null to the default.
func notNull(dec *jsontext.Decoder) error {
	if dec.PeekKind() == jsontext.KindNull {
		return errNull
	}
	return errors.ErrUnsupported
}

// flag is true or false, and knows whether it was given.
type flag struct{ given, value bool }

// or returns what was given, else the default.
func (f flag) or(byDefault bool) bool {
	if f.given {
		return f.value
	}
	return byDefault
}

// UnmarshalJSONFrom reads a boolean and nothing else.
func (f *flag) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case jsontext.KindTrue, jsontext.KindFalse:
		f.given, f.value = true, token.Bool()
		return nil
	default:
		return errNull
	}
}

// audience is a route's policy as an operator writes it.
type audience identity.Audience

// UnmarshalJSONFrom refuses lists that would have no effect.
func (a *audience) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var policy struct {
		Enabled flag `json:"enabled"`

		Clients    []string `json:"clients"`
		Channels   []string `json:"channels"`
		Tenants    []string `json:"tenants"`
		Roles      []string `json:"roles"`
		Principals []string `json:"principals"`
		Audiences  []string `json:"audiences"`
	}
	if err := json.UnmarshalDecode(dec, &policy); err != nil {
		return err
	}
	lists := len(policy.Clients) + len(policy.Channels) + len(policy.Tenants) + len(policy.Roles) + len(policy.Principals) + len(policy.Audiences)
	if !policy.Enabled.given && lists > 0 {
		return errDisabled
	}
	*a = audience{
		Enabled: policy.Enabled.value, Clients: policy.Clients, Channels: policy.Channels, Tenants: policy.Tenants,
		Roles: policy.Roles, Principals: policy.Principals, Audiences: policy.Audiences,
	}
	return nil
}
