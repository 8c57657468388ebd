package postgres

import (
	"fmt"
	"time"

	"verbatim.internal/pkg/contracts/runv1"
	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// statusRunning is the status of a run without a completion.
const statusRunning = "running"

// runColumns are the columns that a run is recorded with.
type runColumns struct {
	run, session, client, route, conversation, turn column[string]
	thread                                          column[int64]
	created                                         column[time.Time]
}

func (c *runColumns) add(r runv1.Run) {
	c.run.add(r.RunID)
	c.session.add(r.SessionID)
	c.client.add(r.ClientAppID)
	c.route.add(r.RouteKey)
	c.thread.add(r.ThreadID)
	c.conversation.add(r.ClientConversationID)
	c.turn.add(r.ClientTurnID)
	c.created.add(r.CreatedAt)
}

func (c *runColumns) args() []any {
	return []any{c.run, c.session, c.client, c.route, c.thread, c.conversation, c.turn, c.created}
}

// runs writes runs as they were recorded, also before migration 003.
func (w *writer) runs(sql string, runs []runv1.Run) {
	if len(runs) == 0 {
		return
	}
	var columns runColumns
	for _, r := range runs {
		columns.add(r)
	}
	w.batch.Queue(sql, columns.args()...)
}

// completionColumns are the columns of runs' completions.
type completionColumns struct {
	status                column[string]
	model, runtime, usage column[*string]
	completed             column[*time.Time]
}

// add adds a completion, or nil for a run that has none.
func (c *completionColumns) add(m *runv1.Completed) error {
	if m == nil {
		m = &runv1.Completed{Status: statusRunning}
	}
	var usage *string
	if m.Usage != nil {
		text, err := canonical.JSON(m.Usage)
		if err != nil {
			return fmt.Errorf("write a completion: %w", errUnwritable)
		}
		usage = when(true, string(text))
	}
	c.status.add(m.Status)
	c.model.add(when(m.Model != "", m.Model))
	c.runtime.add(when(m.Runtime != "", m.Runtime))
	c.usage.add(usage)
	c.completed.add(when(!m.CompletedAt.IsZero(), m.CompletedAt))
	return nil
}

func (c *completionColumns) args() []any {
	return []any{c.status, c.model, c.runtime, c.usage, c.completed}
}

func (w *writer) completed(completed []runv1.Completed) error {
	if len(completed) == 0 {
		return nil
	}
	var id column[string]
	var columns completionColumns
	for _, c := range completed {
		id.add(c.RunID)
		if err := columns.add(&c); err != nil {
			return err
		}
	}
	w.exactly(len(completed), sqlCompleteRuns, append([]any{id}, columns.args()...)...)
	return nil
}

func (w *writer) replacedRuns(replaced []readmodel.ReplacedRun) error {
	if len(replaced) == 0 {
		return nil
	}
	var runs runColumns
	var completions completionColumns
	var keep, last column[int]
	for _, r := range replaced {
		runs.add(r.Run)
		if err := completions.add(r.Completion); err != nil {
			return err
		}
		keep.add(r.KeepEvents)
		last.add(r.LastPosition)
	}
	w.batch.Queue(sqlReplaceWholeRuns, append(append(runs.args(), completions.args()...), last)...)
	w.batch.Queue(sqlDeleteTraceAbove, runs.run, keep)
	return nil
}

// finishReplacedRuns checks that the parts of each snapshot were all there.
func (w *writer) finishReplacedRuns(replaced []readmodel.ReplacedRun) {
	if len(replaced) == 0 {
		return
	}
	var id column[string]
	var last column[int]
	for _, r := range replaced {
		id.add(r.Run.RunID)
		last.add(r.LastPosition)
	}
	w.batch.Queue(sqlTraceIncomplete, id, last).QueryRow(complete)
}

func (w *writer) traced(traced []readmodel.TraceChange) {
	if len(traced) == 0 {
		return
	}
	var id column[string]
	var before, last column[int]
	for _, t := range traced {
		id.add(t.RunID)
		before.add(t.Before)
		last.add(t.Last)
	}
	w.exactly(len(traced), sqlExtendTraces, id, before, last)
}

func (w *writer) traceEvents(sql string, events []readmodel.TraceEventChange) {
	if len(events) == 0 {
		return
	}
	var (
		id, event, name, occurred, metadata column[string]
		position, dropped                   column[int]
		job                                 column[*string]
		created                             column[time.Time]
	)
	for _, c := range events {
		e := c.Event
		id.add(c.RunID)
		position.add(e.Position)
		event.add(e.EventID)
		name.add(e.Event)
		occurred.add(e.OccurredAt)
		job.add(when(e.JobID != "", e.JobID))
		metadata.add(string(e.Metadata))
		dropped.add(e.DroppedFields)
		created.add(e.CreatedAt)
	}
	w.exactly(len(events), sql, id, position, event, name, occurred, job, metadata, dropped, created)
}
