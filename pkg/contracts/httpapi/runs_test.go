package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/run"
)

func TestATurnMayHoldNullsInItsPageContextOnly(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"a member":       `{"page_context":{"a":null}}`,
		"deep inside":    `{"page_context":{"a":[{"b":[null,null]}],"page_context":null}}`,
		"beside others":  `{"user_input":"null","page_context":{"a":null},"renderers":["null"]}`,
		"the first of 2": `{"page_context":{"a":null},"user_input":"x"}`,
	} {
		_, err := httpapi.DecodeTurn([]byte(body))
		require.NoError(t, err, name)
	}
	for name, body := range map[string]string{
		"the context itself": `{"page_context":null}`,
		"an input":           `{"page_context":{"a":null},"user_input":null}`,
		"before the context": `{"user_input":null,"page_context":{"a":null}}`,
		"a renderer":         `{"renderers":[null],"page_context":{}}`,
		"renderers":          `{"page_context":{"b":1},"renderers":null}`,
		"all":                `null`,
		"an undeclared one":  `{"context":{"a":null}}`,
		"another's context":  `{"renderers":{"page_context":{"a":null}}}`,
		"a repeated name":    `{"page_context":{"a":null,"a":null}}`,
		"half a surrogate":   `{"page_context":{"a":"\ud800"}}`,
	} {
		_, err := httpapi.DecodeTurn([]byte(body))
		require.ErrorIs(t, err, httpapi.ErrInvalid, name)
	}
	turn, err := httpapi.DecodeTurn([]byte(`{"page_context":{"a" : null}}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"a":null}`, string(turn.PageContext))
}

func TestTraceEventsMayHoldNullsInTheirMetadataOnly(t *testing.T) {
	t.Parallel()
	_, err := httpapi.DecodeTraceEvents([]byte(`{"events":[{"metadata":{"tool":null,"x":[null]}},{"event_id":"null"},{"metadata":{"y":null}}]}`))
	require.NoError(t, err)
	for name, body := range map[string]string{
		"metadata itself":    `{"events":[{"metadata":null}]}`,
		"the second's":       `{"events":[{"metadata":{"x":null}},{"metadata":null}]}`,
		"a job":              `{"events":[{"job_id":null,"metadata":{"x":null}}]}`,
		"an event":           `{"events":[null]}`,
		"events":             `{"events":null}`,
		"metadata elsewhere": `{"metadata":{"x":null}}`,
	} {
		_, err := httpapi.DecodeTraceEvents([]byte(body))
		require.ErrorIs(t, err, httpapi.ErrInvalid, name)
	}
	_, err = httpapi.DecodeCompletion([]byte(`{"content":"","usage":{"cost_usd":null}}`))
	require.ErrorIs(t, err, httpapi.ErrInvalid)
}

// A pointer into the depths is long: it is not made for each null that lies there.
func TestNullsInTheDepthsCostNoMoreThanOthers(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`[`, 9000) + strings.Repeat(`null,`, 90_000) + `null` + strings.Repeat(`]`, 9000)
	_, err := httpapi.DecodeTurn([]byte(`{"page_context":{"a":` + deep + `}}`))
	require.NoError(t, err)
	_, err = httpapi.DecodeTurn([]byte(`{"user_input":` + deep + `}`))
	require.ErrorIs(t, err, httpapi.ErrInvalid)
}

func TestListsOfRunsAreBoundedWhileDecoding(t *testing.T) {
	t.Parallel()
	list := func(n int, element string) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	turn, err := httpapi.DecodeTurn([]byte(`{"renderers":[` + list(run.MaxRenderers, `"a"`) + `]}`))
	require.NoError(t, err)
	require.Len(t, *turn.Renderers, run.MaxRenderers)
	_, err = httpapi.DecodeTurn([]byte(`{"renderers":[` + list(run.MaxRenderers+1, `"a"`) + `]}`))
	require.ErrorIs(t, err, httpapi.ErrInvalid)
	trace, err := httpapi.DecodeTraceEvents([]byte(`{"events":[` + list(run.MaxBatchEvents, `{}`) + `]}`))
	require.NoError(t, err)
	require.Len(t, trace.Events, run.MaxBatchEvents)
	_, err = httpapi.DecodeTraceEvents([]byte(`{"events":[` + list(run.MaxBatchEvents+1, `{}`) + `]}`))
	require.ErrorIs(t, err, httpapi.ErrInvalid)
}

func TestCompletionsAreDecodedStrictly(t *testing.T) {
	t.Parallel()
	c, err := httpapi.DecodeCompletion([]byte(`{"assistant_message_id":"a","status":"failed","content":"","usage":{"input_tokens":3e2,"cost_usd":0.5}}`))
	require.NoError(t, err)
	require.Equal(t, httpapi.Sequence(300), *c.Usage.InputTokens)
	require.Nil(t, c.Usage.TotalTokens)
	require.Nil(t, c.Model)
	for _, body := range []string{
		`{"usage":{"input_tokens":1.5}}`, `{"usage":{"input_tokens":"3"}}`, `{"usage":{"cost_usd":"1"}}`, `{"usage":{"cost_usd":1e400}}`,
		`{"usage":{"tokens":1}}`, `{"usage":[]}`, `{"model":{}}`, `{"content":["a"]}`, `{"thread_id":1}`,
	} {
		_, err := httpapi.DecodeCompletion([]byte(body))
		require.ErrorIs(t, err, httpapi.ErrInvalid, body)
	}
}

// revisionOf is the rule as the contract states it, from the answer's bytes.
func revisionOf(t *testing.T, answer any) string {
	t.Helper()
	b, err := json.Marshal(answer)
	require.NoError(t, err)
	var fields map[string]jsontext.Value
	require.NoError(t, json.Unmarshal(b, &fields))
	delete(fields, "revision")
	b, err = json.Marshal(fields)
	require.NoError(t, err)
	raw := jsontext.Value(b)
	require.NoError(t, raw.Canonicalize())
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func TestRevisionsAreOfTheAnswerWithoutThem(t *testing.T) {
	t.Parallel()
	orders := run.Workspace{RouteKey: "orders", Name: "Orders & more", Instructions: "Be brief.\n<b>é</b>"}
	profile, err := httpapi.NewRuntimeProfile(orders)
	require.NoError(t, err)
	require.Equal(t, revisionOf(t, profile), profile.Revision)
	b, err := json.Marshal(profile)
	require.NoError(t, err)
	require.Equal(t, `{"schema":"bailing.agent-runtime-profile.v1","revision":"`+profile.Revision+`","route_key":"orders",`+
		`"name":"Orders & more","instructions":"Be brief.\n<b>é</b>","knowledge":[],"memory":[],"tools":[]}`, string(b))

	list, err := httpapi.NewWorkspaces([]run.Workspace{orders})
	require.NoError(t, err)
	require.Equal(t, revisionOf(t, list), list.Revision)
	require.Equal(t, profile.Revision, list.Workspaces[0].Revision)
	empty, err := httpapi.NewWorkspaces(nil)
	require.NoError(t, err)
	b, err = json.Marshal(empty)
	require.NoError(t, err)
	require.Equal(t, `{"schema":"bailing.agent-workspaces.v1","revision":"`+empty.Revision+`","workspaces":[]}`, string(b))
}

func FuzzDecodeTurn(f *testing.F) {
	f.Add([]byte(`{"client_conversation_id":"c","client_turn_id":"t","user_message_id":"m","user_input":"x","page_context":{"a":null},"renderers":["r"]}`))
	f.Add([]byte(`{"page_context":{"a":[null,{"b":null}]},"user_input":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		turn, err := httpapi.DecodeTurn(data)
		if err != nil {
			return
		}
		// Outside of the page context there is no null.
		var fields map[string]jsontext.Value
		require.NoError(t, json.Unmarshal(data, &fields))
		for name, value := range fields {
			require.NotEqual(t, "null", string(value), name)
		}
		require.Equal(t, len(fields["page_context"]) > 0, turn.PageContext != nil)
	})
}

func FuzzDecodeTraceEvents(f *testing.F) {
	f.Add([]byte(`{"events":[{"event_id":"e","event":"a.b","occurred_at":"x","job_id":"j","metadata":{"tool":null}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := httpapi.DecodeTraceEvents(data)
		if err == nil {
			require.LessOrEqual(t, len(trace.Events), run.MaxBatchEvents)
		}
	})
}
