package client_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/client/internal/hubtest"
)

func TestWorkspacesAndProfiles(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	spaces, err := b.erp.Workspaces(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, spaces.Workspaces, 2)
	require.Equal(t, "orders", spaces.Workspaces[0].RouteKey)
	again, err := b.erp.Workspaces(t.Context(), spaces)
	require.NoError(t, err)
	require.Same(t, spaces, again)
	profile, err := b.erp.Profile(t.Context(), "orders", nil)
	require.NoError(t, err)
	require.Equal(t, "Be brief.", profile.Instructions)
	same, err := b.erp.Profile(t.Context(), "orders", profile)
	require.NoError(t, err)
	require.Same(t, profile, same)
	other, err := b.erp.Profile(t.Context(), "returns", profile)
	require.NoError(t, err)
	require.Equal(t, "returns", other.RouteKey)
	var refused *client.RefusedError
	_, err = b.erp.Profile(t.Context(), "customers", nil)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "route_not_allowed", refused.Code)
	_, err = b.erp.Profile(t.Context(), "../session", nil)
	require.ErrorIs(t, err, client.ErrInvalid)
	b.hub.OnRequest(always("/workspaces", hubtest.Fault{Status: 404, Code: "not_found"}))
	_, err = b.erp.Workspaces(t.Context(), nil)
	require.ErrorIs(t, err, client.ErrUnsupported)
}

func hello() client.Turn {
	return client.Turn{
		ConversationID: "conversation-1", TurnID: "turn-1", UserMessageID: "message-1", UserInput: "Hello <&> 👩‍👧",
		PageContext: json.RawMessage(`{"page":null}`), Renderers: []string{"text"},
	}
}

func TestARunFromItsTurnToItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	b.hub.OnRequest(failOnce("/turns", hubtest.Fault{Lost: true, Done: true}))
	run, err := b.erp.OpenTurn(t.Context(), "orders", hello())
	require.NoError(t, err)
	require.Equal(t, b.erp.ID(), run.SessionID)
	require.Positive(t, run.ThreadID)
	sent := b.hub.Requests("/turns")
	require.Equal(t, sent[0], sent[1])
	again, err := b.erp.OpenTurn(t.Context(), "orders", hello())
	require.NoError(t, err)
	require.Equal(t, run, again)
	changed := hello()
	changed.UserInput = "Goodbye"
	var refused *client.RefusedError
	_, err = b.erp.OpenTurn(t.Context(), "orders", changed)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "turn_conflict", refused.Code)

	event := client.TraceEvent{
		EventID: "call-1", Event: "tool.called", OccurredAt: time.Now(), JobID: runID,
		Metadata: map[string]any{"tool": "orders.search", "attempt": 1, "ok": true, "duration_ms": 1.5},
	}
	ack, err := b.erp.RecordTrace(t.Context(), run.RunID, event)
	require.NoError(t, err)
	require.Equal(t, client.TraceAck{RunID: run.RunID, Accepted: 1, LastPosition: 1}, *ack)
	ack, err = b.erp.RecordTrace(t.Context(), run.RunID, event)
	require.NoError(t, err)
	require.Equal(t, 1, ack.Skipped)

	b.hub.OnRequest(failOnce("/complete", hubtest.Fault{Lost: true, Done: true}))
	tokens := int64(7)
	end := client.Completion{
		AssistantMessageID: "answer-1", Status: client.Completed, Content: "Hello.", Model: "m-1", Usage: &client.Usage{OutputTokens: &tokens},
	}
	done, err := b.erp.Complete(t.Context(), run.RunID, end)
	require.NoError(t, err)
	require.True(t, done.Replayed, "its first answer was lost")
	end.Content = "Something else."
	_, err = b.erp.Complete(t.Context(), run.RunID, end)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "run_completion_conflict", refused.Code)
	_, err = b.crm.Complete(t.Context(), run.RunID, end)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "run_not_found", refused.Code, "a 404 that is no lack of the endpoint")
}

func TestRunsThatAreNotAskedFor(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	for name, change := range map[string]func(*client.Turn){
		"conversation":     func(u *client.Turn) { u.ConversationID = "" },
		"turn":             func(u *client.Turn) { u.TurnID = "a b" },
		"message":          func(u *client.Turn) { u.UserMessageID = "-" },
		"blank":            func(u *client.Turn) { u.UserInput = " \n" },
		"not UTF-8":        func(u *client.Turn) { u.UserInput = "a\xff" },
		"context no JSON":  func(u *client.Turn) { u.PageContext = json.RawMessage(`{`) },
		"context a list":   func(u *client.Turn) { u.PageContext = json.RawMessage(`[]`) },
		"context empty":    func(u *client.Turn) { u.PageContext = json.RawMessage(``) },
		"context no UTF-8": func(u *client.Turn) { u.PageContext = json.RawMessage("{\"a\":\"\xff\"}") },
	} {
		u := hello()
		change(&u)
		_, err := b.erp.OpenTurn(t.Context(), "orders", u)
		require.ErrorIs(t, err, client.ErrInvalid, name)
	}
	long := hello()
	long.UserInput = strings.Repeat("a", 512<<10)
	_, err := b.erp.OpenTurn(t.Context(), "orders", long)
	require.ErrorIs(t, err, client.ErrLimit)
	_, err = b.erp.OpenTurn(t.Context(), "auto", hello())
	require.ErrorIs(t, err, client.ErrInvalid)
	for name, c := range map[string]client.Completion{
		"message": {Status: client.Failed}, "status": {AssistantMessageID: "a"},
		"no content": {AssistantMessageID: "a", Status: client.Completed},
		"control":    {AssistantMessageID: "a", Status: client.Failed, Content: "\x00"},
		"model":      {AssistantMessageID: "a", Status: client.Failed, Model: "\xff"},
	} {
		_, err := b.erp.Complete(t.Context(), runID, c)
		require.ErrorIs(t, err, client.ErrInvalid, name)
	}
	_, err = b.erp.Complete(t.Context(), "../session", client.Completion{AssistantMessageID: "a", Status: client.Failed})
	require.ErrorIs(t, err, client.ErrInvalid)
	good := client.TraceEvent{EventID: "a", Event: "tool.called", OccurredAt: time.Now()}
	for name, change := range map[string]func(*client.TraceEvent){
		"id":      func(e *client.TraceEvent) { e.EventID = "" },
		"name":    func(e *client.TraceEvent) { e.Event = "Tool called" },
		"time":    func(e *client.TraceEvent) { e.OccurredAt = time.Time{} },
		"job":     func(e *client.TraceEvent) { e.JobID = "job" },
		"null":    func(e *client.TraceEvent) { e.Metadata = map[string]any{"ok": nil} },
		"list":    func(e *client.TraceEvent) { e.Metadata = map[string]any{"ok": []int{1}} },
		"no JSON": func(e *client.TraceEvent) { e.Metadata = map[string]any{"duration_ms": math.NaN()} },
		"UTF-8":   func(e *client.TraceEvent) { e.Metadata = map[string]any{"tool": "\xff"} },
	} {
		e := good
		change(&e)
		_, err := b.erp.RecordTrace(t.Context(), runID, e)
		require.ErrorIs(t, err, client.ErrInvalid, name)
	}
	_, err = b.erp.RecordTrace(t.Context(), runID)
	require.ErrorIs(t, err, client.ErrInvalid)
	_, err = b.erp.RecordTrace(t.Context(), runID, make([]client.TraceEvent, 201)...)
	require.ErrorIs(t, err, client.ErrInvalid)
	require.Empty(t, b.hub.Requests(""))
}
