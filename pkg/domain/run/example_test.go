package run_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/domain/run"
)

// The same turn has the same hash, however its page context is written.
func ExampleNewTurn() {
	turn := run.TurnFields{
		ClientConversationID: "conv-1", ClientTurnID: "turn-1", UserMessageID: "message-1",
		UserInput: "Which orders are late?", PageContext: jsontext.Value(`{"page": "orders", "filter": null}`),
	}
	first, err := run.NewTurn(turn)
	fmt.Println(string(first.PageContext), err)

	turn.PageContext = jsontext.Value(`{"filter":null,"page":"orders"}`)
	again, err := run.NewTurn(turn)
	fmt.Println(again.InputHash == first.InputHash, err)
	// Output:
	// {"filter":null,"page":"orders"} <nil>
	// true <nil>
}

// A completion is stored once: the same again is a replay, another is refused.
func ExampleCompletion_Complete() {
	content := "Three orders are late."
	c, err := run.NewCompletion(run.CompletionFields{AssistantMessageID: "answer-1", Status: "completed", Content: &content})
	if err != nil {
		return
	}
	replay, err := c.Complete(run.CompletionHistory{})
	fmt.Println(replay, err)
	replay, err = c.Complete(run.CompletionHistory{Stored: &c.RequestHash})
	fmt.Println(replay, err)
	_, err = c.Complete(run.CompletionHistory{Stored: &[32]byte{}})
	fmt.Println(refusal.CodeOf(err))
	// Output:
	// false <nil>
	// true <nil>
	// run_completion_conflict
}

// Metadata is kept under an allowlist; what is dropped is counted, and its value is gone.
func ExampleNewTraceBatch() {
	batch, err := run.NewTraceBatch([]run.TraceFields{{
		EventID: "call-1", Event: "tool.called", OccurredAt: "2026-06-08T11:00:03.120+02:00",
		Metadata: jsontext.Value(`{"tool":"orders.search","path":"/orders?q=late","arguments":{"q":"late"}}`),
	}})
	if err != nil {
		return
	}
	e := batch[0]
	fmt.Println(e.OccurredAt, string(e.Metadata), e.DroppedFields)
	// Output:
	// 2026-06-08T09:00:03.120Z {"path":"/orders","tool":"orders.search"} 1
}

// Events that are stored are skipped, new ones are numbered after them.
func ExampleRecord() {
	const id = "223e4567-e89b-42d3-a456-426614174001"
	batch, err := run.NewTraceBatch([]run.TraceFields{
		{EventID: "call-1", Event: "tool.called", OccurredAt: "2026-06-08T09:00:03Z"},
		{EventID: "call-2", Event: "tool.completed", OccurredAt: "2026-06-08T09:00:04Z"},
	})
	if err != nil {
		return
	}
	fresh, err := run.Record(id, batch, run.TraceHistory{
		LastPosition: 5, Stored: map[string][32]byte{"call-1": batch[0].Hash},
	})
	for _, e := range fresh {
		fmt.Println(e.Position, e.EventID)
	}
	fmt.Println(err)
	// Output:
	// 6 call-2
	// <nil>
}

// A revision names the content of an answer.
func ExampleRevision() {
	type answer struct {
		Name     string `json:"name"`
		Revision string `json:"revision,omitzero"`
	}
	one, _ := run.Revision(answer{Name: "Orders"})
	two, _ := run.Revision(answer{Name: "Returns"})
	fmt.Println(len(one), one == two)
	// Output:
	// 64 false
}
