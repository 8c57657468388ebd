package kit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	cases := []struct {
		want, got string
		ok        bool
	}{
		{`{"a": 1}`, `{"a": 1, "b": 2}`, true},
		{`{"a": 1}`, `{"b": 1}`, false},
		{`{"a": null}`, `{"a": null}`, true},
		{`{"a": null}`, `{}`, false},
		{`{"a": 1.0}`, `{"a": 1}`, true},
		{`{"a": "1"}`, `{"a": 1}`, false},
		{`{"a": [{"b": 1}, {}]}`, `{"a": [{"b": 1, "c": 2}, {"d": 3}]}`, true},
		{`{"a": [{"b": 1}]}`, `{"a": [{"b": 1}, {}]}`, false},
		{`{"a": []}`, `{"a": [1]}`, false},
		{`{"a": {"not": "x"}}`, `{"a": "y"}`, true},
		{`{"a": {"not": "x"}}`, `{"a": "x"}`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`true`, `false`, false},
	}
	decode := func(text string) any {
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var v any
		require.NoError(t, dec.Decode(&v))
		return v
	}
	for _, c := range cases {
		assert.Equal(t, c.ok, kit.Match(decode(c.want), decode(c.got)) == nil, "%s against %s", c.want, c.got)
	}
}
