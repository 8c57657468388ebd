package app

import (
	"context"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/services/auditview/internal/lineage"
)

// graphBounds let every execution of 100,000 usual tasks through.
var graphBounds = GraphBounds{Bytes: 64 << 20, Edges: 1_000_000, Events: 100_000}

// ExecutionLineage is an execution with its task graph.
type ExecutionLineage struct {
	Execution LinkedExecution
	Graph     httpapi.TaskGraph
}

// ApprovalPage is a page of approvals, by their ids.
type ApprovalPage struct {
	Execution Execution
	Approvals []Approval
	Next      *string // the id after which the next page begins, nil on the last page
}

// GrantPage is a page of grants, by their ids.
type GrantPage struct {
	Execution Execution
	Grants    []Grant
	Next      *string
}

// Diagnostics is a page of callback attempts, in the order of their storage.
type Diagnostics struct {
	Execution Execution
	Attempts  []Attempt
	Events    []Delivery // for the page's attempts, by event id
	Totals    DeliveryTotals
	Next      *int64
}

// ExecutionLineage returns an execution's task graph. One that is too large to be shown at
// once is ErrTooLarge.
func (r *Reader) ExecutionLineage(ctx context.Context, ref ExecutionRef) (result ExecutionLineage, err error) {
	var tasks []lineage.Task
	var events []lineage.Event
	err = r.store.InExecution(ctx, ref, func(ctx context.Context, x Execution, facts ExecutionFacts) (err error) {
		result.Execution.Execution = x
		if result.Execution.ExecutionLink, err = facts.Link(ctx); err != nil {
			return err
		}
		tasks, events, err = facts.Graph(ctx, graphBounds)
		return err
	})
	if err != nil {
		return ExecutionLineage{}, err
	}
	result.Graph = lineage.Build(tasks, events)
	return result, nil
}

// Approvals returns the page of an execution's approvals after an id.
func (r *Reader) Approvals(ctx context.Context, ref ExecutionRef, after string, limit int64) (page ApprovalPage, err error) {
	n := clamp(limit, DefaultRecords, MaxRecords)
	err = r.store.InExecution(ctx, ref, func(ctx context.Context, x Execution, facts ExecutionFacts) error {
		approvals, err := facts.Approvals(ctx, after, n+1)
		page = ApprovalPage{Execution: x, Approvals: approvals}
		if len(approvals) > n {
			page.Approvals, page.Next = approvals[:n], &approvals[n-1].ID
		}
		return err
	})
	return page, err
}

// Grants returns the page of an execution's grants after an id.
func (r *Reader) Grants(ctx context.Context, ref ExecutionRef, after string, limit int64) (page GrantPage, err error) {
	n := clamp(limit, DefaultRecords, MaxRecords)
	err = r.store.InExecution(ctx, ref, func(ctx context.Context, x Execution, facts ExecutionFacts) error {
		grants, err := facts.Grants(ctx, after, n+1)
		page = GrantPage{Execution: x, Grants: grants}
		if len(grants) > n {
			page.Grants, page.Next = grants[:n], &grants[n-1].ID
		}
		return err
	})
	return page, err
}

// Diagnostics returns the page of an execution's callback attempts after a position.
func (r *Reader) Diagnostics(ctx context.Context, ref ExecutionRef, cursor, limit int64) (page Diagnostics, err error) {
	n := clamp(limit, DefaultRecords, MaxRecords)
	err = r.store.InExecution(ctx, ref, func(ctx context.Context, x Execution, facts ExecutionFacts) error {
		attempts, err := facts.Attempts(ctx, cursor, n+1)
		if err != nil {
			return err
		}
		page = Diagnostics{Execution: x, Attempts: attempts}
		if len(attempts) > n {
			page.Attempts, page.Next = attempts[:n], &attempts[n-1].Position
		}
		ids := make([]string, len(page.Attempts))
		for i, a := range page.Attempts {
			ids[i] = a.Facts.EventID
		}
		page.Events, page.Totals, err = facts.Deliveries(ctx, ids)
		return err
	})
	return page, err
}
