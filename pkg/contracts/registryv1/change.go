// Package registryv1 holds the messages about a change of ingest's registry, version 1:
// recorded, and the snapshot that replaces it. Their stream kind is "registry_change",
// their stream id the change id; a change never changes, so its only version is 1.
// Marshal and Unmarshal both validate; errors carry no values.
package registryv1

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// StreamKind is the kind of every change's stream.
const StreamKind = "registry_change"

// Types of messages. The data of both is a Change; a snapshot has one part.
const (
	TypeRecorded = "verbatim.registry_change.recorded.v1"
	TypeSnapshot = "verbatim.registry_change.snapshot.v1"
)

// Kinds of entries.
const (
	KindClient     = "client"
	KindRoute      = "route"
	KindSession    = "session"
	KindRun        = "run"
	KindController = "controller"
)

// What became of an entry.
const (
	ActionCreated = "created"
	ActionUpdated = "updated"
	ActionRevoked = "revoked"
)

// Kinds of actors.
const (
	ActorOperator   = "operator"   // a person at the command line
	ActorController = "controller" // a program at the control API
	ActorClient     = "client"     // a client's backend, at Agent Auth
	ActorSession    = "session"    // an agent, for its own session
	ActorSystem     = "system"     // ingest itself: a used refresh token came back
)

const (
	maxName   = 191 // characters of names
	maxFields = 64
)

// ErrData is data that is not the JSON of a change. It never carries a part of the data.
var ErrData = errors.New("registryv1: data is not a change")

var (
	uuidPattern  = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	fieldPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// Change is one change of one entry of the registry: who, when and what, never a secret.
type Change struct {
	ChangeID string `json:"change_id"`
	// Number orders changes, from 1 up. Those of one entry are in commit order.
	Number int64  `json:"number"`
	Kind   string `json:"kind"`
	// Name is the entry's key: a client's app id, a route's key, a UUID, a controller's name.
	Name   string `json:"name"`
	Action string `json:"action"`
	// Fields name everything that was changed; none for what was created.
	Fields []string `json:"fields"`
	// Changes give the values of those fields whose values may be shown.
	Changes    []FieldChange `json:"changes"`
	Actor      Actor         `json:"actor"`
	RecordedAt time.Time     `json:"recorded_at"`
}

// FieldChange is a field's value before and after. An absent value is null.
type FieldChange struct {
	Field string         `json:"field"`
	From  jsontext.Value `json:"from"`
	To    jsontext.Value `json:"to"`
}

// Actor is who made a change.
type Actor struct {
	Kind string `json:"kind"`
	// Name is a controller's name, a client's app id or a session's UUID; empty for operator and system.
	Name string `json:"name"`
}

// FieldError is a field that breaks its rule. It carries no value.
type FieldError struct {
	Field string
	Rule  string
}

func (e *FieldError) Error() string { return "registryv1: " + e.Field + " " + e.Rule }

// Validate reports fields that break a rule, as joined FieldErrors.
func (c Change) Validate() error {
	var errs []error
	check := func(ok bool, field, rule string) {
		if !ok {
			errs = append(errs, &FieldError{field, rule})
		}
	}
	check(uuidPattern.MatchString(c.ChangeID), "change_id", "must be a lower-case UUID")
	check(c.Number >= 1, "number", "must be from 1 up")
	kinds := []string{KindClient, KindRoute, KindSession, KindRun, KindController}
	check(slices.Contains(kinds, c.Kind), "kind", "must be a kind of entry")
	check(isName(c.Name), "name", "must have 1 to 191 characters")
	check(slices.Contains([]string{ActionCreated, ActionUpdated, ActionRevoked}, c.Action), "action", "must be created, updated or revoked")
	check(len(c.Fields) <= maxFields && !slices.ContainsFunc(c.Fields, isNoField), "fields", "must be names of fields, at most 64")
	ok := len(c.Changes) <= maxFields
	for _, f := range c.Changes {
		ok = ok && !isNoField(f.Field) && isCompact(f.From) && isCompact(f.To)
	}
	check(ok, "changes", "must be fields with two JSON values without white space, at most 64")
	actors := []string{ActorOperator, ActorController, ActorClient, ActorSession, ActorSystem}
	check(slices.Contains(actors, c.Actor.Kind), "actor.kind", "must be a kind of actor")
	named := c.Actor.Kind != ActorOperator && c.Actor.Kind != ActorSystem
	check(isName(c.Actor.Name) == named && (named || c.Actor.Name == ""), "actor.name", "must be there for who has a name, and for nobody else")
	micros := !c.RecordedAt.IsZero() && c.RecordedAt.Location() == time.UTC && c.RecordedAt.Nanosecond()%1000 == 0
	check(micros, "recorded_at", "must be in UTC with at most microseconds")
	return errors.Join(errs...)
}

func isName(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxName
}

func isNoField(s string) bool { return !fieldPattern.MatchString(s) }

func isCompact(v jsontext.Value) bool {
	compact := v.Clone()
	return compact.Compact() == nil && bytes.Equal(compact, v)
}

// Marshal validates a change and returns its JSON, the same bytes for the same change.
func Marshal(c Change) (jsontext.Value, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(c, jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, ErrData
	}
	return data, nil
}

// Unmarshal reads what Marshal wrote and validates it. Unknown and duplicate members,
// invalid UTF-8 and trailing data are refused.
func Unmarshal(data jsontext.Value) (Change, error) {
	var c Change
	if err := json.Unmarshal(data, &c, json.RejectUnknownMembers(true)); err != nil {
		return Change{}, ErrData
	}
	if err := c.Validate(); err != nil {
		return Change{}, err
	}
	return c, nil
}
