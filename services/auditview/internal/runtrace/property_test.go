package runtrace_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/services/auditview/internal/runtrace"
)

// drawEvents returns any events of a run, by position.
func drawEvents(r *rapid.T) []runtrace.Event {
	event := rapid.SampledFrom([]string{
		"tool.called", "tool.completed", "tool.failed", "tool.retried", "tool.cancelled", "tool.progress",
		"approval.requested", "approval.approved", "approval.rejected", "approval.decided",
		"delivery.attempted", "delivery.completed", "delivery.failed", "note.taken", "a.b_c.d.e",
	})
	value := rapid.SampledFrom([]string{`1`, `2`, `0.5`, `-3`, `true`, `false`, `"x"`, `"failed"`, `"approved"`, `"denied"`, `null`, `9007199254740991`})
	name := rapid.SampledFrom([]string{
		"tool", "provider", "scope", "method", "path", "status", "ok", "duration_ms", "approval_id", "attempt", "retry_count",
		"argument_count", "args_bytes", "resp_bytes", "decision", "other",
	})
	var events []runtrace.Event
	for n := range rapid.IntRange(0, 30).Draw(r, "events") {
		e := runtrace.Event{
			Position: n + 1, Event: event.Draw(r, "event"), DroppedFields: rapid.IntRange(0, 3).Draw(r, "dropped"),
			OccurredAt: at(rapid.IntRange(0, 100).Draw(r, "second")), Metadata: "{",
		}
		for i, field := range rapid.SliceOfNDistinct(name, 0, 5, rapid.ID[string]).Draw(r, "fields") {
			if i > 0 {
				e.Metadata += ","
			}
			e.Metadata += fmt.Sprintf("%q:%s", field, value.Draw(r, "value"))
		}
		e.Metadata += "}"
		if job := rapid.IntRange(0, 3).Draw(r, "job"); job > 0 {
			e.JobID = p(fmt.Sprintf("5000000%d-e89b-42d3-a456-426614174000", job))
		}
		events = append(events, e)
	}
	return events
}

func drawRun(r *rapid.T) runtrace.Run {
	run := runtrace.Run{ClientAppID: "crm", RouteKey: "customers", ClientConversationID: "conv-1", ClientTurnID: "turn-1", CreatedAt: start, Status: "running"}
	if rapid.Bool().Draw(r, "ended") {
		run.Status = rapid.SampledFrom([]string{"completed", "failed", "cancelled"}).Draw(r, "status")
		run.CompletedAt = p(start.Add(time.Duration(rapid.IntRange(-5, 100_000).Draw(r, "after")) * time.Millisecond))
	}
	return run
}

func encode(r *rapid.T, v any) string {
	body, err := json.Marshal(v)
	require.NoError(r, err)
	return string(body)
}

// The same stored events give the same bytes, in whatever order they are read, and what
// they were made from stays as it is.
func TestTracesAreDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		run, events := drawRun(r), drawEvents(r)
		want := encode(r, runtrace.Build(run, events))
		seed := rapid.Uint64().Draw(r, "order")
		shuffled := slices.Clone(events)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		kept := slices.Clone(shuffled)
		require.Equal(r, want, encode(r, runtrace.Build(run, shuffled)))
		require.Equal(r, kept, shuffled)
		// Other positions in the same order, too.
		for i := range events {
			events[i].Position *= 7
		}
		require.Equal(r, want, encode(r, runtrace.Build(run, events)))
	})
}

// The summary counts what the list shows, and a job's trace is a part of its run's.
func TestCountsEqualWhatIsShown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		run, events := drawRun(r), drawEvents(r)
		trace := runtrace.Build(run, events)
		derived := 1
		if run.CompletedAt != nil {
			derived++
		}
		require.Len(r, trace.Trace.Events, len(events)+derived)
		counts(r, trace)
		shown := trace.Trace.Events
		require.Equal(r, "run.opened", shown[0].Event)
		if derived == 2 {
			require.Equal(r, "run."+run.Status, shown[len(shown)-1].Event)
		}
		for i, e := range events {
			require.Equal(r, []string{e.Event, e.OccurredAt, e.Metadata, httpapi.SourceHost},
				[]string{shown[i+1].Event, shown[i+1].TS, string(shown[i+1].Detail), shown[i+1].Source})
		}
		for _, i := range trace.Invocations {
			job := runtrace.BuildJob(i.JobID, events)
			counts(r, job)
			require.Equal(r, []httpapi.Invocation{i}, job.Invocations)
			var own []httpapi.TraceEventView
			for _, e := range shown {
				if e.ToolJobID != nil && *e.ToolJobID == i.JobID {
					own = append(own, e)
				}
			}
			require.Equal(r, own, job.Trace.Events)
		}
	})
}

func counts(r *rapid.T, trace runtrace.Trace) {
	var summary httpapi.TraceSummary
	var governance httpapi.Governance
	jobs := map[string]bool{}
	for _, e := range trace.Trace.Events {
		summary.EventCount++
		switch e.Severity {
		case httpapi.SeverityWarning:
			summary.WarningCount++
		case httpapi.SeverityError:
			summary.ErrorCount++
		}
		switch {
		case e.ToolJobID != nil:
			jobs[*e.ToolJobID] = true
		case e.Event == "tool.called":
			summary.ToolInvocations++
		}
		switch e.Event {
		case "approval.requested":
			governance.ApprovalsRequested++
		case "approval.approved":
			governance.ApprovalsApproved++
		case "approval.rejected":
			governance.ApprovalsRejected++
		}
	}
	summary.ToolInvocations += len(jobs)
	require.Len(r, trace.Invocations, len(jobs))
	summary.Approvals, summary.DurationMS = trace.Trace.Summary.Approvals, trace.Trace.Summary.DurationMS
	governance.DroppedFields = trace.Governance.DroppedFields
	require.Equal(r, summary, trace.Trace.Summary)
	require.Equal(r, governance, trace.Governance)
	decided := governance.ApprovalsApproved + governance.ApprovalsRejected
	if governance.ApprovalsRequested+decided > 0 {
		require.Positive(r, summary.Approvals)
	}
}
