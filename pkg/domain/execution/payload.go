package execution

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/redact"
	"verbatim.internal/pkg/domain/trace"
)

// Names of a payload with rules of their own.
const (
	nameDecision  = "decision"
	nameSecretRef = "secret_ref"
)

// payloadNames is the allowlist: what may be known of an event. No name of it is for
// something that somebody wrote.
var payloadNames = map[string]bool{
	"status": true, "from_status": true, "to_status": true, "reason_code": true, "error_code": true, "attempt": true,
	"retry_count": true, "duration_ms": true, "progress": true, "exit_code": true, "artifact_id": true,
	"artifact_type": true, "sha256": true, "bytes": true, "count": true, "tool_count": true, "approval_id": true,
	nameDecision: true, "operation": true, "risk_level": true, "lease_id": true, nameSecretRef: true,
	"handoff_id": true, "from_agent": true, "to_agent": true, "target_role": true,
}

// kept is what an object may keep.
type kept struct {
	payload       jsontext.Value // canonical
	fields        int            // of payload
	droppedFields []string       // sorted
	droppedCount  int
}

func (k *kept) drop(name string) {
	k.droppedCount++
	if isFieldName(name) {
		k.droppedFields = append(k.droppedFields, name)
	}
}

// verdict is what becomes of one value.
type verdict int

const (
	keep verdict = iota
	drop
	refuse
)

// filterPayload returns what may be kept of an event's payload, which may be absent. Kept
// are the scalars under the names of the allowlist; a null is absent; everything else is
// dropped, and so is a decision other than approved and rejected. It reports false for
// what is no object, for a string that is not of its form or that the redactor would
// change, for a secret that is no reference to a vault, and for a number beyond 2^53-1.
func filterPayload(raw jsontext.Value) (kept, bool) {
	return filter(raw, func(name string, value jsontext.Value) (jsontext.Value, verdict) {
		switch {
		case !payloadNames[name]:
			return nil, drop
		case name == nameSecretRef:
			return filterVaultRef(value)
		}
		value, what := filterScalar(value)
		if name == nameDecision && !isDecision(value) {
			return nil, drop
		}
		return value, what
	})
}

// filterVaultRef refuses everything that could be the secret itself.
func filterVaultRef(value jsontext.Value) (jsontext.Value, verdict) {
	s, err := jsontext.AppendUnquote(nil, value)
	if err != nil || !redact.IsVaultRef(string(s)) { // what is no string is an error
		return nil, refuse
	}
	return quoted(string(s)), keep
}

func isDecision(value jsontext.Value) bool {
	return string(value) == `"`+string(trace.Approved)+`"` || string(value) == `"`+string(trace.Rejected)+`"`
}

// filterScalar returns a scalar in its canonical spelling.
func filterScalar(value jsontext.Value) (jsontext.Value, verdict) {
	switch value.Kind() {
	case jsontext.KindTrue, jsontext.KindFalse:
		return value, keep
	case jsontext.KindNumber:
		n, err := strconv.ParseFloat(string(value), 64)
		if err != nil || math.Abs(n) > MaxSafeInteger {
			return nil, refuse
		}
		if n == 0 {
			n = 0 // and not -0
		}
		return jsontext.Value(jsontext.Float(n).String()), keep
	case jsontext.KindString:
		s, err := jsontext.AppendUnquote(nil, value)
		if err != nil || !IsName(string(s)) {
			return nil, refuse
		}
		return quoted(string(s)), keep
	default:
		return nil, drop
	}
}

// quoted spells a name or a reference, which has nothing to escape.
func quoted(s string) jsontext.Value { return jsontext.Value(`"` + s + `"`) }

// filter reads a JSON object, absent or null for an empty one, asks about each member that
// is not null, and writes what is kept in canonical form. It reports false for what is no
// object, and where a value is refused.
func filter(raw jsontext.Value, judge func(name string, value jsontext.Value) (jsontext.Value, verdict)) (kept, bool) {
	k := kept{payload: jsontext.Value(`{}`), droppedFields: []string{}}
	if isAbsent(raw) {
		return k, true
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != jsontext.KindBeginObject {
		return kept{}, false
	}
	var members []string
	for dec.PeekKind() != jsontext.KindEndObject {
		tok, err := dec.ReadToken()
		if err != nil || tok.Kind() != jsontext.KindString {
			return kept{}, false
		}
		name := tok.String()
		value, err := dec.ReadValue()
		if err != nil {
			return kept{}, false
		}
		if value.Kind() == jsontext.KindNull {
			continue
		}
		switch value, what := judge(name, value); what {
		case keep:
			members = append(members, `"`+name+`":`+string(value)) // a kept name has nothing to escape
		case drop:
			k.drop(name)
		case refuse:
			return kept{}, false
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return kept{}, false
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return kept{}, false
	}
	// The quote that ends a name sorts before everything else that a name may have, so the
	// members sort as their names do.
	slices.Sort(members)
	slices.Sort(k.droppedFields)
	if k.fields = len(members); k.fields > 0 {
		k.payload = jsontext.Value("{" + strings.Join(members, ",") + "}")
	}
	return k, true
}

func isAbsent(raw jsontext.Value) bool {
	return raw == nil || raw.Kind() == jsontext.KindNull && raw.IsValid()
}
