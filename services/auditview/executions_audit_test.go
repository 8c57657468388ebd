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

const ndjson = "application/x-ndjson"

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
		whole := b.ask(t, runPath(swarm, "audit?"+client), "Accept", ndjson)
		require.Equal(t, http.StatusOK, whole.status, whole.text)
		require.Equal(t, ndjson, whole.header.Get("Content-Type"))
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
