package postgres

import (
	"fmt"
	"strings"
	"time"

	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest/internal/app"
)

const (
	insertExecution = `
		insert into bz_executions (execution_id, client_app_id, swarm_id, manager_deployment_id, deployment_id, correlation_id,
			run_id, user_id, channel_id, stream_version, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10)`
	insertExecutionEvents = `
		insert into bz_execution_events (execution_id, position, event_id, event_type, occurred_at, task_id, agent_instance_id,
			agent_role, user_id, channel_id, payload, dropped_fields, dropped_count, event_hash, recorded_at)
		select $1, q.position, q.event_id, q.event_type, q.occurred_at, q.task_id, q.agent_instance_id,
			$2, $3, $4, q.payload::json, string_to_array(q.dropped_fields, ','), q.dropped_count, q.event_hash, $5
		from unnest($6::int[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::int[], $15::bytea[])
			as q (position, event_id, event_type, occurred_at, task_id, agent_instance_id, payload, dropped_fields, dropped_count, event_hash)`
	insertAttempts = `
		insert into bz_execution_callback_attempts (execution_id, position, attempt_id, facts, recorded_at)
		select $1, q.position, q.attempt_id, q.facts::json, $2
		from unnest($3::int[], $4::text[], $5::text[]) as q (position, attempt_id, facts)`
	updateExecution = `
		update bz_executions set last_position = $2, task_count = $3, stream_version = $4 where execution_id = $1`
)

// rowBytes is more than what one fact's ids, times and columns take in a message.
const rowBytes = 512

// InsertExecution implements [app.ExecutionTx].
func (t executionTransaction) InsertExecution(e app.Execution, by execution.Attribution) error {
	o := e.Opening
	t.writes.Queue(insertExecution, e.ID, e.Key.ClientAppID, o.SwarmID, notEmpty(o.ManagerDeploymentID), notEmpty(o.DeploymentID),
		notEmpty(o.CorrelationID), notEmpty(string(o.RunID)), notEmpty(by.UserID), notEmpty(by.ChannelID), e.CreatedAt)
	t.queueExecutionMessage(e, executionv1.TypeOpened, `{}`, rowBytes, e.CreatedAt)
	return nil
}

// InsertEvents implements [app.ExecutionTx].
func (t executionTransaction) InsertEvents(e app.Execution, fresh []execution.Event, now time.Time) error {
	n := len(fresh)
	positions, counts := make([]int32, n), make([]int32, n)
	ids, types, times, payloads, dropped := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	tasks, instances, hashes := make([]*string, n), make([]*string, n), make([][]byte, n)
	textBytes := 0
	for i := range fresh {
		event := &fresh[i]
		positions[i], counts[i] = int32(event.Position), int32(event.DroppedCount) //nolint:gosec // at most execution.MaxEvents, and what a body can hold
		ids[i], types[i], times[i] = event.EventID, event.EventType, event.OccurredAt
		payloads[i], dropped[i] = string(event.Payload), strings.Join(event.DroppedFields, ",")
		tasks[i], instances[i], hashes[i] = notEmpty(event.TaskID), notEmpty(event.AgentInstanceID), event.Hash[:]
		textBytes += rowBytes + len(payloads[i]) + len(dropped[i])
	}
	by := fresh[0] // one request has one attribution
	t.writes.Queue(insertExecutionEvents, e.ID, notEmpty(by.AgentRole), notEmpty(by.UserID), notEmpty(by.ChannelID), now,
		positions, ids, types, times, tasks, instances, payloads, dropped, counts, hashes)
	e.LastPosition = fresh[n-1].Position
	t.queueVersion(e)
	t.queueExecutionMessage(e, executionv1.TypeEventsRecorded, positionsPayload(fresh[0].Position, e.LastPosition), textBytes, now)
	return nil
}

// PutFact implements [app.ExecutionTx].
func (t executionTransaction) PutFact(e app.Execution, f app.PutFact, tasks int, now time.Time) error {
	args := []any{e.ID, f.ID, e.StreamVersion, string(f.Facts), now}
	if f.Kind != app.TaskFact {
		args = append(args, f.Final)
	}
	t.writes.Queue(factsOf[f.Kind].put, args...)
	e.TaskCount = tasks
	t.queueVersion(e)
	name, messageType := "task_id", executionv1.TypeTaskRecorded
	switch f.Kind {
	case app.ApprovalFact:
		name, messageType = "approval_id", executionv1.TypeApprovalRecorded
	case app.GrantFact:
		name, messageType = "grant_id", executionv1.TypeGrantRecorded
	case app.TaskFact:
	}
	payload := `{"` + name + `":"` + f.ID + `"}` // an id has nothing to escape
	t.queueExecutionMessage(e, messageType, payload, rowBytes+len(f.Facts), now)
	return nil
}

// InsertAttempts implements [app.ExecutionTx].
func (t executionTransaction) InsertAttempts(e app.Execution, fresh []execution.Attempt, now time.Time) error {
	n := len(fresh)
	positions, ids, facts := make([]int32, n), make([]string, n), make([]string, n)
	textBytes := 0
	for i, a := range fresh {
		positions[i] = int32(a.Position) //nolint:gosec // more attempts than an int32 counts would fill the disk first, and are refused by the table
		ids[i], facts[i] = a.AttemptID, string(a.Facts)
		textBytes += rowBytes + len(a.Facts)
	}
	t.writes.Queue(insertAttempts, e.ID, now, positions, ids, facts)
	t.queueVersion(e)
	t.queueExecutionMessage(e, executionv1.TypeCallbacksRecorded, positionsPayload(fresh[0].Position, fresh[n-1].Position), textBytes, now)
	return nil
}

func (t executionTransaction) queueVersion(e app.Execution) {
	t.writes.Queue(updateExecution, e.ID, e.LastPosition, e.TaskCount, e.StreamVersion)
}

func (t executionTransaction) queueExecutionMessage(e app.Execution, messageType, payload string, textBytes int, now time.Time) {
	partition := transport.Partition(string(e.ID))
	t.writes.Queue(insertOutbox, partition, executionv1.StreamKind, e.ID, e.StreamVersion, messageType, payload, textBytes, t.trace, now)
	t.partitions = append(t.partitions, partition)
}

func positionsPayload(first, last int) string {
	return fmt.Sprintf(`{"first_position":%d,"last_position":%d}`, first, last)
}
