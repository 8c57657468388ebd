package runtrace

import (
	"slices"
	"time"

	"verbatim.internal/pkg/contracts/httpapi"
)

// Statuses that a run does not have: a job's, beside running, completed, failed and cancelled.
const (
	statusAwaitingApproval = "awaiting_approval"
	statusRejected         = "rejected"
	statusCompleted        = "completed"
	statusFailed           = "failed"
	statusCancelled        = "cancelled"
)

// invocation folds the events of one job, in order, of which there is at least one.
//
// A job's own events are those about its tool; of a job without any, those of the first
// stage that is no approval. They alone say how it went. Approvals hold it, let it go on
// or end it. A job that is called again after its end runs again.
func invocation(jobID string, events []record) httpapi.Invocation {
	stage := ownStage(events)
	i := httpapi.Invocation{JobID: jobID, Status: running, StartedAt: events[0].OccurredAt}
	for _, r := range events {
		switch r.stage {
		case stageApproval:
			foldApproval(&i, r)
		case stage:
			foldOwn(&i, r)
		}
	}
	if i.FinishedAt != nil && i.DurationMS == nil {
		i.DurationMS = between(i.StartedAt, *i.FinishedAt)
	}
	own := func(r record) bool { return r.stage == stage }
	asked(&i, slices.DeleteFunc(slices.Clone(events), func(r record) bool { return !own(r) }))
	asked(&i, slices.DeleteFunc(slices.Clone(events), own))
	return i
}

func ownStage(events []record) string {
	own := stageApproval
	for _, r := range events {
		switch {
		case r.stage == stageTool:
			return stageTool
		case own == stageApproval:
			own = r.stage
		}
	}
	return own
}

func foldOwn(i *httpapi.Invocation, r record) {
	switch r.last {
	case "called", "attempted", "started", "retried":
		i.Attempts++
		i.Status, i.FinishedAt = running, nil
		i.OK, i.DurationMS, i.RespBytes = nil, nil, nil
	case "completed":
		end(i, statusCompleted, r)
	case "failed", "error", "timeout":
		end(i, statusFailed, r)
	case "cancelled":
		end(i, statusCancelled, r)
	case "rejected", "denied", "blocked":
		end(i, statusRejected, r)
	}
	i.Attempts = max(i.Attempts, 1)
	if n, ok := r.metadata.count("attempt"); ok {
		i.Attempts = max(i.Attempts, n)
	}
	if n, ok := r.metadata.count("retry_count"); ok {
		i.Attempts = max(i.Attempts, min(n+1, maxCount))
	}
	if ok, told := r.metadata.boolean("ok"); told {
		i.OK = &ok
	}
	if ms, ok := r.metadata.duration(); ok {
		i.DurationMS = &ms
	}
	if n, ok := r.metadata.count("resp_bytes"); ok {
		i.RespBytes = &n
	}
}

func foldApproval(i *httpapi.Invocation, r record) {
	state := r.last
	if decision, ok := r.metadata.text("decision"); ok && !slices.Contains(approvalStates, r.last) {
		state = decision
	}
	i.ApprovalState = &state
	if id, ok := r.metadata.text("approval_id"); ok {
		i.ApprovalID = &id
	}
	if i.FinishedAt != nil && i.Status != statusRejected {
		return
	}
	switch state {
	case approvalRequested:
		i.Status, i.FinishedAt = statusAwaitingApproval, nil
	case approvalApproved:
		i.Status, i.FinishedAt = running, nil
	case approvalRejected:
		end(i, statusRejected, r)
	}
}

func end(i *httpapi.Invocation, status string, r record) {
	at := r.OccurredAt
	i.Status, i.FinishedAt = status, &at
}

// asked takes over what was asked for, each from the first event that says it.
func asked(i *httpapi.Invocation, events []record) {
	for _, r := range events {
		for name, field := range map[string]**string{
			"tool": &i.Tool, "provider": &i.Provider, "scope": &i.Scope, "method": &i.Method, "path": &i.Path,
			"approval_id": &i.ApprovalID,
		} {
			if s, ok := r.metadata.text(name); ok && *field == nil {
				*field = &s
			}
		}
		for name, field := range map[string]**int64{"argument_count": &i.ArgumentCount, "args_bytes": &i.ArgsBytes} {
			if n, ok := r.metadata.count(name); ok && *field == nil {
				*field = &n
			}
		}
	}
}

// between returns the milliseconds from one moment to another; nil when there are none.
func between(from, to string) *float64 {
	begin, err := time.Parse(time.RFC3339Nano, from)
	if err != nil {
		return nil
	}
	finish, err := time.Parse(time.RFC3339Nano, to)
	if err != nil {
		return nil
	}
	return milliseconds(finish.Sub(begin))
}

// What events about an approval say.
const (
	approvalRequested = "requested"
	approvalApproved  = "approved"
	approvalRejected  = "rejected"
)

var approvalStates = []string{approvalRequested, approvalApproved, approvalRejected}

func countApproval(g *httpapi.Governance, r record) {
	switch r.last {
	case approvalRequested:
		g.ApprovalsRequested++
	case approvalApproved:
		g.ApprovalsApproved++
	case approvalRejected:
		g.ApprovalsRejected++
	}
}

// approvalCounter counts approvals by their id, else by their job. Of those that have
// neither, requests and decisions are taken for the same ones.
type approvalCounter struct {
	known              map[[2]string]struct{}
	requested, decided int
}

func (c *approvalCounter) add(r record) {
	id, hasID := r.metadata.text("approval_id")
	switch {
	case hasID:
		c.know("approval", id)
	case r.JobID != nil:
		c.know("job", *r.JobID)
	case r.last == approvalRequested:
		c.requested++
	default:
		c.decided++
	}
}

func (c *approvalCounter) know(kind, id string) {
	if c.known == nil {
		c.known = make(map[[2]string]struct{})
	}
	c.known[[2]string{kind, id}] = struct{}{}
}

func (c *approvalCounter) count() int { return len(c.known) + max(c.requested, c.decided) }
