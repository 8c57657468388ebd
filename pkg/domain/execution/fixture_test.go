package execution_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/refusal"
)

// secret has the form of a client token, which the redactor knows.
const secret = "bhk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

const vaultRef = "azkv://vault/orders-db"

var nobody execution.Attribution

func ptr[T any](v T) *T { return &v }

// unnamed are strings that no identifier, no header and no kept string may be.
func unnamed() map[string]string {
	return map[string]string{
		"nothing": "", "prose": "please refund the customer", "a sign first": "-x", "a dot first": ".x", "code": "fmt.Println(1)",
		"too long": strings.Repeat("n", 129), "a line": "a\nb", "another script": "привет", "a secret": secret,
		"a password in a URL": "https://ada:hunter2@example.com", "quotes": `"x"`, "a space last": "x ", "NUL": "a\x00b",
	}
}

// names are strings that may be kept.
func names() []string {
	return []string{
		"a", "7", "agent-7", "t:1/2", "ada@example.com", "gpt-x", "vendor/model:4.5+2026", vaultRef,
		strings.Repeat("n", 128), "223e4567-e89b-42d3-a456-426614174001", strings.Repeat("9f86d081", 8),
	}
}

func eventFields(id string) execution.EventFields {
	return execution.EventFields{
		EventID: id, EventType: "task.completed", OccurredAt: "2026-06-08T11:00:03.120+02:00",
		TaskID: ptr("t-1"), AgentInstanceID: ptr("agent-7"), Payload: jsontext.Value(`{"attempt":1}`),
	}
}

func newEvents(t *testing.T, fields ...execution.EventFields) []execution.Event {
	t.Helper()
	batch, err := execution.NewBatch(fields, nobody)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return batch
}

func wantCode(t *testing.T, err error, want refusal.Code) {
	t.Helper()
	if got := refusal.CodeOf(err); got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}
