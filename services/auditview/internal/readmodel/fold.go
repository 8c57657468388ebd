package readmodel

import (
	"errors"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/contracts/runv1"
)

// ErrInconsistent is a message that contradicts what its stream held before.
var ErrInconsistent = errors.New("the message contradicts its stream")

// apply folds the next message of the stream into its net effect.
func (f *folder) apply(m Message) error {
	switch body := m.Body.(type) {
	case archivev1.Created:
		if m.Version != 1 || f.archive.known {
			return ErrInconsistent
		}
		f.archive.create(body)
	case archivev1.MemberConfirmed:
		return f.archive.confirm(body)
	case archivev1.EventsAppended:
		return f.archive.appendEvents(body)
	case runv1.Run:
		f.run.record(body, m.Version > 1)
	case runv1.Completed:
		return f.run.complete(body)
	case runv1.TraceRecorded:
		return f.run.trace(body)
	case registryv1.Change:
		return f.setChange(m, body)
	default:
		return f.applyExecution(m)
	}
	return nil
}

// applyExecution folds the next message of an execution.
func (f *folder) applyExecution(m Message) error {
	x := &f.execution
	switch body := m.Body.(type) {
	case executionv1.Execution:
		return x.open(body, m.Version)
	case executionv1.EventsRecorded:
		return x.record(body)
	case executionv1.CallbacksRecorded:
		return x.attempt(body)
	case executionv1.TaskRecorded:
		if body.Task != nil {
			x.tasks.put(taskFact(f.stream.ID, *body.Task))
		}
	case executionv1.ApprovalRecorded:
		if body.Approval != nil {
			x.approvals.put(approvalFact(f.stream.ID, *body.Approval))
		}
	case executionv1.GrantRecorded:
		if body.Grant != nil {
			x.grants.put(grantFact(f.stream.ID, *body.Grant))
		}
	default:
		return ErrUnknownType
	}
	return nil
}

// applySnapshot folds a part of a snapshot and reports whether it was the last one.
func (f *folder) applySnapshot(m Message) (last bool, err error) {
	switch body := m.Body.(type) {
	case archivev1.Snapshot:
		f.archive.restore(body)
		return body.Last, nil
	case runv1.Snapshot:
		return body.Last, f.run.restore(body, m.Part)
	case executionv1.Snapshot:
		return body.Last, f.execution.restore(body, m.Part)
	case registryv1.Change:
		f.changeExists = true
		return true, f.setChange(m, body)
	default:
		return false, ErrUnknownType
	}
}

// setChange folds a change of the registry, which has one version only.
func (f *folder) setChange(m Message, change registryv1.Change) error {
	if m.Version != 1 {
		return ErrInconsistent
	}
	f.change = &change
	return nil
}

// finishChange makes the change of the read model from the change of the registry.
func (f *folder) finishChange(c *Changes) {
	switch {
	case f.change == nil:
	case f.changeExists:
		c.RestoredRegistry = append(c.RestoredRegistry, *f.change)
	default:
		c.Registry = append(c.Registry, *f.change)
	}
}
