package httpapi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/execution"
)

// executionDecoders are all bodies of the surface.
func executionDecoders() map[string]func([]byte) (any, error) {
	return map[string]func([]byte) (any, error){
		"opening":  func(b []byte) (any, error) { return httpapi.DecodeExecutionOpening(b) },
		"events":   func(b []byte) (any, error) { return httpapi.DecodeExecutionEvents(b) },
		"task":     func(b []byte) (any, error) { return httpapi.DecodeExecutionTask(b) },
		"approval": func(b []byte) (any, error) { return httpapi.DecodeExecutionApproval(b) },
		"grant":    func(b []byte) (any, error) { return httpapi.DecodeExecutionGrant(b) },
		"attempts": func(b []byte) (any, error) { return httpapi.DecodeExecutionAttempts(b) },
	}
}

func TestBodiesAboutExecutionsAreStrict(t *testing.T) {
	t.Parallel()
	for name, decode := range executionDecoders() {
		for _, in := range []string{``, `null`, ` null `, `[]`, `"{}"`, `1`, `{`, `{}{}`, `{"x":1}`, `{"x":null}`, `{"Events":[]}`, "{\"\xff\":1}"} {
			if _, err := decode([]byte(in)); !errors.Is(err, httpapi.ErrInvalid) {
				t.Errorf("%s: %q: got %v", name, in, err)
			}
		}
		if _, err := decode([]byte(" {} ")); err != nil {
			t.Errorf("%s: an empty body: %v", name, err)
		}
	}
}

func TestANullIsAnAbsentField(t *testing.T) {
	t.Parallel()
	for kind, in := range map[string]string{
		"opening":  `{"manager_deployment_id":null,"deployment_id":null,"correlation_id":null,"run_id":null}`,
		"task":     `{"parent_task_id":null,"child_task_ids":null,"depends_on":null,"source":null,"retry_count":null,"usage":null,"tool_calls":null,"tool_count":null}`,
		"approval": `{"decision":null,"reason":null,"credential_ref":null}`,
		"grant":    `{"secret_ref":null,"allowed_actions":null,"status":null}`,
	} {
		decode := executionDecoders()[kind]
		with, err := decode([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		without, err := decode([]byte(`{}`))
		a, _ := json.Marshal(with)
		b, _ := json.Marshal(without)
		if err != nil || string(a) != string(b) {
			t.Errorf("%s: got %s, want %s, %v", kind, a, b, err)
		}
	}
	usage, err := httpapi.DecodeExecutionTask([]byte(`{"usage":{"model_id":null,"input_tokens":null,"output_tokens":3.0}}`))
	if err != nil || usage.ModelID != nil || usage.InputTokens != nil || *usage.OutputTokens != 3 {
		t.Errorf("got %+v, %v", usage, err)
	}
}

func TestToolCallsAreCounted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		`0`: 0, `3`: 3, `3.0`: 3, `3e0`: 3, `9007199254740991`: 1<<53 - 1, `[]`: 0, `["a"]`: 1, `[{"name":"x","arguments":{"a":[null]}},null,"b"]`: 3, `[[1,2],[3]]`: 2,
	} {
		got, err := httpapi.DecodeExecutionTask([]byte(`{"tool_calls":` + in + `,"tool_count":7}`))
		if err != nil || got.ToolCalls == nil || *got.ToolCalls != want || *got.ToolCount != 7 {
			t.Errorf("%s: got %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{`"3"`, `true`, `{}`, `1.5`, `9007199254740992`, `[{"a":1,"a":2}]`, `[`} {
		if _, err := httpapi.DecodeExecutionTask([]byte(`{"tool_calls":` + in + `}`)); !errors.Is(err, httpapi.ErrInvalid) {
			t.Errorf("%s: got %v", in, err)
		}
	}
}

func TestListsAboutExecutionsAreBounded(t *testing.T) {
	t.Parallel()
	list := func(field, element string, n int) []byte {
		return []byte(`{"` + field + `":[` + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + `]}`)
	}
	for _, tc := range []struct {
		kind, field, element string
		most                 int
	}{
		{"events", "events", `{}`, execution.MaxBatch},
		{"attempts", "attempts", `{}`, execution.MaxBatch},
		{"task", "child_task_ids", `"t"`, execution.MaxTaskIDs},
		{"task", "depends_on", `"t"`, execution.MaxTaskIDs},
		{"grant", "allowed_actions", `"a"`, execution.MaxAllowedActions},
	} {
		decode := executionDecoders()[tc.kind]
		if _, err := decode(list(tc.field, tc.element, tc.most)); err != nil {
			t.Errorf("%s: %d: %v", tc.field, tc.most, err)
		}
		if _, err := decode(list(tc.field, tc.element, tc.most+1)); !errors.Is(err, httpapi.ErrInvalid) {
			t.Errorf("%s: one more: %v", tc.field, err)
		}
		for _, in := range []string{`{"` + tc.field + `":{}}`, `{"` + tc.field + `":"x"}`, `{"` + tc.field + `":[1]}`} {
			if _, err := decode([]byte(in)); !errors.Is(err, httpapi.ErrInvalid) {
				t.Errorf("%s: got %v", in, err)
			}
		}
	}
}

// FuzzDecodeExecutionEvents checks that decoded events are read again as the same, and that
// what the rules keep of them is of its form.
func FuzzDecodeExecutionEvents(f *testing.F) {
	f.Add([]byte(`{"events":[{"event_id":"e","event_type":"task.created","occurred_at":"2026-06-08T11:00:00+02:00","task_id":null,"payload":{"status":"ok","x":[null]}}]}`))
	f.Add([]byte(`{"events":[{"event_id":"e/1","event_type":"a.b","occurred_at":"2026-06-08T09:00:00.123456789Z","correlation_id":"c","payload":null},null]}`))
	f.Add([]byte(`{"events":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := httpapi.DecodeExecutionEvents(data)
		if err != nil {
			return
		}
		if len(body.Events) > 0 {
			again(t, body, func(b []byte) (any, error) { return httpapi.DecodeExecutionEvents(b) })
		}
		fields := make([]execution.EventFields, len(body.Events))
		for i, e := range body.Events {
			fields[i] = execution.EventFields(e)
		}
		events, err := execution.NewBatch(fields, execution.Attribution{})
		for _, e := range events {
			if err != nil || !execution.IsName(e.EventID) || !execution.IsEventType(e.EventType) || !e.Payload.IsValid() || e.DroppedCount < len(e.DroppedFields) {
				t.Fatalf("kept %+v, %v", e, err)
			}
		}
	})
}
