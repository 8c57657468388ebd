package postgres

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/services/auditview/internal/readmodel"
)

func (w *writer) executionEvents(sql string, events []readmodel.ExecutionEventChange) {
	if len(events) == 0 {
		return
	}
	var (
		id, event, name, occurred, payload, dropped column[string]
		position, count                             column[int]
		task, instance, role, user, channel         column[*string]
		recorded                                    column[time.Time]
	)
	for i := range events {
		e := &events[i].Event
		id.add(events[i].ExecutionID)
		position.add(e.Position)
		event.add(e.EventID)
		name.add(e.EventType)
		occurred.add(e.OccurredAt)
		task.add(known(e.TaskID))
		instance.add(known(e.AgentInstanceID))
		role.add(known(e.AgentRole))
		user.add(known(e.UserID))
		channel.add(known(e.ChannelID))
		payload.add(string(e.Payload))
		dropped.add(strings.Join(e.DroppedFields, ",")) // the name of a field has no comma
		count.add(e.DroppedCount)
		recorded.add(e.RecordedAt)
	}
	w.exactly(len(events), sql, id, position, event, name, occurred, task, instance, role, user, channel, payload, dropped, count, recorded)
}

func (w *writer) attempts(sql string, attempts []readmodel.AttemptChange) error {
	if len(attempts) == 0 {
		return nil
	}
	var id, attempt, event, facts column[string]
	var position column[int]
	for _, c := range attempts {
		var a execution.AttemptFacts
		if json.Unmarshal(c.Attempt.Facts, &a) != nil {
			return errInconsistent
		}
		id.add(c.ExecutionID)
		position.add(c.Attempt.Position)
		attempt.add(c.Attempt.AttemptID)
		event.add(a.EventID)
		facts.add(string(c.Attempt.Facts))
	}
	w.exactly(len(attempts), sql, id, position, attempt, event, facts)
	return nil
}

func (w *writer) attributions(attributions []readmodel.Attribution) {
	if len(attributions) == 0 {
		return
	}
	var axis, value, id column[string]
	for _, a := range attributions {
		axis.add(a.Axis)
		value.add(a.Value)
		id.add(a.ExecutionID)
	}
	w.batch.Queue(sqlInsertAttributions, axis, value, id)
}
