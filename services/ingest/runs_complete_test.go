package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wholeCompletion is a completion with every field.
const wholeCompletion = `{"assistant_message_id":"a-1","status":"completed","content":"Three orders are late.","model":"vendor/model-4.5","runtime":"agent:1.2",
	"usage":{"input_tokens":1200,"cached_input_tokens":0,"output_tokens":3e2,"total_tokens":1500,"tool_calls":2,"cost_usd":0.0120}}`

func completionBody(message string) string {
	return `{"assistant_message_id":"` + message + `","status":"failed","content":""}`
}

func TestARunIsCompletedOnce(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id := b.open(t, runsA, "conv", "t1")
	path := "/runs/" + id + "/complete"
	first := wantRuns(t, b.post(t, "/runs/"+strings.ToUpper(id)+"/complete", runsA, wholeCompletion))
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, first.text("completed_at"))
	require.Equal(t, `{"schema":"bailing.agent-run-completion.v1","run_id":"`+id+`","assistant_message_id":"a-1","status":"completed",`+
		`"completed_at":"`+first.text("completed_at")+`","idempotent_replay":false}`, first.raw)
	replay := strings.Replace(first.raw, `"idempotent_replay":false`, `"idempotent_replay":true`, 1)
	for name, body := range map[string]string{
		"unchanged": wholeCompletion,
		"reordered": `{"usage":{"cost_usd":12e-3,"tool_calls":2.0,"total_tokens":1500,"output_tokens":300,"cached_input_tokens":-0,"input_tokens":1200},
			"runtime":"agent:1.2","model":"vendor/model-4.5","content":"Three orders \u0061re late.","status":"completed","assistant_message_id":"a-1"}`,
	} {
		require.Equal(t, replay, wantRuns(t, b.post(t, path, runsA, body)).raw, name)
	}
	for name, change := range map[string][2]string{
		"the message":  {`"a-1"`, `"a-2"`},
		"the status":   {`"completed"`, `"failed"`},
		"the content":  {`late.`, `late!`},
		"the model":    {`model-4.5`, `model-4.6`},
		"no runtime":   {`,"runtime":"agent:1.2"`, ``},
		"the usage":    {`"tool_calls":2`, `"tool_calls":3`},
		"no tokens":    {`"input_tokens":1200,`, ``},
		"another cost": {`0.0120`, `0.0121`},
	} {
		body := strings.Replace(wholeCompletion, change[0], change[1], 1)
		require.NotEqual(t, wholeCompletion, body, name)
		refusedRuns(t, b.post(t, path, runsA, body), http.StatusConflict, "run_completion_conflict")
	}
	require.Equal(t, []string{"verbatim.run.recorded.v1 1 {}", "verbatim.run.completed.v1 2 {}"}, b.outbox(t, id))
	require.Equal(t, []string{"2"}, b.rows(t, `select stream_version::text from bz_agent_client_runs where run_id = $1`, id))
	require.Equal(t, []string{`1 a-1 completed vendor/model-4.5 agent:1.2 {"cached_input_tokens":0,"cost_usd":0.012,"input_tokens":1200,"output_tokens":300,"tool_calls":2,"total_tokens":1500}`},
		b.rows(t, `select concat_ws(' ', thread_id, assistant_message_id, status, model, runtime, usage) from bz_agent_run_completions where run_id = $1`, id))
}

func TestAMessageBelongsToOneRunOfItsThread(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	first, second := b.open(t, runsA, "conv", "t1"), b.open(t, runsA, "conv", "t2")
	wantRuns(t, b.post(t, "/runs/"+first+"/complete", runsA, completionBody("a-1")))
	refusedRuns(t, b.post(t, "/runs/"+second+"/complete", runsA, completionBody("a-1")), http.StatusConflict, "assistant_message_conflict")
	require.Len(t, b.outbox(t, second), 1)
	wantRuns(t, b.post(t, "/runs/"+second+"/complete", runsA, completionBody("a-2")))
	refusedRuns(t, b.post(t, "/runs/"+second+"/complete", runsA, completionBody("a-1")), http.StatusConflict, "run_completion_conflict")
	other := b.open(t, runsA, "another", "t1")
	wantRuns(t, b.post(t, "/runs/"+other+"/complete", runsA, completionBody("a-1")))

	// Of two runs that want one message at once, one gets it.
	var runs []string
	for i := range 6 {
		runs = append(runs, b.open(t, runsA, "contested", fmt.Sprintf("t%d", i)))
	}
	replies := b.parallel(t, len(runs), func(i int) (string, string, string) {
		return "/runs/" + runs[i] + "/complete", runsA, completionBody("wanted")
	})
	won := 0
	for _, r := range replies {
		if r.status == http.StatusOK {
			won++
		} else {
			refusedRuns(t, r, http.StatusConflict, "assistant_message_conflict")
		}
	}
	require.Equal(t, 1, won)
}

func TestConcurrentIdenticalCompletionsAreOne(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id := b.open(t, runsA, "conv", "t1")
	replies := b.parallel(t, 12, func(int) (string, string, string) { return "/runs/" + id + "/complete", runsA, wholeCompletion })
	firsts := 0
	for _, r := range replies {
		require.Equal(t, wantRuns(t, replies[0]).text("completed_at"), wantRuns(t, r).text("completed_at"))
		if r.body["idempotent_replay"] == false {
			firsts++
		}
	}
	require.LessOrEqual(t, firsts, 1, "its answer may have been lost")
	require.Len(t, b.outbox(t, id), 2)
}

func TestOnlyTheSessionOfARunEndsIt(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id := b.open(t, runsA, "conv", "t1")
	const traced = `{"events":[{"event_id":"e","event":"tool.called","occurred_at":"2026-06-08T09:00:03Z"}]}`
	for call, body := range map[string]string{"complete": completionBody("a"), "trace-events": traced} {
		for _, token := range []string{runsB, runsC, runsD} {
			refusedRuns(t, b.post(t, "/runs/"+id+"/"+call, token, body), http.StatusNotFound, "run_not_found")
		}
		for _, unknown := range []string{run1, "none", "%00", id[1:], strings.Replace(id, "-4", "-9", 1)} {
			refusedRuns(t, b.post(t, "/runs/"+unknown+"/"+call, runsA, body), http.StatusNotFound, "run_not_found")
		}
		refusedRuns(t, b.post(t, "/runs/none/"+call, runsA, `{}`), http.StatusBadRequest, "invalid_request")
	}
	// What was begun may be ended, though its route is closed by now.
	b.exec(t, `update bz_routes set enabled = false where route_key = 'orders'`)
	wantRuns(t, b.post(t, "/runs/"+id+"/trace-events", runsA, traced))
	wantRuns(t, b.post(t, "/runs/"+id+"/complete", runsA, completionBody("a")))
	// A session that has moved to another client has no run of the first.
	b.exec(t, `update bz_agent_sessions set client_app_id = 'crm' where session_id = $1`, runsSessionA)
	refusedRuns(t, b.post(t, "/runs/"+id+"/complete", runsA, completionBody("a")), http.StatusNotFound, "run_not_found")
}

func TestARevokedSessionEndsNothing(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	const traced = `{"events":[{"event_id":"e","event":"tool.called","occurred_at":"2026-06-08T09:00:03Z"}]}`
	first, second := b.open(t, runsA, "conv", "t1"), b.open(t, runsB, "conv", "t1")
	r := b.whileRevoking(t, runsSessionA, "/runs/"+first+"/complete", runsA, completionBody("a"))
	refusedRuns(t, r, http.StatusUnauthorized, "unauthorized")
	refusedRuns(t, b.post(t, "/runs/"+first+"/complete", runsA, completionBody("a")), http.StatusUnauthorized, "unauthorized")
	r = b.whileRevoking(t, runsSessionB, "/runs/"+second+"/trace-events", runsB, traced)
	refusedRuns(t, r, http.StatusUnauthorized, "unauthorized")
	refusedRuns(t, b.post(t, "/runs/"+second+"/trace-events", runsB, traced), http.StatusUnauthorized, "unauthorized")
	require.Empty(t, b.rows(t, `select run_id::text from bz_agent_run_completions union all select run_id::text from bz_agent_run_trace_events`))
}

func TestCompletionsOfAnotherShapeEndNothing(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id := b.open(t, runsA, "conv", "t1")
	completion := func(more string) string {
		return `{"assistant_message_id":"a","status":"completed","content":"x"` + more + `}`
	}
	for name, body := range map[string]string{
		"nothing": ``, "empty": `{}`, "undeclared": completion(`,"thread_id":1`), "null": completion(`,"model":null`),
		"no content":          `{"assistant_message_id":"a","status":"failed"}`,
		"an empty content":    strings.Replace(completion(``), `"x"`, `""`, 1),
		"a control":           strings.Replace(completion(``), `"x"`, `"\u0000"`, 1),
		"no identifier":       strings.Replace(completion(``), `"a"`, `"a/b"`, 1),
		"another status":      strings.Replace(completion(``), `"completed"`, `"running"`, 1),
		"a text as a model":   completion(`,"model":"the best of all"`),
		"a secret as a model": completion(`,"model":"` + runsB + `"`),
		"a secret runtime":    completion(`,"runtime":"x:` + runsB + `"`),
		"half a token":        completion(`,"usage":{"total_tokens":1.5}`),
		"less than nothing":   completion(`,"usage":{"total_tokens":-1}`),
		"too many tokens":     completion(`,"usage":{"total_tokens":9007199254740992}`),
		"a negative cost":     completion(`,"usage":{"cost_usd":-1}`),
		"a text as a cost":    completion(`,"usage":{"cost_usd":"1"}`),
		"other usage":         completion(`,"usage":{"tokens":1}`),
	} {
		r := b.post(t, "/runs/"+id+"/complete", runsA, body)
		require.Equal(t, "invalid_request", r.text("error"), name)
		refusedRuns(t, r, http.StatusBadRequest, "invalid_request")
	}
	wantRuns(t, b.post(t, "/runs/"+id+"/complete", runsA, completion(`,"usage":{}`)))
}

func TestAnImportedRunMayBeCompletedAndTraced(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	b.apply(t, importedRuns("conv", 77))
	const id = "223e4567-e89b-42d3-a456-000000000001"
	wantRuns(t, b.post(t, "/runs/"+id+"/trace-events", runsA, `{"events":[{"event_id":"e","event":"tool.called","occurred_at":"2026-06-08T09:00:03Z"}]}`))
	wantRuns(t, b.post(t, "/runs/"+id+"/complete", runsA, completionBody("a")))
	require.Equal(t, []string{
		"verbatim.run.recorded.v1 1 {}", `verbatim.run.trace_recorded.v1 2 {"first_position":1,"last_position":1}`, "verbatim.run.completed.v1 3 {}",
	}, b.outbox(t, id))
	// A turn of its conversation is of its thread, and so is its message.
	next := wantRuns(t, b.post(t, runsTurns, runsA, turnBody("conv", "t2")))
	require.Equal(t, 77, next.thread())
	refusedRuns(t, b.post(t, "/runs/"+next.text("run_id")+"/complete", runsA, completionBody("a")), http.StatusConflict, "assistant_message_conflict")
}
