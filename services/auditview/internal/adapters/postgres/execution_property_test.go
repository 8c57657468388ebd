package postgres_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/historytest"
)

var eventTypes = []string{
	"task.created", "task.running", "task.completed", "task.failed", "task.blocked", "task.stopped", "handoff.requested",
	"timeline.updated", "approval.requested", "approval.approved", "approval.rejected",
}

// drawExecution returns an execution with some history.
func drawExecution(t *testing.T, r *rapid.T, n int) *historytest.Execution {
	t.Helper()
	x := historytest.OpenExecution(t, n, "")
	drawSteps(r, x)
	return x
}

func drawSteps(r *rapid.T, x *historytest.Execution) {
	for range rapid.IntRange(0, 9).Draw(r, "steps") {
		k := rapid.IntRange(0, 9).Draw(r, "k")
		switch rapid.IntRange(0, 7).Draw(r, "step") {
		case 0, 1, 2:
			x.Happen(rapid.SliceOfN(rapid.SampledFrom(eventTypes), 1, 5).Draw(r, "events")...)
		case 3, 4:
			x.Task(k)
		case 5:
			x.Approve(k, rapid.SampledFrom([]string{"", "approved", "rejected"}).Draw(r, "decision"))
		case 6:
			x.Grant(k, rapid.SampledFrom([]string{"active", "revoked"}).Draw(r, "status"))
		default:
			x.Attempt(rapid.IntRange(1, 3).Draw(r, "attempts"))
		}
	}
}

// drawMessages returns the messages of an execution, some sent at once and some late.
func drawMessages(r *rapid.T, x *historytest.Execution) []cloudevent.Event {
	messages := slices.Clone(x.Messages)
	for i, late := range x.Late() {
		if rapid.Bool().Draw(r, "late") {
			messages[i] = late
		}
	}
	return messages
}

// records returns the audit records of an execution, as they are read and built.
func (b *bundle) records(t require.TestingT, x *historytest.Execution) (records []string, result trace.Result) {
	err := b.store.InExecution(context.Background(), app.ExecutionRef{ID: x.Opened().SwarmID},
		func(ctx context.Context, header app.Execution, facts app.ExecutionFacts) error {
			result = header.Result
			return facts.Steps(ctx, 0, header.LastPosition, func(s app.Step) {
				a := trace.Assembler{
					Lineage: header.Lineage, Task: func(string) trace.Task { return s.Task },
					Decision: func(string) trace.Decision { return s.Decision },
				}
				records = append(records, historytest.Lines([]trace.Record{a.Assemble(s.Position, s.Event)})...)
			})
		})
	require.NoError(t, err)
	return records, result
}

// However an execution's history is cut into batches and sent again, wherever a snapshot of
// any moment of it comes in, whole or cut off, with facts read later than its version: the
// tables have the same bytes, and the audit record is the one of the facts.
func TestTheAuditRecordIsAFunctionOfTheFacts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(r *rapid.T) {
		x := drawExecution(t, r, 1)
		then := x.Fork()
		drawSteps(r, x)
		messages := drawMessages(r, x)
		b.clear(r)
		for _, e := range x.Messages {
			b.apply(r, e)
		}
		want := b.content(r)
		records, result := b.records(r, x)
		require.Equal(r, x.Records(), append([]string{}, records...))
		require.Equal(r, x.Result(), result)
		b.clear(r)

		parts := then.SnapshotAhead(x, rapid.IntRange(1, 6).Draw(r, "rows a part"), rapid.Bool().Draw(r, "replace"))
		at := rapid.IntRange(0, int(then.Version())).Draw(r, "at")
		cut := rapid.IntRange(0, len(parts)).Draw(r, "cut")
		back := rapid.IntRange(0, at).Draw(r, "back to")
		if cut == len(parts) {
			// The snapshot came whole: what it has need not come again.
			back = rapid.IntRange(0, int(then.Version())).Draw(r, "back to")
		}
		all := slices.Concat(messages[:at], parts[:cut], messages[back:])
		if rapid.Bool().Draw(r, "again") {
			all = slices.Concat(all, messages[rapid.IntRange(0, len(messages)).Draw(r, "from"):], x.Rebuild(rapid.IntRange(1, 6).Draw(r, "rows")))
		}
		for len(all) > 0 {
			n := rapid.IntRange(1, len(all)).Draw(r, "batch")
			require.Empty(r, b.apply(r, all[:n]...).Gaps)
			all = all[n:]
		}
		require.Empty(r, b.parked(r))
		require.Equal(r, want, b.content(r))
		records, _ = b.records(r, x)
		require.Equal(r, x.Records(), append([]string{}, records...))
	})
}
