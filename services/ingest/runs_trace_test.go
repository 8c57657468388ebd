package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/domain/run"
)

// traceEvent is one event; more are its further fields.
func traceEvent(id, more string) string {
	return `{"event_id":"` + id + `","event":"tool.called","occurred_at":"2026-06-08T11:00:03.120+02:00"` + more + `}`
}

func traceBody(events ...string) string { return `{"events":[` + strings.Join(events, ",") + `]}` }

// manyEvents are n events whose ids begin with prefix.
func manyEvents(prefix string, n int) string {
	events := make([]string, n)
	for i := range events {
		events[i] = traceEvent(fmt.Sprintf("%s-%d", prefix, i), "")
	}
	return traceBody(events...)
}

// wantAck checks the acknowledgement of trace events.
func wantAck(t *testing.T, r runsReply, id string, accepted, skipped, dropped, last int) {
	t.Helper()
	require.JSONEq(t, fmt.Sprintf(`{"schema":"verbatim.run-trace-ack.v1","run_id":%q,"accepted":%d,"skipped":%d,"dropped_fields":%d,"last_position":%d}`,
		id, accepted, skipped, dropped, last), wantRuns(t, r).raw)
}

func TestWhatHappenedInARunIsRecordedAsMetadata(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id := b.open(t, runsA, "conv", "t1")
	path := "/runs/" + id + "/trace-events"
	wantAck(t, b.post(t, path, runsA, traceBody(
		traceEvent("call", `,"job_id":"`+strings.ToUpper(runsJob1)+`","metadata":{"tool":"orders.search","path":"/orders/{id}?q=late#x","arguments":{"q":"late"},"duration_ms":1.20e2,"state":null}`),
		`{"event_id":"any","event":"host.thought_about_it","occurred_at":"2026-06-08T09:00:03Z"}`,
		`{"event_id":"asked","event":"approval.requested","occurred_at":"2026-12-31T23:30:00-05:45","job_id":"`+runsJob1+`","metadata":{"approval_id":"ap-1","decision":"perhaps","risk_level":"high"}}`,
	)), id, 3, 0, 3, 3)
	wantAck(t, b.post(t, path, runsA, traceBody(traceEvent("done", `,"job_id":"`+runsJob2+`","metadata":{"ok":false,"exit_code":-1}`))), id, 1, 0, 0, 4)
	require.Equal(t, []string{
		`1 call tool.called 2026-06-08T09:00:03.120Z ` + runsJob1 + ` {"duration_ms":120,"path":"/orders/{id}","tool":"orders.search"} 2`,
		`2 any host.thought_about_it 2026-06-08T09:00:03Z {} 0`,
		`3 asked approval.requested 2027-01-01T05:15:00Z ` + runsJob1 + ` {"approval_id":"ap-1","risk_level":"high"} 1`,
		`4 done tool.called 2026-06-08T09:00:03.120Z ` + runsJob2 + ` {"exit_code":-1,"ok":false} 0`,
	}, b.rows(t, `select concat_ws(' ', position, event_id, event, occurred_at, job_id, metadata, dropped_fields)
		from bz_agent_run_trace_events where run_id = $1 order by position`, id))
	require.Equal(t, []string{
		"verbatim.run.recorded.v1 1 {}",
		`verbatim.run.trace_recorded.v1 2 {"first_position":1,"last_position":3}`,
		`verbatim.run.trace_recorded.v1 3 {"first_position":4,"last_position":4}`,
	}, b.outbox(t, id))
	require.Equal(t, []string{"true"}, b.rows(t, `select bool_and(text_bytes > 0)::text from outbox where type = 'verbatim.run.trace_recorded.v1'`))

	wantRuns(t, b.post(t, "/runs/"+id+"/complete", runsA, completionBody("a")))
	wantAck(t, b.post(t, path, runsA, traceBody(traceEvent("late", ""))), id, 1, 0, 0, 5)
	require.Equal(t, `verbatim.run.trace_recorded.v1 5 {"first_position":5,"last_position":5}`, b.outbox(t, id)[4])
}

func TestATraceEventIsRecordedOnce(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id, other := b.open(t, runsA, "conv", "t1"), b.open(t, runsA, "conv", "t2")
	path := "/runs/" + id + "/trace-events"
	job := `,"job_id":"` + runsJob1 + `"`
	first := traceEvent("e1", job+`,"metadata":{"tool":"x","prompt":"one"}`)
	wantAck(t, b.post(t, path, runsA, traceBody(first)), id, 1, 0, 1, 1)
	wantAck(t, b.post(t, path, runsA, traceBody(first)), id, 0, 1, 1, 1)
	wantAck(t, b.post(t, path, runsA, traceBody(strings.Replace(first, `"prompt":"one"`, `"a":1,"b":2`, 1))), id, 0, 1, 2, 1)
	wantAck(t, b.post(t, path, runsA, traceBody(strings.Replace(first, `11:00:03.120+02:00`, `09:00:03.120Z`, 1))), id, 0, 1, 1, 1)
	wantAck(t, b.post(t, path, runsA, traceBody(first, traceEvent("e2", ""), traceEvent("e2", ""))), id, 1, 2, 1, 2)
	require.Len(t, b.outbox(t, id), 3, "nothing new is no message")

	for name, change := range map[string][2]string{
		"the name":        {`tool.called`, `tool.failed`},
		"the time":        {`03.120+`, `03.12+`},
		"the job":         {runsJob1, runsJob2},
		"no job":          {job, ``},
		"what is kept":    {`"tool":"x"`, `"tool":"y"`},
		"one field more":  {`"tool":"x"`, `"tool":"x","ok":true`},
		"one field fewer": {`"tool":"x",`, ``},
	} {
		body := strings.Replace(first, change[0], change[1], 1)
		require.NotEqual(t, first, body, name)
		refusedRuns(t, b.post(t, path, runsA, traceBody(traceEvent("new", ""), body)), http.StatusConflict, "trace_event_conflict")
	}
	refusedRuns(t, b.post(t, path, runsA, traceBody(traceEvent("e3", ""), traceEvent("e3", `,"metadata":{"ok":true}`))), http.StatusConflict, "trace_event_conflict")
	refusedRuns(t, b.post(t, "/runs/"+other+"/trace-events", runsA, traceBody(traceEvent("e4", ""), traceEvent("e5", job))), http.StatusConflict, "trace_event_conflict")
	require.Equal(t, []string{"e1", "e2"}, b.rows(t, `select event_id from bz_agent_run_trace_events order by position`), "all or nothing")
	wantAck(t, b.post(t, "/runs/"+other+"/trace-events", runsA, traceBody(traceEvent("e1", ""))), other, 1, 0, 0, 1)
	require.Equal(t, []string{runsJob1 + " " + id}, b.rows(t, `select job_id || ' ' || run_id from bz_agent_run_jobs`))
}

func TestConcurrentTracesAreOrderedAndAJobGoesToOneRun(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id := b.open(t, runsA, "conv", "t1")
	replies := b.parallel(t, 12, func(i int) (string, string, string) { // each batch twice
		return "/runs/" + id + "/trace-events", runsA, manyEvents(fmt.Sprintf("batch-%d", i/2), 3)
	})
	for _, r := range replies {
		wantRuns(t, r)
	}
	require.Equal(t, []string{"18 1 18"}, b.rows(t, `select concat_ws(' ', count(*), min(position), max(position)) from bz_agent_run_trace_events where run_id = $1`, id))
	require.Equal(t, []string{"3"}, b.rows(t, `select distinct count(*)::text from bz_agent_run_trace_events group by created_at, split_part(event_id, '-', 2)`))
	require.Len(t, b.outbox(t, id), 7)

	runs := []string{b.open(t, runsA, "conv", "t2"), b.open(t, runsB, "conv", "t2"), b.open(t, runsD, "conv", "t2")}
	tokens := []string{runsA, runsB, runsD}
	replies = b.parallel(t, 3, func(i int) (string, string, string) {
		jobs := []string{runsJob1, runsJob2}
		one, two := traceEvent("a", `,"job_id":"`+jobs[i%2]+`"`), traceEvent("b", `,"job_id":"`+jobs[1-i%2]+`"`)
		return "/runs/" + runs[i] + "/trace-events", tokens[i], traceBody(one, two)
	})
	won := 0
	for _, r := range replies {
		if r.status == http.StatusOK {
			won++
		} else {
			refusedRuns(t, r, http.StatusConflict, "trace_event_conflict")
		}
	}
	require.Equal(t, 1, won)
	require.Len(t, b.rows(t, `select distinct run_id::text from bz_agent_run_jobs`), 1)
}

func TestARunHasAtMostTwoThousandTraceEvents(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id := b.open(t, runsA, "conv", "t1")
	path := "/runs/" + id + "/trace-events"
	for i := range run.MaxTraceEvents/run.MaxBatchEvents - 1 {
		wantAck(t, b.post(t, path, runsA, manyEvents(fmt.Sprintf("b%d", i), run.MaxBatchEvents)), id, run.MaxBatchEvents, 0, 0, (i+1)*run.MaxBatchEvents)
	}
	wantAck(t, b.post(t, path, runsA, manyEvents("last", run.MaxBatchEvents-1)), id, run.MaxBatchEvents-1, 0, 0, run.MaxTraceEvents-1)
	refusedRuns(t, b.post(t, path, runsA, manyEvents("two", 2)), http.StatusRequestEntityTooLarge, "run_limit")
	wantAck(t, b.post(t, path, runsA, manyEvents("two", 1)), id, 1, 0, 0, run.MaxTraceEvents)
	refusedRuns(t, b.post(t, path, runsA, manyEvents("more", 1)), http.StatusRequestEntityTooLarge, "run_limit")
	wantAck(t, b.post(t, path, runsA, manyEvents("b0", run.MaxBatchEvents)), id, 0, run.MaxBatchEvents, 0, run.MaxTraceEvents)
}

func TestTraceEventsOfAnotherShapeRecordNothing(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id := b.open(t, runsA, "conv", "t1")
	metadata := func(fields string) string { return traceEvent("e", `,"metadata":`+fields) }
	for name, event := range map[string]string{
		"null": `null`, "empty": `{}`, "undeclared": traceEvent("e", `,"content":"x"`), "a null job": traceEvent("e", `,"job_id":null`),
		"no UUID":            traceEvent("e", `,"job_id":"job"`),
		"no identifier":      traceEvent("e 1", ""),
		"a secret id":        traceEvent(runsB, ""),
		"one part":           strings.Replace(traceEvent("e", ""), "tool.called", "tool", 1),
		"a second 60":        strings.Replace(traceEvent("e", ""), "03.120", "60", 1),
		"a time of no zone":  strings.Replace(traceEvent("e", ""), "+02:00", "", 1),
		"null metadata":      metadata(`null`),
		"a list of metadata": metadata(`[]`),
		"a text":             metadata(`{"tool":"search the orders"}`),
		"a secret":           metadata(`{"tool":"` + runsB + `"}`),
		"a secret in a path": metadata(`{"path":"/x/` + runsB + `"}`),
		"no path":            metadata(`{"path":"orders"}`),
		"a number too large": metadata(`{"args_bytes":9007199254740993}`),
		"a name twice":       metadata(`{"ok":true,"ok":true}`),
		"half a surrogate":   metadata(`{"dropped":"\udc00"}`),
	} {
		r := b.post(t, "/runs/"+id+"/trace-events", runsA, traceBody(traceEvent("good", ""), event))
		require.Equal(t, "invalid_request", r.text("error"), name)
		refusedRuns(t, r, http.StatusBadRequest, "invalid_request")
	}
	for _, body := range []string{``, `{}`, `{"events":[]}`, `{"events":{}}`, manyEvents("e", run.MaxBatchEvents+1)} {
		refusedRuns(t, b.post(t, "/runs/"+id+"/trace-events", runsA, body), http.StatusBadRequest, "invalid_request")
	}
	require.Empty(t, b.rows(t, `select event_id from bz_agent_run_trace_events`))
}
