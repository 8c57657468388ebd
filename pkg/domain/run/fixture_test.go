package run_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/domain/run"
)

const (
	runA = "223e4567-e89b-42d3-a456-426614174001"
	runB = "223e4567-e89b-42d3-a456-426614174002"
	jobA = "523e4567-e89b-42d3-a456-426614174001"
	jobB = "523e4567-e89b-42d3-a456-426614174002"

	// secret has the form of an access token, which the redactor knows.
	secret = "bha_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

func ptr[T any](v T) *T { return &v }

func turnFields() run.TurnFields {
	return run.TurnFields{
		ClientConversationID: "conv:1", ClientTurnID: "turn.1", UserMessageID: "message-1",
		UserInput: "Which orders are late?", PageContext: jsontext.Value(`{"page":"orders","filter":{"late":true,"by":null}}`),
		Renderers: []string{"table.v1", "text"},
	}
}

func completionFields() run.CompletionFields {
	return run.CompletionFields{
		AssistantMessageID: "answer-1", Status: "completed", Content: ptr("Three orders are late."),
		Model: ptr("vendor/model-4.5@2026"), Runtime: ptr("agent:1.2"),
		Usage: &run.Usage{InputTokens: ptr(int64(1200)), OutputTokens: ptr(int64(run.MaxSafeInteger)), CostUSD: ptr(0.0125)},
	}
}

func traceFields(id string) run.TraceFields {
	return run.TraceFields{
		EventID: id, Event: "tool.called", OccurredAt: "2026-06-08T11:00:03.120+02:00", JobID: ptr(jobA),
		Metadata: jsontext.Value(`{"tool":"orders.search","duration_ms":120}`),
	}
}

func newTrace(t *testing.T, fields ...run.TraceFields) []run.TraceEvent {
	t.Helper()
	batch, err := run.NewTraceBatch(fields)
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
