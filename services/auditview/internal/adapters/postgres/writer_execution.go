package postgres

import (
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// executions writes what a plan does to executions.
func (w *writer) executions(c readmodel.ExecutionChanges) error {
	w.replacedExecutions(c.Replaced)
	opened := make([]readmodel.ExecutionState, 0, len(c.Replaced))
	for _, r := range c.Replaced {
		opened = append(opened, r.ExecutionState)
	}
	w.executionStates(sqlInsertExecutions+sqlReplaceExecutions, opened)
	w.executionStates(sqlInsertExecutions, c.Opened)
	w.extended(c.Extended)
	w.cleared(sqlClearTasks, c.ClearedTasks)
	w.cleared(sqlClearApprovals, c.ClearedApprovals)
	w.cleared(sqlClearGrants, c.ClearedGrants)
	if err := errors.Join(w.tasks(c.Tasks), w.approvals(c.Approvals)); err != nil {
		return err
	}
	w.grants(c.Grants)
	w.executionEvents(sqlInsertExecutionEvents+sqlSameExecutionEvents, c.Events)
	w.executionEvents(sqlInsertExecutionEvents+sqlReplaceExecutionEvents, c.RestoredEvents)
	if err := errors.Join(
		w.attempts(sqlInsertAttempts+sqlSameAttempts, c.Attempts),
		w.attempts(sqlInsertAttempts+sqlReplaceAttempts, c.RestoredAttempts),
	); err != nil {
		return err
	}
	w.attributions(c.Attributions)
	w.finishReplacedExecutions(c.Replaced)
	return nil
}

func (w *writer) replacedExecutions(replaced []readmodel.ReplacedExecution) {
	if len(replaced) == 0 {
		return
	}
	var id, right, client, swarm column[string]
	var events, attempts column[int]
	for _, r := range replaced {
		id.add(r.Execution.ExecutionID)
		events.add(r.KeepEvents)
		attempts.add(r.KeepAttempts)
		if r.Replace {
			right.add(r.Execution.ExecutionID)
			client.add(r.Execution.ClientAppID)
			swarm.add(r.Execution.SwarmID)
		}
	}
	if len(right) > 0 {
		w.batch.Queue(sqlTakeSwarms, right, client, swarm)
		w.batch.Queue(sqlForgetAttributions, right)
	}
	w.batch.Queue(sqlDeleteExecutionEventsAbove, id, events)
	w.batch.Queue(sqlDeleteAttemptsAbove, id, attempts)
}

// finishReplacedExecutions makes anew the attributions that an operator's snapshot forgot,
// and checks that the parts of each snapshot were all there.
func (w *writer) finishReplacedExecutions(replaced []readmodel.ReplacedExecution) {
	if len(replaced) == 0 {
		return
	}
	var id, right column[string]
	var last, tasks, approvals, grants, attempts column[int]
	for _, r := range replaced {
		id.add(r.Execution.ExecutionID)
		last.add(r.LastPosition)
		tasks.add(r.Counts.Tasks)
		approvals.add(r.Counts.Approvals)
		grants.add(r.Counts.Grants)
		attempts.add(r.Counts.Attempts)
		if r.Replace {
			right.add(r.Execution.ExecutionID)
		}
	}
	if len(right) > 0 {
		w.batch.Queue(sqlAttributionsOfEvents, right)
	}
	w.batch.Queue(sqlExecutionIncomplete, id, last, tasks, approvals, grants, attempts).QueryRow(complete)
}

func (w *writer) executionStates(sql string, states []readmodel.ExecutionState) {
	if len(states) == 0 {
		return
	}
	var id, client, swarm, result column[string]
	var manager, deployment, correlation, run column[*string]
	var last column[int]
	var version column[int64]
	var created, latest column[time.Time]
	for _, s := range states {
		e := s.Execution
		id.add(e.ExecutionID)
		client.add(e.ClientAppID)
		swarm.add(e.SwarmID)
		manager.add(known(e.ManagerDeploymentID))
		deployment.add(known(e.DeploymentID))
		correlation.add(known(e.CorrelationID))
		run.add(known(e.RunID))
		last.add(s.LastPosition)
		result.add(string(s.Result))
		version.add(s.Version)
		created.add(e.CreatedAt)
		latest.add(s.LatestAt)
	}
	w.batch.Queue(sql, id, client, swarm, manager, deployment, correlation, run, last, result, version, created, latest)
}

// known returns s, or nil for "".
func known(s string) *string { return when(s != "", s) }

func (w *writer) extended(extended []readmodel.ExecutionProgress) {
	if len(extended) == 0 {
		return
	}
	var id column[string]
	var version column[int64]
	var before, last column[*int]
	var result column[*string]
	var latest column[*time.Time]
	for _, x := range extended {
		id.add(x.ExecutionID)
		version.add(x.Version)
		e, ok := x.Events, x.Events != nil
		if !ok {
			e = &readmodel.EventProgress{}
		}
		before.add(when(ok, e.Before))
		last.add(when(ok, e.Last))
		result.add(when(ok && e.Result != trace.Info, string(e.Result)))
		latest.add(when(ok, e.LatestAt))
	}
	w.exactly(len(extended), sqlExtendExecutions, id, version, before, last, result, latest)
}

func (w *writer) cleared(sql string, ranges []readmodel.FactRange) {
	if len(ranges) == 0 {
		return
	}
	var id, after, upTo column[string]
	for _, r := range ranges {
		id.add(r.ExecutionID)
		after.add(r.After)
		upTo.add(r.UpTo)
	}
	w.batch.Queue(sql, id, after, upTo)
}

// factColumns are the columns of facts of all kinds.
type factColumns struct {
	execution, id, facts column[string]
	version              column[int64]
}

func (c *factColumns) add(f readmodel.Fact) {
	c.execution.add(f.ExecutionID)
	c.id.add(f.ID)
	c.version.add(f.Version)
	c.facts.add(string(f.Facts))
}

func (w *writer) tasks(tasks []readmodel.Fact) error {
	if len(tasks) == 0 {
		return nil
	}
	var c factColumns
	var role, model, user, channel column[*string]
	var input, output, total, tools column[*int64]
	var used column[time.Time]
	for _, f := range tasks {
		var t execution.Task
		if json.Unmarshal(f.Facts, &t) != nil {
			return errInconsistent
		}
		usage := t.Usage
		if usage == nil {
			usage = &execution.Usage{}
		}
		c.add(f)
		role.add(known(t.AgentRole))
		model.add(known(usage.ModelID))
		input.add(usage.InputTokens)
		output.add(usage.OutputTokens)
		total.add(usage.TotalTokens)
		tools.add(t.ToolCount)
		user.add(known(t.UserID))
		channel.add(known(t.ChannelID))
		used.add(usedAt(t, f.RecordedAt))
	}
	w.batch.Queue(sqlPutTasks, c.execution, c.id, c.version, role, model, input, output, total, tools, user, channel, used, c.facts)
	return nil
}

// usedAt returns when a task used what it used: when it changed last or began, by its own
// clock, else when it was told of.
func usedAt(t execution.Task, recordedAt time.Time) time.Time {
	for _, s := range []string{t.UpdatedAt, t.CreatedAt} {
		if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return at.Truncate(time.Microsecond)
		}
	}
	return recordedAt
}

func (w *writer) approvals(approvals []readmodel.Fact) error {
	if len(approvals) == 0 {
		return nil
	}
	var c factColumns
	var decision column[*string]
	for _, f := range approvals {
		var a execution.Approval
		if json.Unmarshal(f.Facts, &a) != nil {
			return errInconsistent
		}
		c.add(f)
		decision.add(known(a.Decision))
	}
	w.batch.Queue(sqlPutApprovals, c.execution, c.id, c.version, decision, c.facts)
	return nil
}

func (w *writer) grants(grants []readmodel.Fact) {
	if len(grants) == 0 {
		return
	}
	var c factColumns
	for _, f := range grants {
		c.add(f)
	}
	w.batch.Queue(sqlPutGrants, c.execution, c.id, c.version, c.facts)
}
