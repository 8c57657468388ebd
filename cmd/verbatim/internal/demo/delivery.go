package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"verbatim.internal/pkg/contracts/httpapi"
)

const (
	executionsPath = "/runtime-api/v1/runs/"
	runsPath       = "/admin/api/runs/"

	planTask, buildTask     = "t-plan", "t-build"
	planner, builder        = "planner-1", "builder-7"
	pushApproval, pushGrant = "ap-1", "grant-1"
	secretRef               = "azkv://vault/git" //nolint:gosec // G101: a reference, which is what is kept in place of a secret
)

// happening is an event of the delivery as an orchestrator sends it.
type happening struct {
	EventID         string         `json:"event_id"`
	EventType       string         `json:"event_type"`
	OccurredAt      string         `json:"occurred_at"`
	TaskID          string         `json:"task_id,omitempty"`
	AgentInstanceID string         `json:"agent_instance_id,omitempty"`
	Payload         map[string]any `json:"payload,omitempty"`
}

// delivery is what happens: two sub-agents plan, hand over, ask for an approval, fail, try
// again and deliver.
func delivery(begin time.Time) []happening {
	steps := []happening{
		{EventType: "deployment.status_changed", Payload: map[string]any{"to_status": "running"}},
		{EventType: "task.created", TaskID: planTask, AgentInstanceID: planner},
		{EventType: "task.completed", TaskID: planTask, AgentInstanceID: planner, Payload: map[string]any{"duration_ms": 2100}},
		{EventType: "handoff.requested", TaskID: planTask, AgentInstanceID: planner, Payload: map[string]any{"handoff_id": "h-1", "from_agent": planner, "to_agent": builder}},
		{EventType: "handoff.completed", TaskID: buildTask, AgentInstanceID: builder, Payload: map[string]any{"handoff_id": "h-1", "from_agent": planner, "to_agent": builder}},
		{EventType: "task.running", TaskID: buildTask, AgentInstanceID: builder, Payload: map[string]any{"attempt": 1}},
		{EventType: "approval.requested", TaskID: buildTask, AgentInstanceID: builder, Payload: map[string]any{"approval_id": pushApproval, "operation": "git.push", "risk_level": "high"}},
		{EventType: "approval.approved", TaskID: buildTask, Payload: map[string]any{"approval_id": pushApproval}},
		{EventType: "task.failed", TaskID: buildTask, AgentInstanceID: builder, Payload: map[string]any{"error_code": "E_TIMEOUT", "attempt": 1}},
		{EventType: "task.retried", TaskID: buildTask, AgentInstanceID: builder, Payload: map[string]any{"attempt": 2, "retry_count": 1}},
		{EventType: "artifact.created", TaskID: buildTask, AgentInstanceID: builder, Payload: map[string]any{"artifact_id": "patch-1", "artifact_type": "patch", "bytes": 18204}},
		{EventType: "task.completed", TaskID: buildTask, AgentInstanceID: builder, Payload: map[string]any{"duration_ms": 48210}},
		{EventType: "deployment.status_changed", Payload: map[string]any{"from_status": "running", "to_status": "delivered"}},
	}
	for i := range steps {
		steps[i].EventID = "happened-" + strconv.Itoa(i+1)
		steps[i].OccurredAt = begin.Add(time.Duration(i) * time.Second).UTC().Format(time.RFC3339)
	}
	return steps
}

// deliver plays one execution of many sub-agents, which the conversation's first run has
// caused, and prints its replay.
func (d *demo) deliver(ctx context.Context) error {
	path := executionsPath + url.PathEscape(d.cast.swarm)
	steps := delivery(d.Now().Add(-time.Minute))
	at := steps[7].OccurredAt
	for _, call := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPut, path, map[string]any{
			"manager_deployment_id": "release-train", "deployment_id": "release-" + d.cast.swarm, "correlation_id": d.cast.conversation,
			"run_id": d.cast.members[0].run,
		}},
		{http.MethodPut, path + "/tasks/" + planTask, map[string]any{
			"agent_role": "planner", "source": "planner", "child_task_ids": []string{buildTask},
			"usage": map[string]any{"model_id": "model-large", "input_tokens": 1840, "output_tokens": 310, "total_tokens": 2150},
		}},
		{http.MethodPost, path + "/events", map[string]any{"events": steps[:8]}},
		{http.MethodPut, path + "/approvals/" + pushApproval, map[string]any{
			"operation": "git.push", "risk_level": "high", "decision": "approved", "credential_ref": secretRef, "lease_id": "lease-9",
			"reason": "The release window is open.", "decided_at": at,
		}},
		{http.MethodPut, path + "/grants/" + pushGrant, map[string]any{
			"secret_ref": secretRef, "allowed_actions": []string{"push"}, "status": "active", "created_by": planner, "created_at": at,
		}},
		{http.MethodPut, path + "/tasks/" + buildTask, map[string]any{
			"parent_task_id": planTask, "root_task_id": planTask, "agent_role": "builder", "assigned_agent_id": builder,
			"source": "dynamic_handoff", "retry_count": 1, "tool_count": 2,
			"usage": map[string]any{"model_id": "model-small", "input_tokens": 5210, "output_tokens": 1904, "total_tokens": 7114},
		}},
		{http.MethodPost, path + "/events", map[string]any{"events": steps[8:]}},
		{http.MethodPost, path + "/callback-attempts", map[string]any{"attempts": []map[string]any{
			{"attempt_id": "try-1", "event_id": steps[11].EventID, "event_type": steps[11].EventType, "url": "https://hooks.example.com/deliveries", "status": 503, "attempted_at": steps[12].OccurredAt},
			{"attempt_id": "try-2", "event_id": steps[11].EventID, "event_type": steps[11].EventType, "url": "https://hooks.example.com/deliveries", "status": 200, "attempted_at": steps[12].OccurredAt},
		}}},
	} {
		if err := d.orchestrator.call(ctx, call.method, call.path, call.body, &struct{}{}); err != nil {
			return err
		}
	}
	d.print.step(done, "delivery", "%s: 2 sub-agents, %d events, 1 approval, 2 callback attempts (1 failed)", d.cast.swarm, len(steps))
	lines, err := d.awaitReplay(ctx, len(steps))
	if err != nil {
		return err
	}
	d.print.blank()
	d.print.line("%s", d.print.paint("1", "Replay")+d.print.paint("2", " · the delivery's audit trace: metadata only"))
	d.print.blank()
	for _, line := range lines {
		d.print.line("  %s", line)
	}
	return nil
}

// awaitReplay asks auditview until it replays the whole delivery.
func (d *demo) awaitReplay(ctx context.Context, steps int) (lines []string, err error) {
	err = await(ctx, func(ctx context.Context) (bool, error) {
		var page httpapi.ReplayPage
		err := d.admin.call(ctx, http.MethodGet, runsPath+url.PathEscape(d.cast.swarm)+"/replay", nil, &page)
		lines = page.Lines
		return len(lines) >= steps, err
	})
	if err != nil {
		return nil, err
	}
	if len(lines) != steps {
		return nil, fmt.Errorf("%d steps were replayed and %d happened", len(lines), steps)
	}
	return lines, nil
}

// await asks until what is asked for is there. What is not found may come.
func await(ctx context.Context, there func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, visibleWithin)
	defer cancel()
	tick := time.NewTicker(pollEach)
	defer tick.Stop()
	for {
		found, err := there(ctx)
		var answered *answeredError
		switch {
		case err == nil && found:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("auditview did not show it within %s", visibleWithin)
		case err != nil && (!errors.As(err, &answered) || answered.Status != http.StatusNotFound):
			return err
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
