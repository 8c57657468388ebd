package httpapi_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/contracts/httpapi"
)

func TestSequenceIsAnIntegralNumberHoweverWritten(t *testing.T) {
	t.Parallel()
	good := map[string]httpapi.Sequence{
		"3": 3, "3.0": 3, "3e0": 3, "30e-1": 3, "0.3e1": 3, "-1": -1, "0": 0, "0.000": 0, "0e-60": 0,
		"9007199254740991": 1<<53 - 1, "2e4": 20000,
	}
	for in, want := range good {
		var got httpapi.Sequence
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != want {
			t.Errorf("%s: got %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"1.5", "3e-1", "9007199254740992", "1e16", "1e400", "1e-400", `"3"`, "null", "true", "[3]", "9223372036854775808"} {
		var got httpapi.Sequence
		if err := json.Unmarshal([]byte(in), &got); err == nil {
			t.Errorf("%s: accepted as %d", in, got)
		}
	}
}

func TestDecodeIsStrict(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"empty": ``, "null": `null`, "array": `[]`, "text": `"{}"`, "trailing": `{} {}`, "truncated": `{`,
		"undeclared": `{"x":1}`, "null member": `{"events":null}`, "null inside": `{"events":[null]}`,
		"repeated": `{"events":[],"events":[]}`, "case": `{"Events":[]}`,
		"surrogate": `{"events":[{"event_id":"\ud800"}]}`, "utf8": "{\"events\":[{\"event_id\":\"\xff\"}]}",
	} {
		if _, err := httpapi.DecodeAppend([]byte(body)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := httpapi.DecodeAppend([]byte(`{"events":[{"content":"null and \u0000 and \ud83d\ude00"}]}`)); err != nil {
		t.Errorf("a text that says null: %v", err)
	}
	if err := httpapi.DecodeConfirm([]byte(` {} `)); err != nil {
		t.Errorf("confirm: %v", err)
	}
	if err := httpapi.DecodeConfirm([]byte(`{"session_id":"x"}`)); err == nil {
		t.Error("confirm took a field")
	}
}

func FuzzDecodeCreate(f *testing.F) {
	f.Add([]byte(`{"schema":"bailing.agent-conversation-audit-create.v2","client_archive_id":"a","client_conversation_id":"b","members":[{"label":"x"}]}`))
	f.Add([]byte(`{"client_archive_id":"a","client_conversation_id":"b","route":"r","member_session_ids":["m"],"member_labels":{"m":"l"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := httpapi.DecodeCreate(data)
		if err == nil {
			again(t, c, func(b []byte) (any, error) { c, _, err := httpapi.DecodeCreate(b); return c, err })
		}
	})
}

func FuzzDecodeAppend(f *testing.F) {
	f.Add([]byte(`{"events":[{"event_id":"e","sequence":1.0,"client_turn_id":"t","kind":"user_message","content":"x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := httpapi.DecodeAppend(data)
		if err == nil && len(a.Events) > 0 {
			again(t, a, func(b []byte) (any, error) { return httpapi.DecodeAppend(b) })
		}
	})
}

// again checks that what was accepted, written out without its absent fields, is accepted as the same.
func again(t *testing.T, v any, decode func([]byte) (any, error)) {
	t.Helper()
	opts := json.JoinOptions(json.OmitZeroStructFields(true), json.Deterministic(true))
	first, err := json.Marshal(v, opts)
	if err != nil {
		t.Fatal(err)
	}
	v2, err := decode(first)
	if err != nil {
		t.Fatalf("not accepted again: %v", err)
	}
	second, err := json.Marshal(v2, opts)
	if err != nil || string(first) != string(second) {
		t.Fatalf("changed on the way: %v", err)
	}
}

//nolint:paralleltest // a benchmark counts what all goroutines allocate
func TestListsAreBoundedWhileTheyAreRead(t *testing.T) {
	body := []byte(`{"events":[` + strings.Repeat("{},", 600_000) + `{}]}`)
	allocated := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := httpapi.DecodeAppend(body); err == nil {
				b.Fatal("too many events were read")
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 1<<20 {
		t.Errorf("refusing the body took %d bytes", allocated)
	}
	for name, broken := range map[string]string{
		"session ids": `{"client_archive_id":"a","client_conversation_id":"b","route":"r","member_session_ids":[` + strings.Repeat(`"m",`, 64) + `"m"]}`,
		"undeclared":  `{"client_archive_id":"a","client_conversation_id":"b","schema":"bailing.agent-conversation-audit-create.v2","members":[{"x":1}]}`,
	} {
		if _, _, err := httpapi.DecodeCreate([]byte(broken)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
