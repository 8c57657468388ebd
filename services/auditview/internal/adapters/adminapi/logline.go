package adminapi

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/services/auditview/internal/app"
)

// appendLog says a stored event in one line: its position, time and type, then what it
// knows as name=value, its payload last and in its stored order:
//
//	4 2026-06-08T09:00:03Z task.failed task=t-2 agent=agent-7 error_code=E_TIMEOUT dropped=1
func appendLog(dst []byte, e app.ExecutionEvent) []byte {
	dst = strconv.AppendInt(dst, e.Position, 10)
	dst = append(append(dst, ' '), e.OccurredAt...)
	dst = append(append(dst, ' '), e.EventType...)
	for _, known := range [...]struct {
		name  string
		value *string
	}{
		{"task", e.TaskID}, {"agent", e.AgentInstanceID}, {"role", e.AgentRole}, {"user", e.UserID}, {"channel", e.ChannelID},
	} {
		if known.value != nil {
			dst = appendPair(dst, known.name, *known.value)
		}
	}
	dst = appendPayload(dst, e.Payload)
	if e.DroppedCount > 0 {
		dst = appendPair(dst, "dropped", strconv.Itoa(e.DroppedCount))
	}
	return dst
}

// appendPayload says the members of an object that are scalars.
func appendPayload(dst []byte, payload string) []byte {
	dec := jsontext.NewDecoder(bytes.NewBufferString(payload))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != jsontext.KindBeginObject {
		return dst
	}
	for dec.PeekKind() == jsontext.KindString {
		name, err := dec.ReadToken()
		if err != nil {
			return dst
		}
		key := name.String() // before the next token takes its place
		value, err := dec.ReadValue()
		if err != nil {
			return dst
		}
		switch value.Kind() {
		case jsontext.KindString:
			s, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return dst
			}
			dst = appendPair(dst, key, string(s))
		case jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse:
			dst = appendPair(dst, key, string(value))
		default: // ingest stores no others
		}
	}
	return dst
}

// appendPair quotes what would not be one word. No stored name is any other.
func appendPair(dst []byte, name, value string) []byte {
	dst = append(append(append(dst, ' '), name...), '=')
	if value == "" || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == '"' || r >= 0x7f }) {
		return strconv.AppendQuote(dst, value)
	}
	return append(dst, value...)
}
