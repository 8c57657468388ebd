package historytest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/runv1"
)

// NewRun returns the n-th run, of turn of a conversation's, and its message.
func NewRun(tb testing.TB, n int, session, conversation string, turn int) (runv1.Run, cloudevent.Event) {
	tb.Helper()
	run := runv1.Run{
		RunID: RunID(n), SessionID: session, ClientAppID: "client-0", RouteKey: "route-0", ThreadID: int64(100 + n),
		ClientConversationID: conversation, ClientTurnID: fmt.Sprintf("turn-%d", turn), CreatedAt: Start,
	}
	return run, RunMessage(tb, run, 1, 0)
}

// RunMessage returns the message about a run: with part 1 a snapshot of nothing more.
func RunMessage(tb testing.TB, run runv1.Run, version int64, part int) cloudevent.Event {
	tb.Helper()
	if part > 0 {
		return runEvent(tb, runv1.Snapshot{Run: run, Last: true}, run.RunID, version, part, run.CreatedAt)
	}
	return runEvent(tb, run, run.RunID, version, 0, run.CreatedAt)
}

// Run is one run's history. Its methods append the message of what they do.
type Run struct {
	tb         testing.TB
	clock      time.Time
	version    int64
	run        runv1.Run
	completion *runv1.Completed
	events     []runv1.TraceEvent
	// Messages are the messages so far, in order.
	Messages []cloudevent.Event
}

// OpenRun records the n-th run, of the first turn of a conversation's.
func OpenRun(tb testing.TB, n int) *Run {
	tb.Helper()
	run, recorded := NewRun(tb, n, SessionID(0), fmt.Sprintf("conv-%d", n), 1)
	return ContinueRun(tb, run, recorded)
}

// ContinueRun goes on with a run that NewRun returned.
func ContinueRun(tb testing.TB, run runv1.Run, recorded cloudevent.Event) *Run {
	tb.Helper()
	return &Run{tb: tb, clock: run.CreatedAt, version: 1, run: run, Messages: []cloudevent.Event{recorded}}
}

// ID returns the run's id.
func (r *Run) ID() string { return r.run.RunID }

// Run returns the run as it was recorded.
func (r *Run) Run() runv1.Run { return r.run }

// Completed reports whether the run ended.
func (r *Run) Completed() bool { return r.completion != nil }

// Complete ends the run, as completed with a usage, or with another status and no more.
func (r *Run) Complete(status string) *Run {
	r.tb.Helper()
	r.tick()
	r.completion = &runv1.Completed{RunID: r.run.RunID, Status: status, CompletedAt: r.clock}
	if status == runv1.StatusCompleted {
		tokens, calls, cost := int64(1200), int64(len(r.events)), 0.0125
		r.completion.Model, r.completion.Runtime = "model-4.1", "agent@2.0"
		r.completion.Usage = &runv1.Usage{TotalTokens: &tokens, ToolCalls: &calls, CostUSD: &cost}
	}
	sendRun(r, *r.completion)
	return r
}

// Trace adds n events, of which each two belong to a job of their own.
func (r *Run) Trace(n int) *Run {
	r.tb.Helper()
	r.tick()
	var events []runv1.TraceEvent
	for range n {
		position := len(r.events) + len(events) + 1
		e := runv1.TraceEvent{
			Position: position, EventID: fmt.Sprintf("trace-%d", position), Event: "tool.called",
			OccurredAt: r.clock.Format("2006-01-02T15:04:05.000000000Z"), CreatedAt: r.clock,
			JobID:    ID(jobIDs, int(r.run.ThreadID)*64+position/2),
			Metadata: jsontext.Value(fmt.Sprintf(`{"args_bytes":%d,"tool":"orders.search"}`, position)),
		}
		if position%2 == 0 {
			e.Event, e.DroppedFields = "tool.completed", position
		}
		if position%7 == 0 {
			e.Event, e.JobID, e.Metadata = "run.checked", "", jsontext.Value(`{}`)
		}
		events = append(events, e)
	}
	r.events = append(r.events, events...)
	sendRun(r, runv1.TraceRecorded{RunID: r.run.RunID, Events: events})
	return r
}

// Snapshot returns the parts of a snapshot of the run as it is, with at most eventsPerPart
// events each. It is no part of Messages.
func (r *Run) Snapshot(eventsPerPart int) []cloudevent.Event {
	r.tb.Helper()
	return r.snapshot(eventsPerPart, false)
}

// Rebuild returns a Snapshot that an operator asked for.
func (r *Run) Rebuild(eventsPerPart int) []cloudevent.Event {
	r.tb.Helper()
	return r.snapshot(eventsPerPart, true)
}

func (r *Run) snapshot(eventsPerPart int, replace bool) []cloudevent.Event {
	r.tb.Helper()
	var parts []cloudevent.Event
	for rest := r.events; ; {
		n := min(eventsPerPart, len(rest))
		part := runv1.Snapshot{
			Run: r.run, Completion: r.completion, Events: slices.Clone(rest[:n]), Last: n == len(rest), Replace: replace,
		}
		parts = append(parts, runEvent(r.tb, part, r.run.RunID, r.version, len(parts)+1, r.clock))
		if rest = rest[n:]; part.Last {
			return parts
		}
	}
}

func (r *Run) tick() { r.clock = r.clock.Add(1234567 * time.Microsecond) }

func sendRun[M runv1.Message](r *Run, m M) {
	r.tb.Helper()
	r.version++
	r.Messages = append(r.Messages, runEvent(r.tb, m, r.run.RunID, r.version, 0, r.clock))
}

func runEvent[M runv1.Message](tb testing.TB, m M, id string, version int64, part int, at time.Time) cloudevent.Event {
	tb.Helper()
	data, err := runv1.Marshal(m)
	require.NoError(tb, err)
	return cloudevent.New(runv1.StreamKind, id, version, part, m.Type(), at, data)
}
