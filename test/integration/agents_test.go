package integration_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// twoClients is a registry without any session: agents get their own.
func twoClients() kit.Registry {
	crm, orders := kit.NewRoute("customers"), kit.NewRoute("orders")
	crm.Instructions = "Answer in the customer's language."
	return kit.Registry{
		Clients: []kit.Client{kit.NewClient("crm"), kit.NewClient("erp")},
		Routes:  []kit.Route{crm, orders},
	}
}

// ran is a run that an agent opened, told about and completed.
type ran struct {
	kit.TurnContext
	job string
}

func run(t *testing.T, agent *kit.Agent, route, conversation, turn string) ran {
	t.Helper()
	r := ran{TurnContext: agent.OpenTurn(t, route, kit.NewTurn(conversation, turn)), job: kit.UUID()}
	agent.MustRecordTrace(t, r.RunID, kit.ToolCall(r.job, "2026-06-08T09:00:03.5+02:00")...)
	agent.MustComplete(t, r.RunID, kit.NewCompletion(turn))
	return r
}

// The whole of it, as two agents of different systems and an administrator live it: they
// are authorized, open runs, archive the conversation that the runs belong to, and are
// read; and when one of them is revoked, nothing more is written.
func TestAgentsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, transport := range []struct {
		name string
		http bool
	}{{"in process", false}, {"over http", true}} {
		t.Run(transport.name, func(t *testing.T) {
			t.Parallel()
			d := kit.Start(t, kit.Options{HTTP: transport.http, Registry: twoClients().Encode()})
			writer, other := d.SignIn(t, "crm", "customers"), d.SignIn(t, "erp", "orders")
			require.NotEqual(t, writer.SessionID, other.SessionID)

			conversation := "conversation-" + kit.UUID()
			mine := run(t, writer, "customers", conversation, "turn-1")
			theirs := run(t, other, "orders", conversation, "turn-1")
			assert.Equal(t, "Answer in the customer's language.", mine.Instructions)
			assert.NotEqual(t, mine.ThreadID, theirs.ThreadID)

			id := archiveTogether(t, d, writer, other, conversation)
			first := []kit.Event{
				{EventID: "e-1", Sequence: 1, ClientTurnID: "turn-1", Kind: "turn_start"},
				{EventID: "e-2", Sequence: 2, ClientTurnID: "turn-1", Kind: "user_message", Content: kit.Text(2)},
				{EventID: "e-3", Sequence: 3, ClientTurnID: "turn-1", Kind: "run_link", RunID: mine.RunID, MemberSessionID: writer.SessionID},
			}
			d.MustAppend(t, writer.AccessToken, id, first...)

			// A renewed token goes on with the same archive, as the same member.
			old := writer.AccessToken
			writer.Refresh(t)
			other.Refresh(t)
			rest := []kit.Event{
				{EventID: "e-4", Sequence: 4, ClientTurnID: "turn-1", Kind: "run_link", RunID: theirs.RunID, MemberSessionID: other.SessionID},
				{EventID: "e-5", Sequence: 5, ClientTurnID: "turn-1", Kind: "assistant_message", Content: kit.Text(5)},
				{EventID: "e-6", Sequence: 6, ClientTurnID: "turn-1", Kind: "turn_end", Status: "completed"},
			}
			d.MustAppend(t, writer.AccessToken, id, rest...)
			d.MustAppend(t, old, id, rest...) // what was in flight while it was renewed

			detail := d.WaitFor(t, id, 6)
			assert.Equal(t, append(first, rest...), kit.Submitted(detail.Events))
			for _, r := range []struct {
				ran
				agent *kit.Agent
			}{{mine, writer}, {theirs, other}} {
				checkRunTrace(t, d, id, r.ran, r.agent)
				checkJobTrace(t, d, id, r.ran)
				checkThread(t, d, id, r.ran)
			}
			checkRevocation(t, d, id, writer, other)
		})
	}
}

// archiveTogether makes the writer's v2 archive, which the other confirms by itself.
func archiveTogether(t *testing.T, d *kit.Deployment, writer, other *kit.Agent, conversation string) string {
	t.Helper()
	answer, err := d.Create(t.Context(), writer.AccessToken, kit.Creation{
		Schema: "bailing.agent-conversation-audit-create.v2", ClientArchiveID: kit.UUID(), ClientConversationID: conversation,
		Members: []kit.Member{
			{SessionID: writer.SessionID, ClientAppID: "crm", Route: "customers"},
			{SessionID: other.SessionID, ClientAppID: "erp", Route: "orders"},
		},
	})
	require.NoError(t, err)
	var header kit.Header
	answer.Decode(t, http.StatusOK, &header)
	require.Equal(t, "enrolling", header.State)
	answer, err = d.Confirm(t.Context(), other.AccessToken, header.ConversationID)
	require.NoError(t, err)
	answer.Decode(t, http.StatusOK, &header)
	require.Equal(t, "ready", header.State)
	return header.ConversationID
}

type traceEvent struct {
	Event     string `json:"event"`
	TS        string `json:"ts"`
	ToolJobID string `json:"tool_job_id"`
}

type traceAnswer struct {
	Kind string `json:"kind"`
	Run  struct {
		RunID               string `json:"run_id"`
		SessionID           string `json:"session_id"`
		Status              string `json:"status"`
		Model               string `json:"model"`
		ConversationAuditID string `json:"conversation_audit_id"`
		ClientTurnID        string `json:"client_turn_id"`
	} `json:"run"`
	Job struct {
		JobID               string `json:"job_id"`
		RunID               string `json:"run_id"`
		ConversationAuditID string `json:"conversation_audit_id"`
		ClientTurnID        string `json:"client_turn_id"`
	} `json:"job"`
	Trace struct {
		Events []traceEvent `json:"events"`
	} `json:"trace"`
	Invocations []struct {
		JobID string `json:"job_id"`
		Tool  string `json:"tool"`
	} `json:"invocations"`
}

// readTrace waits until the administrator sees a trace that is complete.
func readTrace(t *testing.T, d *kit.Deployment, path string, complete func(traceAnswer) bool) traceAnswer {
	t.Helper()
	var seen traceAnswer
	kit.Eventually(t, patience, func() error {
		answer := d.Admin(path)
		if answer.Status != http.StatusOK {
			return fmt.Errorf("status %d", answer.Status)
		}
		seen = traceAnswer{}
		answer.Decode(t, http.StatusOK, &seen)
		if !complete(seen) {
			return fmt.Errorf("incomplete: %s", answer.Body)
		}
		assert.NotContains(t, string(answer.Body), kit.Canary, "a trace holds no text of the conversation")
		return nil
	})
	return seen
}

func names(events []traceEvent) (names []string) {
	for _, e := range events {
		names = append(names, e.Event)
	}
	return names
}

func checkRunTrace(t *testing.T, d *kit.Deployment, archive string, r ran, agent *kit.Agent) {
	t.Helper()
	path := "/threads/" + strconv.FormatInt(r.ThreadID, 10) + "/agent-runs/" + r.RunID + "/trace"
	seen := readTrace(t, d, path, func(s traceAnswer) bool { return s.Run.Status == "completed" && s.Run.ConversationAuditID != "" })
	assert.Equal(t, "agent_client_run", seen.Kind)
	assert.Equal(t, r.RunID, seen.Run.RunID)
	assert.Equal(t, agent.SessionID, seen.Run.SessionID)
	assert.Equal(t, "model-1", seen.Run.Model)
	assert.Equal(t, archive, seen.Run.ConversationAuditID)
	assert.Equal(t, "turn-1", seen.Run.ClientTurnID)
	assert.Equal(t, []string{"run.opened", "tool.called", "tool.completed", "run.completed"}, names(seen.Trace.Events))
	assert.Equal(t, "2026-06-08T07:00:03.5Z", seen.Trace.Events[1].TS)
	require.Len(t, seen.Invocations, 1)
	assert.Equal(t, r.job, seen.Invocations[0].JobID)
	assert.Equal(t, "orders.search", seen.Invocations[0].Tool)

	elsewhere := d.Admin("/threads/" + strconv.FormatInt(r.ThreadID+1000, 10) + "/agent-runs/" + r.RunID + "/trace")
	assert.Equal(t, http.StatusNotFound, elsewhere.Status, "a run is shown in its own thread only")
}

func checkJobTrace(t *testing.T, d *kit.Deployment, archive string, r ran) {
	t.Helper()
	seen := readTrace(t, d, "/runs/"+r.job+"/trace", func(s traceAnswer) bool { return s.Job.ConversationAuditID != "" })
	assert.Equal(t, "tool_job", seen.Kind)
	assert.Equal(t, r.RunID, seen.Job.RunID)
	assert.Equal(t, archive, seen.Job.ConversationAuditID)
	assert.Equal(t, "turn-1", seen.Job.ClientTurnID)
	assert.Equal(t, []string{"tool.called", "tool.completed"}, names(seen.Trace.Events))
}

func checkThread(t *testing.T, d *kit.Deployment, archive string, r ran) {
	t.Helper()
	var seen struct {
		Runs []struct {
			RunID               string `json:"run_id"`
			Status              string `json:"status"`
			ConversationAuditID string `json:"conversation_audit_id"`
		} `json:"runs"`
	}
	d.Admin("/threads/"+strconv.FormatInt(r.ThreadID, 10)).Decode(t, http.StatusOK, &seen)
	require.Len(t, seen.Runs, 1)
	assert.Equal(t, r.RunID, seen.Runs[0].RunID)
	assert.Equal(t, "completed", seen.Runs[0].Status)
	assert.Equal(t, archive, seen.Runs[0].ConversationAuditID)
	var list struct {
		Items []struct {
			ThreadID int64 `json:"thread_id"`
		} `json:"items"`
	}
	d.Admin("/threads").Decode(t, http.StatusOK, &list)
	var ids []int64
	for _, item := range list.Items {
		ids = append(ids, item.ThreadID)
	}
	assert.Contains(t, ids, r.ThreadID)
}

// checkRevocation ends one session: whatever it or its archive would write is refused.
func checkRevocation(t *testing.T, d *kit.Deployment, archive string, writer, other *kit.Agent) {
	t.Helper()
	open := other.OpenTurn(t, "orders", kit.NewTurn("conversation-late", "turn-1"))
	revoked := d.Ingest.Must(kit.Request{
		Method: http.MethodPost, Path: kit.AuthPath + "/sessions/" + other.SessionID + "/revoke", Bearer: d.Bearer("client erp"), Body: []byte("{}"),
	})
	require.Equal(t, http.StatusOK, revoked.Status)

	next := kit.Event{EventID: "e-7", Sequence: 7, ClientTurnID: "turn-2", Kind: "turn_start"}
	answer, err := d.Append(t.Context(), writer.AccessToken, archive, next)
	require.NoError(t, err)
	assert.Equal(t, http.StatusForbidden, answer.Status, "the whole group is refused")
	assert.Equal(t, "conversation_audit_authorization_invalid", answer.Code())
	for name, answer := range map[string]kit.Response{
		"turn":     other.Turn("orders", kit.NewTurn("conversation-late", "turn-2")),
		"complete": other.Complete(open.RunID, kit.NewCompletion("turn-1")),
		"trace":    other.RecordTrace(open.RunID, kit.ToolCall(kit.UUID(), "2026-06-08T09:00:03Z")...),
	} {
		assert.Equal(t, http.StatusUnauthorized, answer.Status, name)
	}
	assert.Equal(t, http.StatusBadRequest, d.Token(other.RefreshGrant()).Status, "it cannot be renewed")

	// The writer's own runs go on; its archive is as it was.
	run(t, writer, "customers", "conversation-alone", "turn-1")
	assert.Len(t, d.WaitFor(t, archive, 6).Events, 6)
	checkRecorded(t, d, other.SessionID)
}

// checkRecorded finds the session's creation and its end among the registry's changes.
func checkRecorded(t *testing.T, d *kit.Deployment, sessionID string) {
	t.Helper()
	kit.Eventually(t, patience, func() error {
		var list struct {
			Items []struct {
				Action string            `json:"action"`
				Actor  map[string]string `json:"actor"`
			} `json:"items"`
		}
		d.Admin("/registry-changes?kind=session&name="+sessionID).Decode(t, http.StatusOK, &list)
		if len(list.Items) != 2 {
			return fmt.Errorf("%d changes", len(list.Items))
		}
		assert.Equal(t, "revoked", list.Items[0].Action)
		assert.Equal(t, "created", list.Items[1].Action)
		for _, item := range list.Items {
			assert.Equal(t, map[string]string{"kind": "client", "name": "erp"}, item.Actor)
		}
		return nil
	})
}
