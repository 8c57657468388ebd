package runtrace

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// metadata is an event's metadata.
type metadata struct {
	raw    jsontext.Value
	values map[string]any // strings, booleans and float64s
}

// parse reads a stored object. What is no object is an empty one.
func parse(stored string) metadata {
	m := metadata{raw: jsontext.Value(stored)}
	if err := json.Unmarshal(m.raw, &m.values); err != nil || m.values == nil {
		return metadata{raw: jsontext.Value("{}")}
	}
	return m
}

// text returns a string or a number as a text.
func (m metadata) text(name string) (string, bool) {
	switch v := m.values[name].(type) {
	case string:
		return v, v != ""
	case float64:
		return decimal(v), true
	default:
		return "", false
	}
}

// word returns a string in lower case, or "".
func (m metadata) word(name string) string {
	s, _ := m.values[name].(string)
	return strings.ToLower(s)
}

func (m metadata) boolean(name string) (value, ok bool) {
	value, ok = m.values[name].(bool)
	return value, ok
}

func (m metadata) number(name string) (float64, bool) {
	n, ok := m.values[name].(float64)
	return n, ok
}

// maxCount is the greatest number that JSON readers keep exact.
const maxCount = 1<<53 - 1

// count returns an integer from 0 to maxCount.
func (m metadata) count(name string) (int64, bool) {
	n, ok := m.number(name)
	if !ok || n < 0 || n > maxCount || n != float64(int64(n)) {
		return 0, false
	}
	return int64(n), true
}

// duration returns a number of milliseconds that is not negative.
func (m metadata) duration() (float64, bool) {
	n, ok := m.number("duration_ms")
	return n, ok && n >= 0
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// lineWords are the parts of a line between what was called and whether it went well.
var lineWords = []struct{ name, before, after string }{
	{"operation", "", ""},
	{"scope", "scope ", ""},
	{"risk_level", "risk ", ""},
	{"approval_id", "approval ", ""},
	{"decision", "", ""},
	{"state", "state ", ""},
	{"delivery_id", "delivery ", ""},
	{"attempt", "attempt ", ""},
	{"retry_count", "retries ", ""},
	{"argument_count", "arguments ", ""},
	{"args_bytes", "", " B sent"},
	{"resp_bytes", "", " B received"},
	{"duration_ms", "", " ms"},
	{"status", "status ", ""},
	{"business_status", "business status ", ""},
	{"exit_code", "exit code ", ""},
	{"error_code", "error ", ""},
	{"reason_code", "reason ", ""},
}

// line says metadata in one line, in a fixed order: "orders.search via crm, 120 ms, ok".
func (m metadata) line() string {
	var words []string
	tool, hasTool := m.text("tool")
	provider, hasProvider := m.text("provider")
	switch {
	case hasTool && hasProvider:
		words = append(words, tool+" via "+provider)
	case hasTool || hasProvider:
		words = append(words, tool+provider)
	}
	method, hasMethod := m.text("method")
	path, hasPath := m.text("path")
	switch {
	case hasMethod && hasPath:
		words = append(words, method+" "+path)
	case hasMethod || hasPath:
		words = append(words, method+path)
	}
	for _, w := range lineWords {
		if value, ok := m.text(w.name); ok {
			words = append(words, w.before+value+w.after)
		}
	}
	switch ok, told := m.boolean("ok"); {
	case told && ok:
		words = append(words, "ok")
	case told:
		words = append(words, "not ok")
	}
	return strings.Join(words, ", ")
}
