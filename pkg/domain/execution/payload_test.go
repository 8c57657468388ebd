package execution_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/redact"
)

var allowed = []string{
	"status", "from_status", "to_status", "reason_code", "error_code", "attempt", "retry_count", "duration_ms", "progress",
	"exit_code", "artifact_id", "artifact_type", "sha256", "bytes", "count", "tool_count", "approval_id", "decision",
	"operation", "risk_level", "lease_id", "secret_ref", "handoff_id", "from_agent", "to_agent", "target_role",
}

// filter returns an event with the payload; ok is false when it is refused.
func filter(payload string) (e execution.Event, ok bool) {
	f := eventFields("e")
	f.Payload = jsontext.Value(payload)
	if payload == "" {
		f.Payload = nil
	}
	batch, err := execution.NewBatch([]execution.EventFields{f}, nobody)
	if err != nil {
		return execution.Event{}, false
	}
	return batch[0], true
}

func TestPayloadsKeepScalarsUnderKnownNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in, kept, dropped string
		count             int
	}{
		"absent":             {``, `{}`, ``, 0},
		"null":               {`null`, `{}`, ``, 0},
		"nothing":            {` {} `, `{}`, ``, 0},
		"scalars":            {`{"to_status":"running","progress":12.5,"exit_code":-1,"attempt":true}`, `{"attempt":true,"exit_code":-1,"progress":12.5,"to_status":"running"}`, ``, 0},
		"numbers, one way":   {`{"attempt":1e0,"retry_count":-0,"bytes":9007199254740991,"progress":0.10}`, `{"attempt":1,"bytes":9007199254740991,"progress":0.1,"retry_count":0}`, ``, 0},
		"nulls are absent":   {`{"status":null,"prompt":null,"Prompt":null}`, `{}`, ``, 0},
		"other names":        {`{"prompt":"say it","code":{"a":[null]},"answer":"x"}`, `{}`, `answer code prompt`, 3},
		"unkept names":       {`{"Prompt":"x","my note":"y","":1,"1st":2,"_x":3,"` + strings.Repeat("n", 65) + `":4}`, `{}`, ``, 6},
		"a secret name":      {`{"sk_live_` + strings.Repeat("a1b2c3d4", 4) + `":1}`, `{}`, ``, 1},
		"a long name":        {`{"` + strings.Repeat("n", 64) + `":1}`, `{}`, strings.Repeat("n", 64), 1},
		"secrets elsewhere":  {`{"token":"` + secret + `","status":"ok"}`, `{"status":"ok"}`, `token`, 1},
		"objects and lists":  {`{"status":{"text":"hi"},"count":[1],"operation":[]}`, `{}`, `count operation status`, 3},
		"escaped names":      {`{"\u0073tatus":"a\u002fb"}`, `{"status":"a/b"}`, ``, 0},
		"similar names":      {`{"Status":"x","status ":"y","status":"z"}`, `{"status":"z"}`, ``, 2},
		"a string's limit":   {`{"status":"` + strings.Repeat("s", 128) + `"}`, `{"status":"` + strings.Repeat("s", 128) + `"}`, ``, 0},
		"a decision":         {`{"decision":"approved","approval_id":"ap-1"}`, `{"approval_id":"ap-1","decision":"approved"}`, ``, 0},
		"the other one":      {`{"decision":"rejected"}`, `{"decision":"rejected"}`, ``, 0},
		"another decision":   {`{"decision":"maybe"}`, `{}`, `decision`, 1},
		"a decision's text":  {`{"decision":"I would rather not"}`, `{}`, `decision`, 1},
		"a decision's token": {`{"decision":"` + secret + `"}`, `{}`, `decision`, 1},
		"no decision either": {`{"decision":true}`, `{}`, `decision`, 1},
		"a reference":        {`{"secret_ref":"` + vaultRef + `"}`, `{"secret_ref":"` + vaultRef + `"}`, ``, 0},
		"a long reference":   {`{"secret_ref":"azkv://v/` + strings.Repeat("n", 127) + `"}`, `{"secret_ref":"azkv://v/` + strings.Repeat("n", 127) + `"}`, ``, 0},
		"sorted as names":    {`{"tool_count":1,"to_agent":"b","to_status":"c","count":2}`, `{"count":2,"to_agent":"b","to_status":"c","tool_count":1}`, ``, 0},
	} {
		e, ok := filter(tc.in)
		if !ok {
			t.Errorf("%s: refused", name)
			continue
		}
		if got := strings.Join(e.DroppedFields, " "); string(e.Payload) != tc.kept || got != tc.dropped || e.DroppedCount != tc.count {
			t.Errorf("%s: kept %s, dropped %q, %d", name, e.Payload, got, e.DroppedCount)
		}
	}
}

func TestPayloadsThatMayNotBeDroppedAreRefused(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"a list": `[]`, "a text": `"status"`, "a number": `1`, "no JSON": `{"status"`, "a repeated name": `{"x":1,"x":1}`, "two": `{}{}`,
		"a number beyond 2^53": `{"bytes":9007199254740992}`, "a number below": `{"bytes":-9007199254740992}`, "no float": `{"bytes":1e400}`,
		"a secret that is none": `{"secret_ref":"hunter2"}`, "half a reference": `{"secret_ref":"azkv://vault"}`, "a reference and more": `{"secret_ref":"azkv://vault/name/version"}`,
		"another reference": `{"secret_ref":"https://vault/name"}`, "a number as reference": `{"secret_ref":1}`, "an object as reference": `{"secret_ref":{"value":"x"}}`,
		"no reference": `{"secret_ref":""}`, "a token behind a scheme": `{"secret_ref":"azkv://vault/` + secret + `"}`,
	} {
		if e, ok := filter(in); ok {
			t.Errorf("%s: kept %s", name, e.Payload)
		}
	}
	for what, text := range unnamed() {
		value, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range allowed {
			if name == "decision" {
				continue // dropped
			}
			if _, ok := filter(fmt.Sprintf(`{%q:%s}`, name, value)); ok {
				t.Errorf("%s as %s is kept", what, name)
			}
		}
	}
}

// anyJSON draws JSON of every kind, with names and values on both sides of each rule.
func anyJSON(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Float64Range(-1e17, 1e17).AsAny(), rapid.IntRange(-9, 9).AsAny(),
		rapid.SampledFrom([]string{"ok", "approved", "rejected", vaultRef, secret, "two words", "привет"}).AsAny(), rapid.String().AsAny(),
	}
	if depth > 0 {
		names := rapid.OneOf(rapid.SampledFrom(allowed), rapid.StringMatching(`[a-z][a-z0-9_]{0,6}`), rapid.String())
		kinds = append(kinds, rapid.MapOf(names, anyJSON(depth-1)).AsAny(), rapid.SliceOfN(anyJSON(depth-1), 0, 3).AsAny())
	}
	return rapid.OneOf(kinds...)
}

func TestWhatIsKeptOfAPayloadIsMetadata(t *testing.T) {
	t.Parallel()
	names := rapid.OneOf(rapid.SampledFrom(allowed), rapid.StringMatching(`[a-zA-Z_][a-z0-9_]{0,8}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		sent, err := json.Marshal(rapid.MapOf(names, anyJSON(2)).Draw(t, "payload"))
		if err != nil {
			t.Skip("no JSON")
		}
		if e, ok := filter(string(sent)); ok {
			checkKept(t, sent, e)
		}
	})
}

func FuzzPayload(f *testing.F) {
	f.Add([]byte(`{"status":"ok","prompt":"x","decision":"maybe","bytes":1e3,"secret_ref":"azkv://v/n","x":null}`))
	f.Add([]byte(`{"\u0073tatus":"\u0061","a":{"b":[null,{}]},"progress":-0.0}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, sent []byte) {
		if e, ok := filter(string(sent)); ok && len(sent) > 0 {
			checkKept(t, sent, e)
		}
	})
}

// checkKept checks what is kept against a second reading of what was sent.
func checkKept(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, sent []byte, e execution.Event,
) {
	t.Helper()
	var before, after map[string]any
	if err := json.Unmarshal(sent, &before); err != nil {
		t.Fatalf("%s is taken: %v", sent, err)
	}
	if err := json.Unmarshal(e.Payload, &after); err != nil {
		t.Fatalf("%s: %v", e.Payload, err)
	}
	nulls := 0
	var wantDropped []string
	for name, value := range before {
		_, kept := after[name]
		if kept != (value != nil && after[name] == value) {
			t.Fatalf("%q changed: %s, %s", name, sent, e.Payload)
		}
		if value == nil {
			nulls++
		} else if !kept && isKeptName(name) {
			wantDropped = append(wantDropped, name)
		}
	}
	for name, value := range after {
		text, isText := value.(string)
		if !slices.Contains(allowed, name) || isText && !execution.IsName(text) && !redact.IsVaultRef(text) {
			t.Fatalf("%q is kept: %s", name, e.Payload)
		}
	}
	slices.Sort(wantDropped)
	if !slices.Equal(wantDropped, e.DroppedFields) || e.DroppedCount != len(before)-len(after)-nulls {
		t.Fatalf("dropped %q and counted %d of %s", e.DroppedFields, e.DroppedCount, sent)
	}
	if spelled, err := canonical.JSON(after); err != nil || !bytes.Equal(spelled, e.Payload) {
		t.Fatalf("%s is not canonical", e.Payload)
	}
	again, ok := filter(string(e.Payload))
	if !ok || !bytes.Equal(again.Payload, e.Payload) || again.DroppedCount != 0 || again.Hash != e.Hash {
		t.Fatalf("%s is not kept as it is", e.Payload)
	}
}

func isKeptName(s string) bool {
	rest := strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_")
	return s != "" && len(s) <= 64 && rest == "" && 'a' <= s[0] && s[0] <= 'z' && !redact.IsSecret(s)
}
