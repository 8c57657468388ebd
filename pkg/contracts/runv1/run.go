// Package runv1 holds the messages about an authorized run, version 1: recorded, and
// the snapshot that replaces a stream. Their stream kind is "run", their stream id the
// run id. Marshal and Unmarshal both validate; errors carry no values.
package runv1

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// StreamKind is the kind of every run's stream.
const StreamKind = "run"

// Types of messages. The data of both is a Run; a snapshot of a run has one part.
const (
	TypeRecorded = "verbatim.run.recorded.v1"
	TypeSnapshot = "verbatim.run.snapshot.v1"
)

// MaxThreadID is the greatest thread id.
const MaxThreadID = 1<<53 - 1

// ErrData is data that is not the JSON of a run. It never carries a part of the data.
var ErrData = errors.New("runv1: data is not a run")

var (
	uuidPattern       = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	identifierPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)
	keyPattern        = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{1,63}$`)
)

// Run is one authorized execution: who owns it and where it belongs.
type Run struct {
	RunID       string `json:"run_id"`
	SessionID   string `json:"session_id"`
	ClientAppID string `json:"client_app_id"`
	RouteKey    string `json:"route_key"`
	// ThreadID is from 1 to MaxThreadID, or 0 while the run has no thread.
	ThreadID             int64     `json:"thread_id"`
	ClientConversationID string    `json:"client_conversation_id"`
	ClientTurnID         string    `json:"client_turn_id"`
	CreatedAt            time.Time `json:"created_at"`
}

// FieldError is a field that breaks its rule. It carries no value.
type FieldError struct {
	Field string
	Rule  string
}

func (e *FieldError) Error() string { return "runv1: " + e.Field + " " + e.Rule }

// Validate reports fields that break a rule, as joined FieldErrors.
func (r Run) Validate() error {
	var errs []error
	check := func(ok bool, field, rule string) {
		if !ok {
			errs = append(errs, &FieldError{field, rule})
		}
	}
	check(uuidPattern.MatchString(r.RunID), "run_id", "must be a lower-case UUID")
	check(uuidPattern.MatchString(r.SessionID), "session_id", "must be a lower-case UUID")
	check(keyPattern.MatchString(r.ClientAppID), "client_app_id", "must be a resource key")
	check(keyPattern.MatchString(r.RouteKey), "route_key", "must be a resource key")
	check(r.ThreadID >= 0 && r.ThreadID <= MaxThreadID, "thread_id", fmt.Sprintf("must be from 0 to %d", int64(MaxThreadID)))
	check(identifierPattern.MatchString(r.ClientConversationID), "client_conversation_id", "must be an identifier")
	check(identifierPattern.MatchString(r.ClientTurnID), "client_turn_id", "must be an identifier")
	micros := !r.CreatedAt.IsZero() && r.CreatedAt.Location() == time.UTC && r.CreatedAt.Nanosecond()%1000 == 0
	check(micros, "created_at", "must be in UTC with at most microseconds")
	return errors.Join(errs...)
}

// Marshal validates a run and returns its JSON, the same bytes for the same run.
func Marshal(r Run) (jsontext.Value, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, ErrData
	}
	return data, nil
}

// Unmarshal reads what Marshal wrote and validates it. Unknown and duplicate members,
// invalid UTF-8 and trailing data are refused.
func Unmarshal(data jsontext.Value) (Run, error) {
	var r Run
	if err := json.Unmarshal(data, &r, json.RejectUnknownMembers(true)); err != nil {
		return Run{}, ErrData
	}
	if err := r.Validate(); err != nil {
		return Run{}, err
	}
	return r, nil
}
