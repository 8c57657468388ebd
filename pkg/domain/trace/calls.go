package trace

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxCount is the largest integer that every reader of JSON keeps exactly.
const maxCount = 1<<53 - 1

// CountCalls returns how many tool calls a task's tool_calls tells of: the
// number itself, or the length of a list, of which nothing else is read. It
// reports false for any other value. Where a task has tool_calls, its
// tool_count does not matter.
func CountCalls(toolCalls jsontext.Value) (int64, bool) {
	switch toolCalls.Kind() {
	case jsontext.KindNumber:
		var n int64
		err := json.Unmarshal(toolCalls, &n)
		return n, err == nil && 0 <= n && n <= maxCount
	case jsontext.KindBeginArray:
		var calls []skipped
		err := json.Unmarshal(toolCalls, &calls)
		return int64(len(calls)), err == nil
	default:
		return 0, false
	}
}

// skipped is a value of which nothing is kept.
type skipped struct{}

func (*skipped) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return dec.SkipValue() }
