package auditview_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/services/auditview/internal/historytest"
)

const threadsPath = "/admin/api/threads"

func threadPath(thread int64, query string) string {
	return fmt.Sprintf("%s/%d%s", threadsPath, thread, query)
}

func TestThreadsWithoutRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.get(t, metadata, threadsPath)
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, map[string]any{"schema": "verbatim.threads.v1", "items": []any{}, "has_more": false, "next_before": nil}, r.body)
	b.rows(t).run(1, 0) // a run without a thread is in none
	require.Empty(t, b.get(t, metadata, threadsPath).list("items"))
	b.get(t, metadata, threadPath(0, "")).fails(t, http.StatusNotFound, "thread_not_found")
	b.get(t, metadata, threadPath(1, "")).fails(t, http.StatusNotFound, "thread_not_found")
}

func TestThreadsAreListed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.run(1, 7)
	rows.run(2, 9007199254740991)
	rows.run(4, 7)
	rows.run(3, 7)
	// Another owner's run in the same thread: the first run's owner is shown.
	rows.exec(`update runs set session_id = $2, client_app_id = 'client-9', route_key = 'route-9', client_conversation_id = 'conv-9' where run_id = $1`,
		historytest.RunID(3), historytest.SessionID(9))

	r := b.get(t, metadata, threadsPath)
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))
	require.Equal(t, map[string]any{
		"schema": "verbatim.threads.v1", "has_more": false, "next_before": nil,
		"items": []any{
			map[string]any{
				"thread_id": 9007199254740991.0, "session_id": historytest.SessionID(0), "client_app_id": "client-0", "route_key": "route-0",
				"client_conversation_id": "conv-9007199254740991", "run_count": 1.0,
				"first_run_at": "2026-03-04T05:06:09.123Z", "last_run_at": "2026-03-04T05:06:09.123Z",
			},
			map[string]any{
				"thread_id": 7.0, "session_id": historytest.SessionID(0), "client_app_id": "client-0", "route_key": "route-0",
				"client_conversation_id": "conv-7", "run_count": 3.0,
				"first_run_at": "2026-03-04T05:06:08.123Z", "last_run_at": "2026-03-04T05:06:11.123Z",
			},
		},
	}, r.body)
	require.Contains(t, r.text, `"thread_id":9007199254740991,`)
}

func TestThreadsArePagedWhileNewOnesArrive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	const threads = 103
	for n := 1; n <= threads; n++ {
		rows.run(n, int64(n))
	}
	for query, want := range map[string]struct {
		first, count int
		next         any
	}{
		"":                         {103, 50, 54.0},
		"?limit=0":                 {103, 50, 54.0},
		"?limit=1000":              {103, 100, 4.0},
		"?limit=100&before=0":      {103, 100, 4.0},
		"?limit=3&before=4":        {3, 3, nil},
		"?limit=2&before=4":        {3, 2, 2.0},
		"?before=1":                {0, 0, nil},
		"?before=9007199254740991": {103, 50, 54.0},
	} {
		r := b.get(t, metadata, threadsPath+query)
		require.Equal(t, http.StatusOK, r.status, r.text)
		items := r.list("items")
		require.Len(t, items, want.count, query)
		if want.count > 0 {
			require.InDelta(t, want.first, items[0]["thread_id"], 0, query)
		}
		require.Contains(t, r.body, "next_before")
		require.Equal(t, want.next, r.body["next_before"], query)
		require.Equal(t, want.next != nil, r.body["has_more"], query)
	}

	next, before := threads, ""
	for more := true; more; {
		r := b.get(t, metadata, threadsPath+"?limit=10"+before)
		for _, item := range r.list("items") {
			require.InDelta(t, next, item["thread_id"], 0)
			require.InDelta(t, 1, item["run_count"], 0)
			next--
		}
		rows.run(1000+next, int64(1000+next)) // a new thread
		more, _ = r.body["has_more"].(bool)
		if more {
			before = fmt.Sprintf("&before=%.0f", r.body["next_before"])
		}
	}
	require.Zero(t, next)
}

func TestThreadShowsItsRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	linked, recorded := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 1)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Link(linked)
	b.publish(t, append(a.Messages, recorded)...)
	rows.run(2, linked.ThreadID)
	rows.complete(2, "failed", 1500*time.Millisecond)
	// A link to the second run that its archive and member do not bear out.
	rows.exec(`insert into run_links values ($1, $2, 99, $3, 'turn-2', $4)`,
		historytest.RunID(2), a.ConversationID(), historytest.SessionID(0), linked.ThreadID)
	rows.run(3, linked.ThreadID+1)

	r := b.get(t, metadata, threadPath(linked.ThreadID, ""))
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, map[string]any{
		"schema": "verbatim.thread.v1", "has_more": false, "next_offset": nil,
		"thread": map[string]any{
			"thread_id": 101.0, "session_id": historytest.SessionID(0), "client_app_id": "client-0", "route_key": "route-0",
			"client_conversation_id": "conv-1", "run_count": 2.0,
			"first_run_at": "2026-03-04T05:06:07.123Z", "last_run_at": "2026-03-04T05:06:09.123Z",
		},
		"runs": []any{
			map[string]any{
				"run_id": linked.RunID, "client_turn_id": "turn-1", "status": "running", "model": nil, "runtime": nil,
				"created_at": "2026-03-04T05:06:07.123Z", "completed_at": nil, "conversation_audit_id": a.ConversationID(),
			},
			map[string]any{
				"run_id": historytest.RunID(2), "client_turn_id": "turn-2", "status": "failed", "model": "gpt-x", "runtime": "codex/1.2",
				"created_at": "2026-03-04T05:06:09.123Z", "completed_at": "2026-03-04T05:06:10.623Z",
			},
		},
	}, r.body)
	for _, id := range []string{"x", "-1", "1.0", "9007199254740992", "99999999999999999999", "103", "%00"} {
		b.get(t, metadata, threadsPath+"/"+id).fails(t, http.StatusNotFound, "thread_not_found")
	}
}

func TestRunsOfAThreadArePagedWhileNewOnesArrive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	const runs = 103
	for n := 1; n <= runs; n++ {
		rows.run(n, 5)
	}
	rows.run(runs+1, 4)
	rows.run(runs+2, 6)
	for query, want := range map[string]struct {
		count int
		next  any
	}{
		"":                         {50, 50.0},
		"?limit=0":                 {50, 50.0},
		"?limit=1000":              {100, 100.0},
		"?limit=3&offset=100":      {3, nil},
		"?limit=3&offset=99":       {3, 102.0},
		"?offset=9007199254740991": {0, nil},
	} {
		r := b.get(t, metadata, threadPath(5, query))
		require.Equal(t, http.StatusOK, r.status, r.text)
		require.Len(t, r.list("runs"), want.count, query)
		require.Contains(t, r.body, "next_offset")
		require.Equal(t, want.next, r.body["next_offset"], query)
		require.Equal(t, want.next != nil, r.body["has_more"], query)
	}
	seen, offset := 0, "0"
	for more := true; more; {
		r := b.get(t, metadata, threadPath(5, "?limit=40&offset="+offset))
		for _, run := range r.list("runs") {
			seen++
			require.Equal(t, fmt.Sprintf("turn-%d", seen), run["client_turn_id"])
		}
		if more, _ = r.body["has_more"].(bool); more {
			offset = fmt.Sprintf("%.0f", r.body["next_offset"])
			if seen == 40 { // once, and the walk finds it at its end
				rows.exec(`update runs set thread_id = 5, client_turn_id = 'turn-104' where run_id = $1`, historytest.RunID(runs+1))
			}
		}
	}
	require.Equal(t, runs+1, seen)
}

// What administrators may ask of runs and of the registry, with a permission for metadata.
func TestRunsAndRegistryAreGuarded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.run(1, 7)
	rows.events(1, event{name: "tool.called", at: "2026-03-04T05:06:08Z", job: jobID(1)})
	for _, path := range []string{
		threadsPath, threadPath(7, ""), tracePath(7, historytest.RunID(1)), jobPath(jobID(1)), changesPath,
	} {
		require.Equal(t, http.StatusOK, b.get(t, metadata, path).status, path)
		require.Equal(t, http.StatusOK, b.get(t, viewer, path).status, path)
		b.get(t, nothing, path).fails(t, http.StatusForbidden, "forbidden")
		for _, bearer := range []string{"", agent, viewer + "V"} {
			r := b.get(t, bearer, path)
			r.fails(t, http.StatusUnauthorized, "unauthorized")
			require.Equal(t, "Bearer", r.header.Get("WWW-Authenticate"))
		}
		b.do(t, http.MethodPost, viewer, path).fails(t, http.StatusNotFound, "not_found")
	}
	for path, names := range map[string][]string{
		threadsPath: {"limit", "before"}, threadPath(7, ""): {"limit", "offset"}, changesPath: {"limit", "before"},
	} {
		for _, value := range []string{"", "-1", "x", "1.0", "9007199254740992", "%00", "%zz", "1&NAME=1"} {
			for _, name := range names {
				b.get(t, metadata, path+"?"+name+"="+strings.ReplaceAll(value, "NAME", name)).fails(t, http.StatusBadRequest, "invalid_request")
				b.get(t, nothing, path+"?"+name+"=x").fails(t, http.StatusForbidden, "forbidden")
			}
		}
		require.Equal(t, http.StatusOK, b.get(t, metadata, path+"?limit=1&limits=x").status)
	}
}
