package run_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/redact"
	"verbatim.internal/pkg/domain/run"
)

var allowed = []string{
	"tool", "provider", "scope", "method", "path", "status", "ok", "duration_ms", "approval_id", "state", "business_status",
	"argument_count", "args_bytes", "resp_bytes", "attempt", "retry_count", "error_code", "reason_code", "decision",
	"risk_level", "operation", "delivery_id", "exit_code",
}

// filter returns what is kept of metadata; ok is false when it is refused.
func filter(metadata string) (kept string, dropped int, ok bool) {
	f := traceFields("e")
	f.Metadata = jsontext.Value(metadata)
	batch, err := run.NewTraceBatch([]run.TraceFields{f})
	if err != nil {
		return "", 0, false
	}
	return string(batch[0].Metadata), batch[0].DroppedFields, true
}

func TestMetadataIsKeptUnderTheAllowlist(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in, kept string
		dropped  int
	}{
		"nothing":            {`{}`, `{}`, 0},
		"scalars":            {`{"tool":"orders.search","ok":true,"duration_ms":12.5,"exit_code":-1}`, `{"duration_ms":12.5,"exit_code":-1,"ok":true,"tool":"orders.search"}`, 0},
		"numbers, one way":   {`{"attempt":1e0,"retry_count":-0,"args_bytes":9007199254740991,"resp_bytes":0.10}`, `{"args_bytes":9007199254740991,"attempt":1,"resp_bytes":0.1,"retry_count":0}`, 0},
		"other names":        {`{"prompt":"say it","arguments":{"a":1},"Tool":"x","tool ":"y","":1}`, `{}`, 5},
		"secrets elsewhere":  {`{"token":"` + secret + `","tool":"t"}`, `{"tool":"t"}`, 1},
		"null":               {`{"tool":null,"x":null}`, `{}`, 2},
		"objects and lists":  {`{"tool":{"name":"x"},"status":["ok",null],"state":{}}`, `{}`, 3},
		"escaped names":      {`{"\u0074ool":"a\u002fb"}`, `{"tool":"a/b"}`, 0},
		"a path":             {`{"path":"/api/v1/orders/{id}:cancel"}`, `{"path":"/api/v1/orders/{id}:cancel"}`, 0},
		"a path's query":     {`{"path":"/api?token=` + secret + `"}`, `{"path":"/api"}`, 0},
		"a path's fragment":  {`{"path":"/api#what they typed?x"}`, `{"path":"/api"}`, 0},
		"the root":           {`{"path":"/?q=1"}`, `{"path":"/"}`, 0},
		"a path's limit":     {`{"path":"/` + strings.Repeat("p", 255) + `"}`, `{"path":"/` + strings.Repeat("p", 255) + `"}`, 0},
		"a string's limit":   {`{"tool":"` + strings.Repeat("t", 128) + `"}`, `{"tool":"` + strings.Repeat("t", 128) + `"}`, 0},
		"approved":           {`{"decision":"approved","approval_id":"ap-1"}`, `{"approval_id":"ap-1","decision":"approved"}`, 0},
		"rejected":           {`{"decision":"rejected"}`, `{"decision":"rejected"}`, 0},
		"another decision":   {`{"decision":"maybe"}`, `{}`, 1},
		"a decision's text":  {`{"decision":"I would rather not"}`, `{}`, 1},
		"no decision either": {`{"decision":true}`, `{}`, 1},
		"a vault reference":  {`{"scope":"azkv://vault/name"}`, `{"scope":"azkv://vault/name"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if kept, dropped, ok := filter(tc.in); !ok || kept != tc.kept || dropped != tc.dropped {
				t.Errorf("kept %s and dropped %d, %v", kept, dropped, ok)
			}
		})
	}
}

func TestEveryAllowedNameIsKept(t *testing.T) {
	t.Parallel()
	for _, name := range allowed {
		value := `"approved"`
		if name == "path" {
			value = `"/p"`
		}
		if kept, dropped, ok := filter(`{"` + name + `":` + value + `}`); !ok || dropped != 0 || kept != `{"`+name+`":`+value+`}` {
			t.Errorf("%s: kept %s", name, kept)
		}
	}
}

func TestMetadataIsRefused(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"a list": `[]`, "a string": `"tool"`, "no JSON": `{`, "two values": `{} {}`, "repeated": `{"tool":"a","tool":"b"}`,
		"an empty string": `{"tool":""}`, "a text": `{"tool":"search the orders"}`, "a first dot": `{"tool":".a"}`,
		"beyond ASCII": `{"tool":"é"}`, "a string beyond its limit": `{"tool":"` + strings.Repeat("t", 129) + `"}`,
		"a secret": `{"tool":"` + secret + `"}`, "a secret behind a name": `{"scope":"x/` + secret + `"}`,
		"a number beyond 2^53-1": `{"duration_ms":9007199254740992}`, "and below": `{"exit_code":-9007199254740992}`,
		"a number beyond a double": `{"duration_ms":1e400}`,
		"a relative path":          `{"path":"api"}`, "an empty path": `{"path":""}`, "a path of a query": `{"path":"?a=1"}`, "an address": `{"path":"https://h/p"}`,
		"a path beyond its limit": `{"path":"/` + strings.Repeat("p", 256) + `"}`, "an escaped path": `{"path":"/a%20b"}`,
		"a path with a secret": `{"path":"/hooks/` + secret + `"}`,
	} {
		if kept, _, ok := filter(in); ok {
			t.Errorf("%s: kept %s", name, kept)
		}
	}
}

// checkKept asks of kept metadata what the promise is: scalars under allowed names, no
// secret, canonical, and nothing more to drop.
func checkKept(t interface{ Fatalf(string, ...any) }, kept string) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(kept), &fields); err != nil {
		t.Fatalf("no object: %v", err)
	}
	for name, value := range fields {
		switch v := value.(type) {
		case string:
			if redact.IsSecret(v) || strings.ContainsAny(v, " ?#\n") || len(v) > 256 {
				t.Fatalf("kept the string %q", v)
			}
		case float64, bool:
		default:
			t.Fatalf("kept a %T", value)
		}
		if !slices.Contains(allowed, name) {
			t.Fatalf("kept the name %q", name)
		}
	}
	if spelled, err := canonical.JSON(jsontext.Value(kept)); err != nil || !bytes.Equal(spelled, []byte(kept)) {
		t.Fatalf("%s is not canonical: %s, %v", kept, spelled, err)
	}
	if again, dropped, ok := filter(kept); !ok || again != kept || dropped != 0 {
		t.Fatalf("%s is kept as %s, %d dropped, %v", kept, again, dropped, ok)
	}
}

func TestWhatIsKeptAndWhatIsDroppedAreTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		object := drawObject(1).Draw(t, "others")
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(allowed), rapid.ID[string]).Draw(t, "names") {
			object[name] = rapid.OneOf(
				rapid.Just(any(nil)), rapid.Just(any("word")), rapid.Just(any("/path?x")), rapid.Just(any(7)), rapid.Just(any(false)),
				rapid.Just(any([]any{"list"})), rapid.Map(drawObject(1), func(o map[string]any) any { return o }),
			).Draw(t, name)
		}
		if v, ok := object["path"].(string); ok && v != "/path?x" {
			object["path"] = "/"
		}
		for name, v := range object {
			if v == "/path?x" && name != "path" {
				object[name] = "path"
			}
		}
		raw, err := json.Marshal(object)
		if err != nil {
			t.Skip("not UTF-8")
		}
		kept, dropped, ok := filter(string(raw))
		if !ok {
			t.Fatalf("refused %s", raw)
		}
		checkKept(t, kept)
		var fields map[string]any
		if err := json.Unmarshal([]byte(kept), &fields); err != nil || len(fields)+dropped != len(object) {
			t.Fatalf("kept %d and dropped %d of %d", len(fields), dropped, len(object))
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"tool":"a","path":"/a?b","prompt":{"x":[null]},"ok":true,"duration_ms":1e3,"decision":"no"}`))
	f.Add([]byte(`{"\u0074ool":"bha_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","decision":"approved"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if kept, _, ok := filter(string(data)); ok {
			checkKept(t, kept)
		}
	})
}
