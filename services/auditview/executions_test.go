package auditview_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/auditview/internal/historytest"
	auditviewsql "verbatim.internal/sql/auditview"
)

// parts are what is served of one execution.
var parts = []string{"audit", "replay", "events", "logs", "lineage", "approvals", "grants", "diagnostics"}

func swarms(r response, list string) []string {
	var swarms []string
	for _, item := range r.list(list) {
		swarm, _ := item["swarm_id"].(string)
		swarms = append(swarms, swarm)
	}
	return swarms
}

func TestExecutionsAreFoundByAnyOfTheirIDs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	p := func(s string) *string { return &s }
	run := historytest.RunID(7)
	rows.execution(execution{n: 1, swarm: "swarm/1+%2F", lineage: trace.Lineage{
		ManagerDeploymentID: p("mgr-1"), DeploymentID: p("dep/1"), CorrelationID: p("corr-1"),
	}, run: &run})
	rows.execution(execution{n: 2, swarm: "swarm-2", lineage: trace.Lineage{ManagerDeploymentID: p("mgr-1"), CorrelationID: p("corr-2")}})
	rows.execution(execution{n: 3, swarm: "swarm-3", lineage: trace.Lineage{ManagerDeploymentID: p("swarm-2"), DeploymentID: p("swarm-2")}})
	rows.execution(execution{n: 4, swarm: "swarm-2", client: "client-1"})
	rows.execution(execution{n: 5, swarm: "swarm-5", lineage: trace.Lineage{
		ManagerDeploymentID: p("one"), DeploymentID: p("one"), CorrelationID: p("one"),
	}})

	for _, part := range parts {
		for id, swarm := range map[string]string{
			"swarm/1+%2F": "swarm/1+%2F", "dep/1": "swarm/1+%2F", "corr-1": "swarm/1+%2F", run: "swarm/1+%2F", strings.ToUpper(run): "swarm/1+%2F",
			"corr-2": "swarm-2", "swarm-3": "swarm-3", "one": "swarm-5",
		} {
			r := b.ask(t, runPath(id, part))
			require.Equal(t, http.StatusOK, r.status, "%s: %s", id, r.text)
			require.Equal(t, "no-store", r.header.Get("Cache-Control"))
			lineage, _ := r.body["lineage"].(map[string]any)
			if part == "lineage" {
				lineage, _ = object(r, "run")["lineage"].(map[string]any)
			}
			if r.body != nil {
				require.Equal(t, swarm, lineage["swarm_id"], id)
			}
		}
		for id, want := range map[string][]string{"mgr-1": {"swarm-2", "swarm/1+%2F"}, "swarm-2": {"swarm-2", "swarm-2"}} {
			r := b.ask(t, runPath(id, part))
			require.Equal(t, http.StatusMultipleChoices, r.status, r.text)
			require.Equal(t, "verbatim.run-candidates.v1", r.body["schema"])
			require.Equal(t, want, swarms(r, "candidates"))
		}
		r := b.ask(t, runPath("swarm-2", part)+"?client_app_id=client-1")
		require.Equal(t, http.StatusOK, r.status, r.text)
		r = b.ask(t, runPath("swarm-2", part)+"?client_app_id=client-0")
		require.Equal(t, http.StatusOK, r.status, "an exact swarm id wins: %s", r.text)
		for path, code := range map[string]int{
			runPath("swarm-2", part) + "?client_app_id=client-2":          http.StatusNotFound,
			runPath("corr-1", part) + "?client_app_id=client-1":           http.StatusNotFound,
			runPath("nobody", part):                                       http.StatusNotFound,
			runPath(historytest.RunID(8), part):                           http.StatusNotFound,
			runPath(executionID(1), part):                                 http.StatusNotFound,
			runPath("\x00", part):                                         http.StatusNotFound,
			runPath("\xff", part):                                         http.StatusNotFound,
			runPath(strings.Repeat("x", 500), part):                       http.StatusNotFound,
			runPath("swarm-2", part) + "?client_app_id=":                  http.StatusBadRequest,
			runPath("swarm-2", part) + "?client_app_id=%00":               http.StatusBadRequest,
			runPath("swarm-2", part) + "?client_app_id=a&client_app_id=a": http.StatusBadRequest,
			runPath("swarm-2", part) + "?x=%zz":                           http.StatusBadRequest,
		} {
			b.ask(t, path).fails(t, code, map[int]string{http.StatusNotFound: "run_not_found", http.StatusBadRequest: "invalid_request"}[code])
		}
	}
	candidate := b.ask(t, runPath("mgr-1", "audit")).list("candidates")[1]
	require.Equal(t, map[string]any{
		"client_app_id": "client-0", "swarm_id": "swarm/1+%2F", "run_id": run,
		"lineage":    map[string]any{"manager_deployment_id": "mgr-1", "deployment_id": "dep/1", "swarm_id": "swarm/1+%2F", "correlation_id": "corr-1"},
		"created_at": "2026-03-04T05:06:07.123Z", "latest_at": "2026-03-04T05:06:08.123Z",
	}, candidate)

	for n := 100; n < 205; n++ {
		rows.execution(execution{n: n, swarm: fmt.Sprintf("of-many-%d", n), lineage: trace.Lineage{DeploymentID: p("many")}})
	}
	many := swarms(b.ask(t, runPath("many", "audit"), "Accept", oneALine), "candidates")
	require.Len(t, many, 100)
	require.Equal(t, "of-many-204", many[0])
}

// Escapes in other paths mean what they always meant.
func TestOtherPathsAreNotMatchedAsTheyCame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.run(1, 7)
	rows.execution(execution{n: 1, swarm: "a/audit"})
	require.Equal(t, http.StatusOK, b.get(t, metadata, threadsPath+"/%37").status)
	require.Equal(t, http.StatusOK, b.get(t, metadata, runsPath+"/%61%2faudit/audit").status)
	for _, path := range []string{runsPath + "/", runsPath + "/a%2Faudit", runsPath + "/a/audit/audit", runsPath + "/a%2Faudit/audit/"} {
		b.get(t, metadata, path).fails(t, http.StatusNotFound, "not_found")
		b.get(t, "", path).fails(t, http.StatusUnauthorized, "unauthorized")
	}
	b.get(t, metadata, runsPath+"//audit").fails(t, http.StatusNotFound, "run_not_found")
}

func TestExecutionsAreGuarded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.execution(execution{n: 1, swarm: "swarm-1"})
	paths := map[string][]string{runsPath: {"limit"}, usagePath + "?by=user": {"limit"}}
	for _, part := range parts {
		paths[runPath("swarm-1", part)] = []string{"limit", "cursor"}
	}
	paths[runPath("swarm-1", "lineage")], paths[runPath("swarm-1", "approvals")], paths[runPath("swarm-1", "grants")] = nil, []string{"limit"}, []string{"limit"}
	for path, names := range paths {
		require.Equal(t, http.StatusOK, b.get(t, metadata, path).status, path)
		require.Equal(t, http.StatusOK, b.get(t, viewer, path).status, path)
		b.get(t, nothing, path).fails(t, http.StatusForbidden, "forbidden")
		for _, bearer := range []string{"", agent, viewer + "V"} {
			r := b.get(t, bearer, path)
			r.fails(t, http.StatusUnauthorized, "unauthorized")
			require.Equal(t, "Bearer", r.header.Get("WWW-Authenticate"))
		}
		b.do(t, http.MethodPost, viewer, path).fails(t, http.StatusNotFound, "not_found")
		for _, value := range []string{"", "-1", "x", "1.0", "9007199254740992", "%00", "%zz", "1&NAME=1"} {
			for _, name := range names {
				separator := "?"
				if strings.Contains(path, "?") {
					separator = "&"
				}
				query := path + separator + name + "=" + strings.ReplaceAll(value, "NAME", name)
				b.get(t, metadata, query).fails(t, http.StatusBadRequest, "invalid_request")
				b.get(t, nothing, query).fails(t, http.StatusForbidden, "forbidden")
			}
		}
	}
	require.NotContains(t, b.logs.String(), "swarm-1")
}

// What the fourth migration brings is not there before it; everything else is.
func TestDatabaseWithoutExecutions(t *testing.T) {
	t.Parallel()
	b := &bundle{db: pgtest.New(t, database.Auditview, auditviewsql.FS, 3), local: transport.NewLocal(nil), logs: &logs{}}
	_, err := auditview.ApplyAdmins(t.Context(), config.Secret(b.db.ServiceDSN), []byte(admins))
	require.NoError(t, err)
	b.start(t, environment(b.db), auditview.WithSubscriber(b.local))
	rows := b.rows(t)
	rows.run(1, 7)
	paths := []string{runsPath, usagePath + "?by=client"}
	for _, part := range parts {
		paths = append(paths, runPath("swarm-1", part))
	}
	for _, path := range paths {
		b.get(t, metadata, path).fails(t, http.StatusServiceUnavailable, "conversation_audit_unavailable")
	}
	b.ask(t, runPath("swarm-1", "audit"), "Accept", oneALine).fails(t, http.StatusServiceUnavailable, "conversation_audit_unavailable")
	r := b.get(t, metadata, tracePath(7, historytest.RunID(1)))
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.NotContains(t, object(r, "run"), "executions")

	_, err = auditview.MigrateUp(t.Context(), config.Secret(b.db.OwnerDSN), 0)
	require.NoError(t, err)
	rows.execution(execution{n: 1, swarm: "swarm-1"})
	for _, path := range paths {
		r := b.get(t, metadata, path)
		require.Equal(t, http.StatusOK, r.status, r.text)
	}
}

// A line of a conversation leads to its run, from there to its executions, and back.
func TestRunsAndExecutionsAreLinkedBothWays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	linked, recorded := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 1)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Link(linked)
	b.publish(t, append(a.Messages, recorded)...)
	rows.run(2, 0)
	rows.run(3, 8)
	// A link that its archive and member do not bear out.
	rows.exec(`insert into run_links values ($1, $2, 99, $3, 'turn-3', 8)`, historytest.RunID(3), a.ConversationID(), historytest.SessionID(0))
	runs := []string{linked.RunID, historytest.RunID(2), historytest.RunID(3), historytest.RunID(9)}
	for n, run := range runs {
		rows.execution(execution{n: n, swarm: fmt.Sprintf("swarm-%d", n), run: &run})
	}
	rows.execution(execution{n: 10, swarm: "another", run: &runs[0], result: "failed"})
	rows.execution(execution{n: 11, swarm: "of-another-client", client: "client-9", run: &runs[0]})

	r := b.get(t, metadata, tracePath(linked.ThreadID, linked.RunID))
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, []any{
		map[string]any{"client_app_id": "client-0", "swarm_id": "swarm-0", "result": "info"},
		map[string]any{"client_app_id": "client-0", "swarm_id": "another", "result": "failed"},
	}, object(r, "run")["executions"])

	items := b.get(t, metadata, runsPath).list("items")
	require.Len(t, items, 6)
	for _, item := range append(items, object(b.get(t, metadata, runPath("swarm-0", "lineage")), "run")) {
		thread, conversation := any(nil), any(nil)
		switch item["swarm_id"] {
		case "swarm-0", "another":
			thread, conversation = float64(linked.ThreadID), a.ConversationID()
			require.Equal(t, linked.RunID, item["run_id"])
		default:
			require.NotContains(t, item, "conversation_audit_id")
		}
		require.Equal(t, thread, item["thread_id"], item["swarm_id"])
		require.Equal(t, conversation, item["conversation_audit_id"], item["swarm_id"])
	}
}

func TestExecutionsAreListedAndFiltered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	empty := b.get(t, metadata, runsPath)
	require.Equal(t, map[string]any{"schema": "verbatim.runs.v1", "items": []any{}, "has_more": false, "next_cursor": nil}, empty.body)

	p := func(s string) *string { return &s }
	rows.execution(execution{n: 1, swarm: "one", lineage: trace.Lineage{DeploymentID: p("dep-1")}})
	rows.execution(execution{n: 2, swarm: "two", client: "client-1", result: "failed"})
	rows.execution(execution{n: 3, swarm: "three", result: "failed"})
	rows.execution(execution{n: 4, swarm: "four", result: "success"})
	rows.task(1, "t-1", `{"agent_role":"planner","usage":{"model_id":"gpt-x"}}`)
	rows.task(1, "t-2", `{"agent_role":"impl"}`)
	rows.task(3, "t-1", `{"agent_role":"impl","usage":{"model_id":"gpt-y"}}`)
	rows.task(4, "t-1", `{"agent_role":"impl"}`)
	for _, a := range []struct {
		axis, value string
		n           int
	}{{"user", "u-1", 1}, {"user", "u-1", 2}, {"channel", "u-1", 3}, {"channel", "c-1", 4}} {
		rows.exec(`insert into execution_attributions values ($1, $2, $3)`, a.axis, a.value, executionID(a.n))
	}
	rows.happen(1, executionEvent{Type: "task.created"})

	for query, want := range map[string][]string{
		"":                                      {"four", "three", "two", "one"},
		"?client_app_id=client-0":               {"four", "three", "one"},
		"?result=failed":                        {"three", "two"},
		"?result=failed&client_app_id=client-1": {"two"},
		"?result=blocked":                       nil,
		"?agent_role=impl":                      {"four", "three", "one"},
		"?agent_role=planner":                   {"one"},
		"?agent_role=impl&model_id=gpt-x":       {"one"},
		"?model_id=gpt-y":                       {"three"},
		"?user_id=u-1":                          {"two", "one"},
		"?channel_id=u-1":                       {"three"},
		"?channel_id=c-1&agent_role=impl":       {"four"},
		"?user_id=nobody":                       nil,
		"?since=2026-03-04T05:06:09.123Z":       {"four", "three", "two"},
		"?until=2026-03-04T05:06:09.123Z":       {"one"},
		"?since=2026-03-04T05:06:09.124Z&until=" + url.QueryEscape("2026-03-04T06:06:11+01:00"): {"three"},
		"?agent_role=impl&limit=2":  {"four", "three"},
		"?result=success&unknown=x": {"four"},
	} {
		r := b.get(t, metadata, runsPath+query)
		require.Equal(t, http.StatusOK, r.status, r.text)
		require.Equal(t, want, swarms(r, "items"), query)
	}
	require.Equal(t, map[string]any{
		"client_app_id": "client-0", "swarm_id": "one", "run_id": nil, "thread_id": nil, "result": "info", "event_count": 1.0,
		"lineage":    map[string]any{"manager_deployment_id": nil, "deployment_id": "dep-1", "swarm_id": "one", "correlation_id": nil},
		"created_at": "2026-03-04T05:06:07.123Z", "latest_at": "2026-03-04T05:06:08.123Z",
	}, b.get(t, metadata, runsPath).list("items")[3])
	for _, query := range []string{
		"result=done", "result=", "agent_role=", "client_app_id=%00", "model_id=a&model_id=b", "user_id=%ff", "since=yesterday", "since=2026-03-04",
		"until=2026-03-04T05:06:60Z", "cursor=", "cursor=x", "cursor=AAAA", "cursor=f" + strings.Repeat("_", 31),
	} {
		b.get(t, metadata, runsPath+"?"+query).fails(t, http.StatusBadRequest, "invalid_request")
	}
}

func TestExecutionsArePagedWhileNewOnesArrive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	const executions = 103
	for n := range executions { // many at the same moment, to the microsecond
		rows.execution(execution{n: n, swarm: fmt.Sprintf("swarm-%03d", n), at: second(n / 10).Add(time.Microsecond), result: "failed"})
	}
	for query, want := range map[string]int{"": 50, "?limit=0": 50, "?limit=1000": 100, "?limit=7": 7} {
		r := b.get(t, metadata, runsPath+query)
		require.Len(t, r.list("items"), want, query)
		require.Equal(t, true, r.body["has_more"])
	}
	for _, filter := range []string{"", "&result=failed", "&client_app_id=client-0&until=2027-01-01T00:00:00Z"} {
		next, arrived, cursor := executions-1, 0, ""
		for more := true; more; {
			r := b.get(t, metadata, runsPath+"?limit=10"+filter+cursor)
			require.Equal(t, http.StatusOK, r.status, r.text)
			for _, swarm := range swarms(r, "items") {
				if strings.HasPrefix(swarm, "new") {
					continue
				}
				require.Equal(t, fmt.Sprintf("swarm-%03d", next), swarm)
				next--
			}
			arrived++
			n := 1000*(1+len(filter)) + arrived
			rows.execution(execution{n: n, swarm: fmt.Sprintf("new-%d", n), at: second(n), result: "failed"})
			more, _ = r.body["has_more"].(bool)
			if more {
				cursor = "&cursor=" + url.QueryEscape(fmt.Sprint(r.body["next_cursor"]))
			} else {
				require.Nil(t, r.body["next_cursor"])
			}
		}
		require.Equal(t, -1, next)
	}
}
