package auditview_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/timestamp"
)

func normalized(tb require.TestingT, at string) string {
	s, ok := timestamp.Normalize(at)
	require.True(tb, ok)
	return s
}

// ask asks with header fields, given as name and value in turn.
func (b *bundle) ask(t *testing.T, path string, header ...string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.service.URL()+path, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+metadata)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return send(t, req)
}

const oneALine = "application/x-ndjson"

// auditPage is an answer of /audit with the bytes of its records.
type auditPage struct {
	Schema  string           `json:"schema"`
	Lineage jsontext.Value   `json:"lineage"`
	Records []jsontext.Value `json:"records"`
	Next    *int64           `json:"next_cursor"`
}

func page(t *testing.T, r response) (p auditPage) {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))
	require.NoError(t, json.Unmarshal([]byte(r.text), &p, json.RejectUnknownMembers(true)))
	return p
}

// records walks the pages of a trace and returns its records, a line each.
func (b *bundle) records(t *testing.T, swarm string, limit int) string {
	t.Helper()
	var lines strings.Builder
	for cursor := new(int64); cursor != nil; {
		p := page(t, b.ask(t, runPath(swarm, fmt.Sprintf("audit?limit=%d&cursor=%d", limit, *cursor))))
		require.LessOrEqual(t, len(p.Records), limit)
		for _, record := range p.Records {
			lines.Write(record)
			lines.WriteByte('\n')
		}
		cursor = p.Next
	}
	return lines.String()
}

// replayed walks the pages of a replay, in text or in JSON.
func (b *bundle) replayed(t *testing.T, swarm string, limit int, inJSON bool) string {
	t.Helper()
	var lines strings.Builder
	for cursor := int64(0); ; {
		path := runPath(swarm, fmt.Sprintf("replay?limit=%d&cursor=%d", limit, cursor))
		if !inJSON {
			r := b.ask(t, path)
			require.Equal(t, "text/plain; charset=utf-8", r.header.Get("Content-Type"))
			lines.WriteString(r.text)
			if strings.Count(r.text, "\n") < limit {
				return lines.String()
			}
			cursor += int64(limit)
			continue
		}
		r := b.ask(t, path, "Accept", "application/json")
		require.Len(t, r.body, 2)
		said, _ := r.body["lines"].([]any)
		for _, line := range said {
			fmt.Fprintln(&lines, line)
		}
		next, more := r.body["next_cursor"].(float64)
		if !more {
			require.Nil(t, r.body["next_cursor"])
			return lines.String()
		}
		cursor = int64(next)
	}
}

// What the contract's vectors say is what is served, in the same bytes whatever the pages.
func TestAuditTraceOfTheVectors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	for n, v := range vectors(t) {
		swarm := rows.vector(n, v)
		client := fmt.Sprintf("client_app_id=client-%d", n)
		whole := b.ask(t, runPath(swarm, "audit?"+client), "Accept", oneALine)
		require.Equal(t, http.StatusOK, whole.status, whole.text)
		require.Equal(t, oneALine, whole.header.Get("Content-Type"))
		lines := strings.SplitAfter(whole.text, "\n")
		require.Len(t, lines, len(v.Records)+1, v.Name)
		lineage := v.Lineage
		lineage.SwarmID = &swarm
		for i, want := range v.Records {
			require.Equal(t, canon(t, want), canon(t, []byte(lines[i])), v.Name)
		}
		rows.exec(`update executions set client_app_id = 'client-0' where execution_id = $1`, executionID(n))
		for _, limit := range []int{1, 2, 3, 7, 1000} {
			require.Equal(t, whole.text, b.records(t, swarm, limit), "%s, by %d", v.Name, limit)
			require.Equal(t, strings.Join(v.Replay, "\n")+"\n", b.replayed(t, swarm, limit, false)+ending(v), v.Name)
			require.Equal(t, strings.Join(v.Replay, "\n")+"\n", b.replayed(t, swarm, limit, true)+ending(v), v.Name)
		}
		shown, err := json.Marshal(lineage)
		require.NoError(t, err)
		require.Equal(t, string(shown), string(page(t, b.ask(t, runPath(swarm, "audit"))).Lineage))
		rows.exec(`update executions set swarm_id = 'gone-' || execution_id where execution_id = $1`, executionID(n))
	}
}

// ending is the line feed that a replay of nothing does not have.
func ending(v vector) string {
	if len(v.Replay) == 0 {
		return "\n"
	}
	return ""
}

func canon(t *testing.T, raw []byte) string {
	t.Helper()
	out, err := canonical.JSON(jsontext.Value(bytes.TrimSpace(raw)))
	require.NoError(t, err)
	return string(out)
}

// A page's tag stands until something about the execution is projected, be it a late fact.
func TestAuditTags(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.execution(execution{n: 1, swarm: "swarm-1"})
	rows.task(1, "t-1", `{}`)
	task := "t-1"
	for range 5 {
		rows.happen(1, executionEvent{Type: "task.running", Task: &task})
	}
	paths := map[string][]string{
		runPath("swarm-1", "audit"):                  nil,
		runPath("swarm-1", "audit?limit=2"):          nil,
		runPath("swarm-1", "audit?limit=2&cursor=2"): nil,
		runPath("swarm-1", "audit?cursor=3"):         {"Accept", oneALine + ", */*;q=0.1"},
		runPath("swarm-1", "replay"):                 nil,
		runPath("swarm-1", "replay?limit=5"):         {"Accept", "text/plain;q=0.5, application/json"},
	}
	tags := map[string]string{}
	for path, header := range paths {
		r := b.ask(t, path, header...)
		require.Equal(t, http.StatusOK, r.status, r.text)
		require.Equal(t, "Accept", r.header.Get("Vary"))
		tag := r.header.Get("ETag")
		require.Regexp(t, `^"[a-z.]+\.[0-9a-f-]{36}\.[0-9.]+"$`, tag)
		require.NotContains(t, tags, tag)
		tags[tag] = path
		for _, known := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			again := b.ask(t, path, append([]string{"If-None-Match", known}, header...)...)
			require.Equal(t, http.StatusNotModified, again.status, known)
			require.Empty(t, again.text)
			require.Equal(t, tag, again.header.Get("ETag"))
			require.Equal(t, "no-store", again.header.Get("Cache-Control"))
		}
		require.Equal(t, r.text, b.ask(t, path, append([]string{"If-None-Match", `"x"`}, header...)...).text)
		require.NotContains(t, r.text, "reviewer")
	}
	require.Equal(t, b.ask(t, runPath("swarm-1", "audit?limit=200")).header.Get("ETag"),
		b.ask(t, runPath("swarm-1", "audit?cursor=0&limit=0")).header.Get("ETag"), "the default is what it says")

	rows.task(1, "t-1", `{"agent_role":"reviewer"}`)
	for tag, path := range tags {
		r := b.ask(t, path, append([]string{"If-None-Match", tag}, paths[path]...)...)
		require.Equal(t, http.StatusOK, r.status, path)
		require.Contains(t, r.text, "reviewer")
		require.NotEqual(t, tag, r.header.Get("ETag"))
	}

	// A snapshot's parts bring facts before its last part brings their version: what is shown
	// meanwhile has no tag, and comes with the version.
	rows.exec(`update execution_tasks set version = version + 2, agent_role = 'planner'`)
	for path, header := range paths {
		r := b.ask(t, path, header...)
		require.Contains(t, r.text, "planner")
		require.Empty(t, r.header.Get("ETag"), path)
	}
	rows.exec(`update executions set version = version + 2`)
	require.NotEmpty(t, b.ask(t, runPath("swarm-1", "audit")).header.Get("ETag"))
}

// Late facts change the records of their task and approval, and no others.
func TestLateFactsChangeTheirRecords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.execution(execution{n: 1, swarm: "swarm-1"})
	one, two := "t-1", "t-2"
	rows.happen(1, executionEvent{Type: "task.running", Task: &one}, executionEvent{Type: "task.running", Task: &two},
		executionEvent{Type: "approval.requested", Payload: jsontext.Value(`{"approval_id":"ap-1","decision":"approved"}`)},
		executionEvent{Type: "approval.approved", Payload: jsontext.Value(`{"approval_id":"ap-2"}`)},
		executionEvent{Type: "approval.requested", Payload: jsontext.Value(`{"approval_id":"ap-3"}`)})
	before := page(t, b.ask(t, runPath("swarm-1", "audit"))).Records
	rows.task(1, "t-2", `{"agent_role":"impl","usage":{"model_id":"gpt-x"},"tool_count":0}`)
	rows.approval(1, "ap-1", `{"decision":"rejected"}`)
	rows.approval(1, "ap-2", `{}`)
	after := page(t, b.ask(t, runPath("swarm-1", "audit"))).Records
	require.Len(t, after, 5)
	for _, same := range []int{0, 3, 4} {
		require.Equal(t, string(before[same]), string(after[same]))
	}
	require.Contains(t, string(before[1]), `"agent_role":null,`)
	require.Contains(t, string(after[1]), `"actor":{"agent_role":"impl","agent_instance_id":null},"task_id":"t-2","model":{"model_id":"gpt-x"},"tool":{"count":0}`)
	require.Contains(t, string(before[2]), `"approval":{"approval_id":"ap-1","decision":"approved"}`)
	require.Contains(t, string(after[2]), `"approval":{"approval_id":"ap-1","decision":"rejected"}`)
	require.Contains(t, string(after[3]), `"approval":{"approval_id":"ap-2","decision":"approved"}`)
	require.Contains(t, string(after[4]), `"approval":{"approval_id":"ap-3","decision":null}`)
}

func TestAuditPagesAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	rows.execution(execution{n: 1, swarm: "swarm-1"})
	empty := page(t, b.ask(t, runPath("swarm-1", "audit")))
	require.Equal(t, "verbatim.audit-trace.v1", empty.Schema)
	require.NotNil(t, empty.Records)
	require.Empty(t, empty.Records)
	require.Nil(t, empty.Next)
	require.Empty(t, b.ask(t, runPath("swarm-1", "audit"), "Accept", oneALine).text)
	require.Empty(t, b.ask(t, runPath("swarm-1", "replay")).text)

	const events = 1203
	rows.many(1, events)
	// What a snapshot has not brought whole is not there yet.
	rows.exec(`update executions set last_position = $1`, events-2)
	for query, want := range map[string]struct {
		first, count int
		next         any
	}{
		"":                                {1, 200, 200.0},
		"?limit=0":                        {1, 200, 200.0},
		"?limit=1":                        {1, 1, 1.0},
		"?limit=5000":                     {1, 1000, 1000.0},
		"?limit=1000&cursor=201":          {202, 1000, nil},
		"?limit=1000&cursor=200":          {201, 1000, 1200.0},
		"?cursor=1200":                    {1201, 1, nil},
		"?cursor=1201":                    {0, 0, nil},
		"?cursor=9007199254740991&limit=": {0, 0, nil}, // refused below
		"?cursor=9007199254740991":        {0, 0, nil},
	} {
		for _, part := range []string{"audit", "events"} {
			r := b.ask(t, runPath("swarm-1", part)+query)
			if strings.HasSuffix(query, "limit=") {
				r.fails(t, http.StatusBadRequest, "invalid_request")
				continue
			}
			require.Equal(t, http.StatusOK, r.status, r.text)
			items := r.list(map[string]string{"audit": "records", "events": "events"}[part])
			require.Len(t, items, want.count, query)
			require.Equal(t, want.next, r.body["next_cursor"], query)
			require.Contains(t, r.body, "next_cursor")
			switch {
			case want.count == 0:
			case part == "audit":
				require.Equal(t, fmt.Sprintf("aud_%06d", want.first), items[0]["audit_id"])
			default:
				require.InDelta(t, want.first, items[0]["position"], 0)
			}
		}
	}
	require.Equal(t, events-2, strings.Count(b.ask(t, runPath("swarm-1", "audit"), "Accept", oneALine).text, "\n"))
	require.Equal(t, 1, strings.Count(b.ask(t, runPath("swarm-1", "audit?cursor=1200"), "Accept", oneALine).text, "\n"))
}
