package ingest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/run"
)

const runsTurns = "/workspaces/orders/turns"

// wholeTurn is a turn with every field.
const wholeTurn = `{"client_conversation_id":"conv:1","client_turn_id":"t.1","user_message_id":"m-1",
	"user_input":"Which orders\n are <late>? \u00e9","page_context":{"page":"orders","filter":{"late":true,"by":null},"id":12345678901234567890},
	"renderers":["table.v1","text"]}`

func TestATurnOpensARunAndIsAnsweredWithItself(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	first := wantRuns(t, b.post(t, runsTurns, runsA, wholeTurn))
	instructions, err := json.Marshal(runsInstructions)
	require.NoError(t, err)
	id := first.text("run_id")
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, first.text("created_at"))
	require.Equal(t, `{"schema":"bailing.agent-turn-context.v1","run_id":"`+id+`","thread_id":1,"route_key":"orders",`+
		`"client_conversation_id":"conv:1","client_turn_id":"t.1","user_message_id":"m-1","user_input":"Which orders\n are <late>? é",`+
		`"page_context":{"filter":{"by":null,"late":true},"id":12345678901234567890,"page":"orders"},"renderers":["table.v1","text"],`+
		`"instructions":`+string(instructions)+`,"knowledge":[],"memory":[],"tools":[],"created_at":"`+first.text("created_at")+`"}`, first.raw)
	require.Equal(t, []string{"verbatim.run.recorded.v1 1 {}"}, b.outbox(t, id))
	require.Equal(t, []string{runsSessionA + " shop orders 1 conv:1 t.1 1"}, b.rows(t,
		`select concat_ws(' ', session_id, client_app_id, route_key, thread_id, client_conversation_id, client_turn_id, stream_version)
		from bz_agent_client_runs where run_id = $1`, id))

	bare := wantRuns(t, b.post(t, "/workspaces/returns/turns", runsC, turnBody("c", "t")))
	require.NotContains(t, bare.raw, "page_context")
	require.NotContains(t, bare.raw, "renderers")
	require.Contains(t, bare.raw, `"instructions":"","knowledge":[]`)
}

func TestARepeatedTurnIsAnsweredWithTheSameBytes(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	first := wantRuns(t, b.post(t, runsTurns, runsA, wholeTurn))
	b.exec(t, `update bz_routes set instructions = 'Something else.', name = 'Another' where route_key = 'orders'`)
	for name, body := range map[string]string{
		"unchanged": wholeTurn,
		"reordered": `{"renderers":["table.v1","text"],"page_context":{ "id" : 12345678901234567890, "filter":{"by":null,"late":true},
			"p\u0061ge":"orders"},"user_input":"Which orders\n are <late>? é","user_message_id":"m-1","client_turn_id":"t.1","client_conversation_id":"conv:1"}`,
	} {
		again := wantRuns(t, b.post(t, runsTurns, runsA, body))
		require.Equal(t, first.raw, again.raw, name)
	}
	b.exec(t, `update bz_routes set instructions = null where route_key = 'orders'`)
	require.Equal(t, first.raw, wantRuns(t, b.post(t, runsTurns, runsA, wholeTurn)).raw)
	fresh := wantRuns(t, b.post(t, runsTurns, runsA, turnBody("conv:1", "t.2")))
	require.Empty(t, fresh.text("instructions"), "a new turn has what the route says now")
	require.Equal(t, first.thread(), fresh.thread())
	require.Len(t, b.outbox(t, first.text("run_id")), 1)

	// It is checked again like the first.
	b.exec(t, `update bz_routes set agent_access = false where route_key = 'orders'`)
	refusedRuns(t, b.post(t, runsTurns, runsA, wholeTurn), http.StatusForbidden, "route_not_allowed")
	b.exec(t, `update bz_routes set agent_access = true where route_key = 'orders'`)
	require.Equal(t, first.raw, wantRuns(t, b.post(t, runsTurns, runsA, wholeTurn)).raw)
}

func TestAChangedTurnIsAConflict(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	first := wantRuns(t, b.post(t, runsTurns, runsA, wholeTurn))
	for name, change := range map[string][2]string{
		"the message":     {`"m-1"`, `"m-2"`},
		"the input":       {`<late>?`, `<late>!`},
		"the context":     {`"late":true`, `"late":false`},
		"its long number": {`67890}`, `67891}`},
		"a null":          {`"by":null`, `"by":""`},
		"no context":      {`"page_context":{"page":"orders","filter":{"late":true,"by":null},"id":12345678901234567890},`, ``},
		"the renderers":   {`["table.v1","text"]`, `["text","table.v1"]`},
		"no renderers":    {`,` + "\n\t" + `"renderers":["table.v1","text"]`, ``},
	} {
		body := strings.Replace(wholeTurn, change[0], change[1], 1)
		require.NotEqual(t, wholeTurn, body, name)
		refusedRuns(t, b.post(t, runsTurns, runsA, body), http.StatusConflict, "turn_conflict")
	}
	require.Equal(t, first.raw, wantRuns(t, b.post(t, runsTurns, runsA, wholeTurn)).raw)
	// The key is the session's, the route's, the conversation's and the turn's.
	for _, other := range []runsReply{
		wantRuns(t, b.post(t, runsTurns, runsB, wholeTurn)),
		wantRuns(t, b.post(t, "/workspaces/returns/turns", runsB, wholeTurn)),
		wantRuns(t, b.post(t, runsTurns, runsA, strings.Replace(wholeTurn, "conv:1", "conv:2", 1))),
		wantRuns(t, b.post(t, runsTurns, runsA, strings.Replace(wholeTurn, "t.1", "t.2", 1))),
	} {
		require.NotEqual(t, first.text("run_id"), other.text("run_id"))
	}
}

func TestTurnsOfAnotherShapeOpenNothing(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	turn := func(more string) string {
		return `{"client_conversation_id":"c","client_turn_id":"t","user_message_id":"m","user_input":"x"` + more + `}`
	}
	for name, body := range map[string]string{
		"nothing": ``, "a list": `[]`, "null": `null`, "empty": `{}`, "trailing": turn("") + `{}`,
		"undeclared": turn(`,"route":"orders"`), "repeated": turn(`,"user_input":"x"`),
		"no input":          `{"client_conversation_id":"c","client_turn_id":"t","user_message_id":"m"}`,
		"a blank input":     strings.Replace(turn(""), `"x"`, `" \n"`, 1),
		"a null input":      strings.Replace(turn(`,"page_context":{}`), `"x"`, `null`, 1),
		"a control":         strings.Replace(turn(""), `"x"`, `"\u0007"`, 1),
		"half a surrogate":  strings.Replace(turn(""), `"x"`, `"\ud800"`, 1),
		"not UTF-8":         strings.Replace(turn(""), `"x"`, "\"\xff\"", 1),
		"no identifier":     strings.Replace(turn(""), `"c"`, `"c d"`, 1),
		"a number":          strings.Replace(turn(""), `"t"`, `1`, 1),
		"a null context":    turn(`,"page_context":null`),
		"a list of context": turn(`,"page_context":[]`),
		"a text of context": turn(`,"page_context":"x"`),
		"null renderers":    turn(`,"renderers":null`),
		"a null renderer":   turn(`,"renderers":[null]`),
		"a renderer twice":  turn(`,"renderers":["a","a"]`),
		"a bad renderer":    turn(`,"renderers":["A"]`),
		"33 renderers":      turn(`,"renderers":["` + strings.Join(numbered(33), `","`) + `"]`),
	} {
		r := b.post(t, runsTurns, runsA, body)
		require.Equal(t, "invalid_request", r.text("error"), name)
		refusedRuns(t, r, http.StatusBadRequest, "invalid_request")
	}
	require.Empty(t, b.rows(t, `select thread_id::text from bz_agent_threads`))
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("r%d", i)
	}
	return out
}

func TestBodiesAboutRunsAreBounded(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	id := b.open(t, runsA, "conv", "t1")
	context := func(n int) string {
		return `{"client_conversation_id":"c","client_turn_id":"t","user_message_id":"m","user_input":"x",
			"page_context":{"a":  "` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}}`
	}
	refusedRuns(t, b.post(t, runsTurns, runsA, context(run.MaxPageContextBytes+1)), http.StatusRequestEntityTooLarge, "run_limit")
	wantRuns(t, b.post(t, runsTurns, runsA, context(run.MaxPageContextBytes)))

	fill := func(body string, n int) string { return strings.Repeat(" ", n-len(body)) + body }
	for path, body := range map[string]string{
		runsTurns:                       turnBody("conv", "t2"),
		"/runs/" + id + "/complete":     `{"assistant_message_id":"a","status":"completed","content":"x"}`,
		"/runs/" + id + "/trace-events": `{"events":[{"event_id":"e","event":"tool.called","occurred_at":"2026-06-08T09:00:03Z"}]}`,
	} {
		refusedRuns(t, b.post(t, path, runsA, fill(body, httpapi.MaxRunBytes+1)), http.StatusRequestEntityTooLarge, "run_limit")
		// Also when nobody says how long it is.
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.service.URL()+"/agent-api/v1"+path,
			io.MultiReader(bytes.NewReader(make([]byte, httpapi.MaxRunBytes)), strings.NewReader(body)))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+runsA)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
		require.NoError(t, resp.Body.Close())

		refusedRuns(t, b.call(t, http.MethodPost, path, runsA, body, "Content-Encoding", "gzip"), http.StatusUnsupportedMediaType, "unsupported_media_type")
		wantRuns(t, b.post(t, path, runsA, fill(body, httpapi.MaxRunBytes)))
	}
}

func TestConcurrentIdenticalTurnsOpenOneRun(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	replies := b.parallel(t, 16, func(int) (string, string, string) { return runsTurns, runsA, wholeTurn })
	for _, r := range replies {
		require.Equal(t, wantRuns(t, replies[0]).raw, wantRuns(t, r).raw)
	}
	require.Equal(t, []string{replies[0].text("run_id")}, b.rows(t, `select run_id::text from bz_agent_client_runs`))
	require.Len(t, b.outbox(t, replies[0].text("run_id")), 1)

	// Of different inputs one wins, and all answers are about it.
	replies = b.parallel(t, 8, func(i int) (string, string, string) {
		return runsTurns, runsA, strings.Replace(turnBody("conv", "contested"), "late", fmt.Sprintf("late (%d)", i%2), 1)
	})
	ids := map[string]int{}
	for _, r := range replies {
		if r.status == http.StatusOK {
			ids[r.text("run_id")]++
		} else {
			refusedRuns(t, r, http.StatusConflict, "turn_conflict")
		}
	}
	require.Len(t, ids, 1)
}

func TestARevokedSessionOpensNothing(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	b.open(t, runsA, "conv", "t1")
	r := b.whileRevoking(t, runsSessionA, runsTurns, runsA, turnBody("conv", "t2"))
	refusedRuns(t, r, http.StatusUnauthorized, "unauthorized")
	refusedRuns(t, b.post(t, runsTurns, runsA, turnBody("conv", "t1")), http.StatusUnauthorized, "unauthorized")
	refusedRuns(t, b.get(t, "/workspaces", runsA), http.StatusUnauthorized, "unauthorized")
	require.Equal(t, []string{"t1"}, b.rows(t, `select client_turn_id from bz_agent_client_runs`))
	b.open(t, runsB, "conv", "t1") // another session of the client goes on
}

// What was checked stays as it is until the commit.
func TestARevocationWaitsForATurn(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	// The turn is held where it has its authorization's locks and waits for its conversation's.
	const held = `bz_lock_key('thread', '` + runsSessionA + `/orders/conv')`
	_, err := b.admin.Exec(t.Context(), `select pg_advisory_lock(`+held+`)`)
	require.NoError(t, err)
	replies, errs := make(chan runsReply, 1), make(chan error, 2)
	go func() {
		r, err := b.send(t.Context(), http.MethodPost, runsTurns, runsA, turnBody("conv", "t1"))
		replies <- r
		errs <- err
	}()
	b.awaitLocks(t, 1)
	go func() {
		_, err := b.owner.Exec(t.Context(), `update bz_agent_sessions set revoked_at = now() where session_id = $1`, runsSessionA)
		errs <- err
	}()
	b.awaitLocks(t, 2)
	_, err = b.admin.Exec(t.Context(), `select pg_advisory_unlock(`+held+`)`)
	require.NoError(t, err)
	wantRuns(t, <-replies)
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	refusedRuns(t, b.post(t, runsTurns, runsA, turnBody("conv", "t1")), http.StatusUnauthorized, "unauthorized")
}
