package app

import (
	"context"
	"fmt"
	"time"

	"verbatim.internal/pkg/domain/trace"
)

// Bounds of pages of executions and of their parts. A limit of zero means the default.
const (
	DefaultExecutions = 50
	MaxExecutions     = 100
	DefaultRecords    = 200
	MaxRecords        = 1000
)

// ExecutionFilter says which executions are asked for; what is empty excludes none.
type ExecutionFilter struct {
	ClientAppID string
	Result      string
	AgentRole   string // of one of its tasks
	ModelID     string // of one of its tasks
	UserID      string // whom it was said to act for, at any time
	ChannelID   string
	Since       *time.Time // the latest stored event is not before it
	Until       *time.Time // the latest stored event is before it
	After       *ExecutionCursor
}

// ExecutionCursor is the last execution of a page.
type ExecutionCursor struct {
	LatestAt    time.Time // to the microsecond
	ExecutionID string
}

// ExecutionPage is a page of executions, the latest stored event first.
type ExecutionPage struct {
	Executions []LinkedExecution
	HasMore    bool
	// Next is where the next page begins, when HasMore.
	Next ExecutionCursor
}

// AuditPage is a page of an execution's audit trace.
type AuditPage struct {
	Execution Execution
	Records   []trace.Record
	// Next is the ordinal after which the next page begins, nil on the last page.
	Next *int64
	// Tag stands for the bytes of the page and for no others. It is "" while facts are
	// there that are newer than the execution's version.
	Tag string
	// Unchanged tells that the asker knows the page by its tag; it was not read.
	Unchanged bool
}

// ExecutionEventPage is a page of stored events.
type ExecutionEventPage struct {
	Execution Execution
	Events    []ExecutionEvent
	Next      *int64
}

// Executions returns a page of executions, the latest stored event first, then by their
// ids, descending. New executions and new events come before a cursor, so that going on
// with Next repeats nothing; an execution that gets an event meanwhile moves to the first
// page.
func (r *Reader) Executions(ctx context.Context, filter ExecutionFilter, limit int64) (ExecutionPage, error) {
	n := clamp(limit, DefaultExecutions, MaxExecutions)
	executions, err := r.store.Executions(ctx, filter, n+1)
	if err != nil {
		return ExecutionPage{}, err
	}
	page := ExecutionPage{Executions: executions}
	if len(executions) > n {
		page.Executions, page.HasMore = executions[:n], true
		page.Next = ExecutionCursor{executions[n-1].LatestAt, executions[n-1].ExecutionID}
	}
	return page, nil
}

// Audit returns the page of an execution's audit trace after an ordinal. known is asked
// whether a tag stands for a page that the asker has.
func (r *Reader) Audit(ctx context.Context, ref ExecutionRef, cursor, limit int64, known func(tag string) bool) (page AuditPage, err error) {
	n := int64(clamp(limit, DefaultRecords, MaxRecords))
	err = r.store.InExecution(ctx, ref, func(ctx context.Context, x Execution, facts ExecutionFacts) error {
		after, upTo, next := window(cursor, n, x.LastPosition)
		page = AuditPage{Execution: x, Next: next, Tag: tag(x, cursor, n)}
		if page.Unchanged = known(page.Tag); page.Unchanged {
			return nil
		}
		records, ahead, err := assemble(ctx, x, facts, after, upTo, make([]trace.Record, 0, upTo-after))
		if ahead {
			page.Tag = ""
		}
		page.Records = records
		return err
	})
	return page, err
}

// AuditStream calls each for all records of an execution after an ordinal, page by page
// and as of one moment; it keeps one page in memory. Before that it calls begin with
// the tag of the whole ("" for none), which may end it by false. What each returns ends
// it, too, and is returned. The records are each's only until it returns.
func (r *Reader) AuditStream(ctx context.Context, ref ExecutionRef, cursor int64, begin func(tag string) bool, each func([]trace.Record) error) error {
	return r.store.InExecution(ctx, ref, func(ctx context.Context, x Execution, facts ExecutionFacts) error {
		ahead, err := facts.Ahead(ctx)
		if err != nil {
			return err
		}
		whole := ""
		if !ahead {
			whole = tag(x, cursor, 0)
		}
		if !begin(whole) {
			return nil
		}
		records := make([]trace.Record, 0, MaxRecords)
		for {
			after, upTo, next := window(cursor, MaxRecords, x.LastPosition)
			if records, _, err = assemble(ctx, x, facts, after, upTo, records[:0]); err != nil {
				return err
			}
			if err := each(records); err != nil || next == nil {
				return err
			}
			cursor = *next
		}
	})
}

// ExecutionEvents returns the page of an execution's stored events after a position.
func (r *Reader) ExecutionEvents(ctx context.Context, ref ExecutionRef, cursor, limit int64) (page ExecutionEventPage, err error) {
	n := int64(clamp(limit, DefaultRecords, MaxRecords))
	err = r.store.InExecution(ctx, ref, func(ctx context.Context, x Execution, facts ExecutionFacts) error {
		after, upTo, next := window(cursor, n, x.LastPosition)
		events, err := facts.Events(ctx, after, upTo)
		page = ExecutionEventPage{Execution: x, Events: events, Next: next}
		return err
	})
	return page, err
}

// window returns the positions of the page of n after a cursor, and the next page's cursor.
// Events above the last position belong to a snapshot that is not complete.
func window(cursor, n, last int64) (after, upTo int64, next *int64) {
	after = min(cursor, last)
	upTo = min(after+n, last)
	if upTo < last {
		next = &upTo
	}
	return after, upTo, next
}

// tag names what the records after a cursor depend on.
func tag(x Execution, cursor, limit int64) string {
	return fmt.Sprintf("%s.%d.%d.%d", x.ExecutionID, x.Version, cursor, limit)
}

// assemble appends the records of a window to records.
func assemble(ctx context.Context, x Execution, facts ExecutionFacts, after, upTo int64, records []trace.Record) (_ []trace.Record, ahead bool, err error) {
	var at Step
	assembler := trace.Assembler{
		Lineage:  x.Lineage,
		Task:     func(string) trace.Task { return at.Task },
		Decision: func(string) trace.Decision { return at.Decision },
	}
	err = facts.Steps(ctx, after, upTo, func(s Step) {
		at = s
		ahead = ahead || s.Ahead
		records = append(records, assembler.Assemble(s.Position, s.Event))
	})
	return records, ahead, err
}
