package historytest

import (
	"maps"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/domain/trace"
)

// Snapshot returns the parts of a snapshot of the execution as it is, with at most so many
// rows each. It is no part of Messages.
func (x *Execution) Snapshot(rowsPerPart int) []cloudevent.Event {
	x.tb.Helper()
	return x.SnapshotAhead(x, rowsPerPart, false)
}

// Rebuild returns a Snapshot that an operator asked for.
func (x *Execution) Rebuild(rowsPerPart int) []cloudevent.Event {
	x.tb.Helper()
	return x.SnapshotAhead(x, rowsPerPart, true)
}

// SnapshotAhead returns a snapshot of x whose facts are read when they are those of later,
// the same execution further on.
func (x *Execution) SnapshotAhead(later *Execution, rowsPerPart int, replace bool) []cloudevent.Event {
	x.tb.Helper()
	p := &executionParts{x: x, most: rowsPerPart}
	p.next = executionv1.Snapshot{
		Execution: x.header, LastPosition: len(x.events), Result: trace.Info, LatestAt: x.header.CreatedAt, Replace: replace,
	}
	for _, e := range x.events {
		p.room()
		p.next.Events, p.next.LatestAt = append(p.next.Events, e), e.RecordedAt
		if result := trace.ResultOf(e.EventType); result != trace.Info {
			p.next.Result = result
		}
	}
	pageOf(p, later.tasks, &p.next.Tasks, &p.next.Counts.Tasks, func(t executionv1.Task) string { return t.TaskID })
	pageOf(p, later.approvals, &p.next.Approvals, &p.next.Counts.Approvals, func(a executionv1.Approval) string { return a.ApprovalID })
	pageOf(p, later.grants, &p.next.Grants, &p.next.Counts.Grants, func(g executionv1.Grant) string { return g.GrantID })
	for _, a := range x.attempts {
		p.room()
		p.next.Attempts = append(p.next.Attempts, a)
		p.next.Counts.Attempts++
	}
	p.next.Last = true
	p.send()
	return p.sent
}

// executionParts makes the parts of a snapshot.
type executionParts struct {
	x          *Execution
	most, rows int
	next       executionv1.Snapshot
	sent       []cloudevent.Event
}

// room makes room for one row.
func (p *executionParts) room() {
	if p.rows == p.most {
		p.send()
	}
	p.rows++
}

func (p *executionParts) send() {
	p.x.tb.Helper()
	p.sent = append(p.sent, executionEvent(p.x.tb, p.next, p.x.ID(), p.x.version, len(p.sent)+1, p.x.clock))
	p.next.Events, p.next.Tasks, p.next.Approvals, p.next.Grants, p.next.Attempts = nil, nil, nil, nil, nil
	p.rows = 0
}

func pageOf[F any](p *executionParts, facts map[string]F, page **executionv1.Page[F], count *int, id func(F) string) {
	*page = &executionv1.Page[F]{Items: []F{}}
	after := ""
	for _, f := range sortedValues(facts) {
		if p.rows == p.most {
			if (*page).UpTo = after; (*page).After == after {
				*page = nil
			}
			p.send()
			*page = &executionv1.Page[F]{After: after, Items: []F{}}
		}
		p.rows++
		(*page).Items = append((*page).Items, f)
		*count++
		after = id(f)
	}
}

// Fork returns an execution with the same history so far, and its own from here on.
func (x *Execution) Fork() *Execution {
	fork := *x
	fork.tasks, fork.approvals, fork.grants = maps.Clone(x.tasks), maps.Clone(x.approvals), maps.Clone(x.grants)
	fork.events, fork.attempts = x.events[:len(x.events):len(x.events)], x.attempts[:len(x.attempts):len(x.attempts)]
	fork.late, fork.Messages = x.late[:len(x.late):len(x.late)], x.Messages[:len(x.Messages):len(x.Messages)]
	return &fork
}

func sendExecution[M executionv1.Message](x *Execution, message func(*Execution) M) {
	x.tb.Helper()
	x.version++
	version, at := x.version, x.clock
	send := func(x *Execution) cloudevent.Event { return executionEvent(x.tb, message(x), x.ID(), version, 0, at) }
	x.late = append(x.late, send)
	x.Messages = append(x.Messages, send(x))
}

func executionEvent[M executionv1.Message](tb testing.TB, m M, id string, version int64, part int, at time.Time) cloudevent.Event {
	tb.Helper()
	data, err := executionv1.Marshal(m)
	require.NoError(tb, err)
	return cloudevent.New(executionv1.StreamKind, id, version, part, m.Type(), at, data)
}

func read(tb testing.TB, text jsontext.Value, into any) {
	tb.Helper()
	require.NoError(tb, json.Unmarshal(text, into))
}

// known returns s, or nil for "".
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
