package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/test/integration/internal/kit"
)

// hook is where callbacks go; all of it but the host is a secret.
var hook = "https://u:" + url.PathEscape(kit.Canary) + "@hooks.example.com:8443/" + url.PathEscape(kit.Canary)

// From a line of a conversation to its run, to its audit trace, to its replay, and back.
func TestExecutionsAndConversationsLeadToEachOther(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{HTTP: true, Registry: twoClients().Encode()})
	writer, other := d.SignIn(t, "crm", "customers"), d.SignIn(t, "erp", "orders")
	conversation := "conversation-" + kit.UUID()
	mine := run(t, writer, "customers", conversation, "turn-7")
	archive := archiveTogether(t, d, writer, other, conversation)
	d.MustAppend(t, writer.AccessToken, archive, []kit.Event{
		{EventID: "e-1", Sequence: 1, ClientTurnID: "turn-7", Kind: "turn_start"},
		{EventID: "e-2", Sequence: 2, ClientTurnID: "turn-7", Kind: "run_link", RunID: mine.RunID, MemberSessionID: writer.SessionID},
	}...)

	const swarmID = "deliveries/2026:orders+1@crm"
	o := d.Orchestrator("crm", swarmID)
	opening := kit.Opening{DeploymentID: "dep-1", CorrelationID: "corr-1", RunID: mine.RunID}
	o.Open(t, opening)
	foreign := d.Orchestrator("erp", swarmID).Must(opening)
	require.Equal(t, http.StatusConflict, foreign.Status, "the run is another client's: %s", foreign.Body)
	o.Put(t, kit.Tasks, "tasks/plan", kit.TaskFacts{AgentRole: "planner"})
	o.Record(t,
		kit.ExecutionEvent{EventID: "ev/1", EventType: "task.failed", OccurredAt: moment, TaskID: "tasks/plan", AgentInstanceID: "agent-1"},
		kit.ExecutionEvent{EventID: "ev/2", EventType: "task.completed", OccurredAt: moment, TaskID: "tasks/plan", AgentInstanceID: "agent-1"},
		kit.ExecutionEvent{EventID: "ev/3", EventType: "timeline.updated", OccurredAt: moment},
	)

	// From the conversation: its run names the execution.
	var seen struct {
		Run struct {
			ConversationAuditID string              `json:"conversation_audit_id"`
			Executions          []map[string]string `json:"executions"`
		} `json:"run"`
	}
	path := fmt.Sprintf("/threads/%d/agent-runs/%s/trace", mine.ThreadID, mine.RunID)
	kit.Eventually(t, patience, func() error {
		answer := d.Admin(path)
		if answer.Status != http.StatusOK || !strings.Contains(string(answer.Body), `"result":"success"`) || !strings.Contains(string(answer.Body), archive) {
			return fmt.Errorf("status %d, %s", answer.Status, answer.Body)
		}
		answer.Decode(t, http.StatusOK, &seen)
		return nil
	})
	require.Equal(t, []map[string]string{{"client_app_id": "crm", "swarm_id": swarmID, "result": "success"}}, seen.Run.Executions)
	const line = "aud_000002 2026-06-08T09:00:01Z planner/agent-1 task.completed task=tasks/plan -> success"
	for _, id := range []string{swarmID, "dep-1", "corr-1", mine.RunID} {
		inJSON, _, err := kit.View{Auditview: d.Auditview, ID: id}.Replay(0)
		require.NoError(t, err, id)
		require.Len(t, inJSON, 3, id)
		assert.Equal(t, line, inJSON[1], id)
	}

	// And back: the execution says which run, thread and conversation it belongs to.
	type header struct {
		SwarmID             string `json:"swarm_id"`
		RunID               string `json:"run_id"`
		ThreadID            int64  `json:"thread_id"`
		ConversationAuditID string `json:"conversation_audit_id"`
	}
	want := header{swarmID, mine.RunID, mine.ThreadID, archive}
	var list struct {
		Items []header `json:"items"`
	}
	d.Admin("/runs?result=success&agent_role=planner").Decode(t, http.StatusOK, &list)
	assert.Equal(t, []header{want}, list.Items)
	var lineage struct {
		Run header `json:"run"`
	}
	d.View("crm", swarmID).Get("lineage", "").Decode(t, http.StatusOK, &lineage)
	assert.Equal(t, want, lineage.Run)
}

// Many writers tell of one execution at the same time, each its own events in its own
// order, many of them twice: every event has one position, without gaps, and the trace is
// the one that follows from what was told.
func TestParallelWritersOfAnExecution(t *testing.T) {
	t.Parallel()
	const writers, batches = 6, 12
	d := kit.Start(t, kit.Options{})
	o := d.Orchestrator("app", "swarm-1")
	told := kit.Told{SwarmID: "swarm-1", Opening: kit.Opening{CorrelationID: "corr-1"}, Tasks: map[string]kit.TaskFacts{}, Decisions: map[string]trace.Decision{}}
	o.Open(t, told.Opening)
	seed := kit.Seed(t)
	sent := make([][]kit.ExecutionEvent, writers)
	var group sync.WaitGroup
	for n := range writers {
		random, task := kit.Choices(seed, n), "task-"+strconv.Itoa(n)
		var calls []call
		for len(calls) < batches {
			var batch []kit.ExecutionEvent
			for range 1 + random.IntN(30) {
				batch = append(batch, kit.ExecutionEvent{
					EventID: fmt.Sprintf("%d:%d", n, len(sent[n])+len(batch)), EventType: "task.running", OccurredAt: moment, TaskID: task,
					CorrelationID: "corr-1", Payload: map[string]any{"approval_id": "ap-1"},
				})
			}
			sent[n] = append(sent[n], batch...)
			calls = append(calls, call{map[string]any{"events": batch}, []string{"events"}})
		}
		count := random.Int64N(100)
		told.Tasks[task] = kit.TaskFacts{AgentRole: "role-" + task, Usage: &kit.TaskUsage{ModelID: "model-1"}, ToolCount: &count}
		at := random.IntN(batches)
		calls = slices.Insert(calls, at, call{kit.TaskFacts{AgentRole: "earlier"}, []string{kit.Tasks, task}})
		calls = slices.Insert(calls, at+1+random.IntN(batches-at), call{told.Tasks[task], []string{kit.Tasks, task}})
		group.Go(func() { send(t, o, calls) })
	}
	told.Decisions["ap-1"] = trace.Rejected
	group.Go(func() {
		send(t, o, slices.Repeat([]call{{map[string]any{"decision": "rejected", "reason": "no"}, []string{kit.Approvals, "ap-1"}}}, 5))
	})
	group.Wait()
	require.False(t, t.Failed())

	view := d.View("app", "swarm-1")
	total := 0
	for _, events := range sent {
		total += len(events)
	}
	var order []kit.ExecutionEvent
	kit.Eventually(t, patience, func() (err error) {
		if order, err = stored(view, sent); err == nil && len(order) != total {
			err = fmt.Errorf("%d of %d events", len(order), total)
		}
		return err
	})
	told.Events = order
	next := make([]int, writers)
	for i, e := range order {
		n, _ := strconv.Atoi(e.EventID[:1])
		require.Equal(t, sent[n][next[n]], e, "position %d", i+1)
		next[n]++
	}
	kit.Eventually(t, patience, func() error {
		got, err := view.Stream()
		if err == nil && !slices.Equal(told.Records(), got) {
			err = fmt.Errorf("the trace of %d records is not what was told", len(got))
		}
		return err
	})
	got, err := view.Audit(97)
	require.NoError(t, err)
	assert.Equal(t, told.Records(), got)
}

// send makes calls in order, some of them twice at the same time.
func send(t *testing.T, o *kit.Orchestrator, calls []call) {
	t.Helper()
	for i, c := range calls {
		var twice sync.WaitGroup
		for range 1 + i%2 {
			twice.Go(func() {
				answer, err := o.Send(context.WithoutCancel(t.Context()), c.body, c.parts...)
				if assert.NoError(t, err) {
					assert.Equal(t, http.StatusOK, answer.Status, "%s", answer.Body)
				}
			})
		}
		twice.Wait()
	}
}

// stored returns the events of an execution in the order of their positions, which have no
// gaps, as they were sent.
func stored(view kit.View, sent [][]kit.ExecutionEvent) (order []kit.ExecutionEvent, err error) {
	byID := map[string]kit.ExecutionEvent{}
	for _, events := range sent {
		for _, e := range events {
			byID[e.EventID] = e
		}
	}
	for cursor := "0"; ; {
		answer := view.Get("events", "", "limit", "300", "cursor", cursor)
		var page struct {
			Events []struct {
				Position int    `json:"position"`
				EventID  string `json:"event_id"`
			} `json:"events"`
			NextCursor *json.Number `json:"next_cursor"`
		}
		if answer.Status != http.StatusOK {
			return nil, fmt.Errorf("status %d, %s", answer.Status, answer.Body)
		}
		if err := json.Unmarshal(answer.Body, &page); err != nil {
			return nil, err
		}
		for _, e := range page.Events {
			if e.Position != len(order)+1 {
				return nil, fmt.Errorf("position %d after %d", e.Position, len(order))
			}
			order = append(order, byID[e.EventID])
		}
		if page.NextCursor == nil {
			return order, nil
		}
		cursor = page.NextCursor.String()
	}
}
