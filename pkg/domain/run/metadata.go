package run

import (
	"bytes"
	"math"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/redact"
)

// Names of metadata with rules of their own.
const (
	namePath     = "path"
	nameDecision = "decision"
)

// metadataNames is the allowlist: what a trace may know of a tool call, an approval or a
// delivery. No name of it is for a text that somebody wrote.
var metadataNames = map[string]bool{
	"tool": true, "provider": true, "scope": true, "method": true, namePath: true, "status": true, "ok": true,
	"duration_ms": true, "approval_id": true, "state": true, "business_status": true, "argument_count": true,
	"args_bytes": true, "resp_bytes": true, "attempt": true, "retry_count": true, "error_code": true,
	"reason_code": true, nameDecision: true, "risk_level": true, "operation": true, "delivery_id": true, "exit_code": true,
}

// filterMetadata returns what may be kept of a trace event's metadata, in canonical form,
// and how many fields were dropped. Kept are the scalars under the names of the allowlist;
// null, objects, lists, other names and a decision other than approved and rejected are
// dropped, whatever they hold. It reports false for what is no object, for a string that
// is not of its form or that the redactor would change, and for a number beyond 2^53-1.
func filterMetadata(raw jsontext.Value) (kept jsontext.Value, dropped int, ok bool) {
	if raw.Kind() != jsontext.KindBeginObject || !raw.IsValid() {
		return nil, 0, false
	}
	fields := map[string]any{}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.ReadToken(); err != nil {
		return nil, 0, false
	}
	for dec.PeekKind() != jsontext.KindEndObject {
		var name string
		if json.UnmarshalDecode(dec, &name) != nil {
			return nil, 0, false
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, 0, false
		}
		scalar, keep, ok := filterScalar(name, value)
		switch {
		case !ok:
			return nil, 0, false
		case keep:
			fields[name] = scalar
		default:
			dropped++
		}
	}
	kept, err := canonical.JSON(fields)
	return kept, dropped, err == nil
}

// filterScalar decides about one field.
func filterScalar(name string, value jsontext.Value) (scalar any, keep, ok bool) {
	if !metadataNames[name] {
		return nil, false, true
	}
	switch value.Kind() {
	case jsontext.KindTrue, jsontext.KindFalse:
		scalar, keep, ok = value.Kind() == jsontext.KindTrue, true, true
	case jsontext.KindNumber:
		var n float64
		ok = json.Unmarshal(value, &n) == nil && math.Abs(n) <= MaxSafeInteger
		scalar, keep = n, true
	case jsontext.KindString:
		var s string
		if json.Unmarshal(value, &s) != nil {
			return nil, false, false
		}
		scalar, ok = filterString(name, s)
		keep = true
	default:
		return nil, false, true
	}
	if name == nameDecision && scalar != "approved" && scalar != "rejected" {
		return nil, false, true
	}
	return scalar, keep, ok
}

// filterString returns what is kept of a string.
func filterString(name, s string) (kept string, ok bool) {
	if name != namePath {
		return s, execution.IsName(s)
	}
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i] // queries and fragments hold what people typed
	}
	return s, isPath(s) && !redact.IsSecret(s)
}

// isPath reports whether s is ^/[A-Za-z0-9_.:/@+{}-]{0,255}$.
func isPath(s string) bool {
	if s == "" || len(s) > 256 || s[0] != '/' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !isLower(c) && !isDigit(c) && (c < 'A' || c > 'Z') && strings.IndexByte("_.:/@+{}-", c) < 0 {
			return false
		}
	}
	return true
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
