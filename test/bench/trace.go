package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/domain/trace"
)

const (
	tracePath = "/admin/api/runs/" + traceSwarm + "/audit"

	traceID     = "60000000-0000-4000-8000-000000000001"
	traceSwarm  = "swarm-1"
	traceClient = "trace" // no client of ingest

	traceTasks     = 1000
	traceInstances = 50
	// traceRepeats is after how many events a run's begin again.
	traceRepeats = 4096
	// approvalEvery is how rare events about approvals are.
	approvalEvery = 16
)

// storedRun is the facts of a run of many tasks, one event in 16 of which is about an approval.
// Its events repeat: the event at a position p is events[(p-1) % len(events)].
type storedRun struct {
	size      int // in events
	lineage   trace.Lineage
	events    []trace.Event
	tasks     map[string]trace.Task
	approvals map[string]trace.Decision
}

func newRun(size int) *storedRun {
	r := &storedRun{
		size: size, events: make([]trace.Event, traceRepeats),
		tasks: make(map[string]trace.Task, traceTasks), approvals: map[string]trace.Decision{},
		lineage: trace.Lineage{
			ManagerDeploymentID: new("manager-deployment-1"), DeploymentID: new("deployment-1"),
			SwarmID: new(traceSwarm), CorrelationID: new("correlation-1"),
		},
	}
	taskIDs, instances := make([]string, traceTasks), make([]string, traceInstances)
	for i := range taskIDs {
		taskIDs[i] = fmt.Sprintf("swarm-1-task-%04d", i)
		r.tasks[taskIDs[i]] = trace.Task{
			AgentRole: new(fmt.Sprintf("role-%d", i%5)), Model: &trace.Model{ModelID: "model-x"}, Tool: &trace.Tool{Count: int64(i % 7)},
		}
	}
	for i := range instances {
		instances[i] = fmt.Sprintf("agent-%d", i)
	}
	types := []string{"task.created", "task.running", "task.heartbeat", "task.completed", "task.failed", "handoff.completed"}
	for i := range r.events {
		r.events[i] = trace.Event{
			Type: types[i%len(types)], OccurredAt: fmt.Sprintf("2026-06-08T09:%02d:%02d.%06dZ", i/60%60, i%60, i),
			TaskID: &taskIDs[i%len(taskIDs)], AgentInstanceID: &instances[i%len(instances)],
		}
		if i%approvalEvery == 0 {
			id := fmt.Sprintf("approval-%d", i)
			r.events[i].Type, r.events[i].ApprovalID = "approval.requested", &id
			r.approvals[id] = trace.Approved
		}
	}
	return r
}

func (r *storedRun) assembler() trace.Assembler {
	return trace.Assembler{
		Lineage:  r.lineage,
		Task:     func(id string) trace.Task { return r.tasks[id] },
		Decision: func(id string) trace.Decision { return r.approvals[id] },
	}
}

// event returns the event at a position, from 1.
func (r *storedRun) event(position int) trace.Event { return r.events[(position-1)%len(r.events)] }

// The run as auditview has it.
const (
	loadExecution = `
		insert into executions (execution_id, client_app_id, swarm_id, manager_deployment_id, deployment_id, correlation_id,
			last_position, result, version, created_at, latest_at)
		values ($1, $2, $3, $4, $5, $6, $7, 'failed', 1, now(), now())`
	loadEvents = `
		insert into execution_events (execution_id, position, event_id, event_type, occurred_at, task_id, agent_instance_id,
			payload, dropped_fields, dropped_count, recorded_at)
		select $1, p.position, 'event-' || p.position, e.event_type, e.occurred_at, e.task_id, e.agent_instance_id,
			e.payload::json, '{}', 0, now()
		from generate_series(1, $2::int) as p (position)
		join unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
			with ordinality as e (event_type, occurred_at, task_id, agent_instance_id, payload, number)
			on e.number = (p.position - 1) % cardinality($3::text[]) + 1
		order by p.position`
	loadTasks = `
		insert into execution_tasks (execution_id, task_id, version, agent_role, model_id, tool_count, used_at, facts)
		select $1, t.task_id, 1, t.agent_role, t.model_id, t.tool_count, now(), '{}'
		from unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) as t (task_id, agent_role, model_id, tool_count)`
	loadApprovals = `
		insert into execution_approvals (execution_id, approval_id, version, decision, facts)
		select $1, a.approval_id, 1, 'approved', '{}' from unnest($2::text[]) as a (approval_id)`
)

// load stores the run in auditview's database, as its projection would have by now.
func (r *storedRun) load(ctx context.Context, ownerDSN string) error {
	types, times, payloads := make([]string, len(r.events)), make([]string, len(r.events)), make([]string, len(r.events))
	tasks, instances := make([]string, len(r.events)), make([]string, len(r.events))
	for i, e := range r.events {
		types[i], times[i], tasks[i], instances[i], payloads[i] = e.Type, e.OccurredAt, *e.TaskID, *e.AgentInstanceID, `{"duration_ms":1250}`
		if e.ApprovalID != nil {
			payloads[i] = `{"approval_id":"` + *e.ApprovalID + `","operation":"deploy"}`
		}
	}
	var taskIDs, roles, models, approvals []string
	var calls []int64
	for id, t := range r.tasks {
		taskIDs, roles, models, calls = append(taskIDs, id), append(roles, *t.AgentRole), append(models, t.Model.ModelID), append(calls, t.Tool.Count)
	}
	for id := range r.approvals {
		approvals = append(approvals, id)
	}
	return withConn(ctx, ownerDSN, func(conn *pgx.Conn) error {
		b := &pgx.Batch{}
		b.Queue(loadExecution, traceID, traceClient, traceSwarm, r.lineage.ManagerDeploymentID, r.lineage.DeploymentID, r.lineage.CorrelationID, r.size)
		b.Queue(loadEvents, traceID, r.size, types, times, tasks, instances, payloads)
		b.Queue(loadTasks, traceID, taskIDs, roles, models, calls)
		b.Queue(loadApprovals, traceID, approvals)
		if err := conn.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("load a run of %d events: %w", r.size, err)
		}
		if _, err := conn.Exec(ctx, `vacuum (analyze) executions, execution_events, execution_tasks, execution_approvals`); err != nil {
			return fmt.Errorf("vacuum the run: %w", err)
		}
		return nil
	})
}

// traces measures what is read of one long run.
func (b *bench) traces(ctx context.Context, r *report) error {
	if !b.options.measures(partAssembly) && !b.options.measures(partPages) {
		return nil
	}
	begun := time.Now()
	run := newRun(b.options.events)
	if err := run.load(ctx, b.server.auditviewOwner); err != nil {
		return err
	}
	b.say("a run of %d events is loaded, in %s", run.size, time.Since(begun).Round(time.Millisecond))
	if err := b.server.checkpoint(ctx); err != nil {
		return err
	}
	var err error
	if b.options.measures(partPages) {
		r.Pages, err = b.pages(ctx, run)
	}
	if err == nil && b.options.measures(partAssembly) {
		r.Assembly, err = b.assembly(ctx, run)
	}
	return err
}
