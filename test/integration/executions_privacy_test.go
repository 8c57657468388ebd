package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/openapi"
	"verbatim.internal/test/integration/internal/kit"
)

// bodies are the objects of the runtime API, by the name of their schema: what each must
// have, and how it is sent.
var bodies = map[string]struct {
	required map[string]any
	send     func(o *kit.Orchestrator, id string, object map[string]any) kit.Request
}{
	"ExecutionOpening": {nil, func(o *kit.Orchestrator, id string, object map[string]any) kit.Request {
		another := *o
		another.SwarmID = id
		return another.Request(object)
	}},
	"ExecutionEvent": {map[string]any{"event_type": "task.created", "occurred_at": moment}, sendEvent},
	"Payload": {nil, func(o *kit.Orchestrator, id string, object map[string]any) kit.Request {
		return sendEvent(o, id, map[string]any{"event_type": "task.created", "occurred_at": moment, "payload": object})
	}},
	"ExecutionTask": {nil, sendFact(kit.Tasks)},
	"TaskUsage": {nil, func(o *kit.Orchestrator, id string, object map[string]any) kit.Request {
		return o.Request(map[string]any{"usage": object}, kit.Tasks, id)
	}},
	"ExecutionApproval": {nil, sendFact(kit.Approvals)},
	"ExecutionGrant":    {nil, sendFact(kit.Grants)},
	"ExecutionAttempt": {
		map[string]any{"event_id": "e", "event_type": "task.created", "url": "https://hooks.example.com/", "status": 200, "attempted_at": moment},
		func(o *kit.Orchestrator, id string, object map[string]any) kit.Request {
			return o.Request(map[string]any{"attempts": []any{with(object, "attempt_id", id)}}, "callback-attempts")
		},
	},
}

const moment = "2026-06-08T09:00:01Z"

func sendEvent(o *kit.Orchestrator, id string, object map[string]any) kit.Request {
	return o.Request(map[string]any{"events": []any{with(object, "event_id", id)}}, "events")
}

func sendFact(kind string) func(o *kit.Orchestrator, id string, object map[string]any) kit.Request {
	return func(o *kit.Orchestrator, id string, object map[string]any) kit.Request {
		return o.Request(object, kind, id)
	}
}

// with returns the object with a member, unless it has one of that name.
func with(object map[string]any, name string, value any) map[string]any {
	all := map[string]any{name: value}
	for name, value := range object {
		all[name] = value
	}
	return all
}

// intrusions are requests that try to have a text kept: in every field that the document
// declares, in fields that it does not, as names, in lists and objects, in ids and headers.
func intrusions(t *testing.T, o *kit.Orchestrator, samples []sample) (requests []kit.Request) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openapi.Ingest)
	require.NoError(t, err)
	var texts []any
	named := map[string]any{}
	for i, s := range samples {
		texts = append(texts, s.text)
		named[fmt.Sprintf("field_%d", i)] = s.text
		named[s.text] = i
	}
	nested := []any{texts, named, map[string]any{"list": texts, "object": named}}
	turn := 0
	for schema, body := range bodies {
		properties := doc.Components.Schemas[schema].Value.Properties
		require.NotEmpty(t, properties, schema)
		fields := []string{"undeclared", "prompt"}
		for name := range properties {
			fields = append(fields, name)
		}
		for _, field := range fields {
			turn++
			values := slices.Clone(nested)
			for i, text := range texts { // every field gets a part of them, every one gets into many fields
				if (i+turn)%4 == 0 {
					values = append(values, text)
				}
			}
			for _, value := range values {
				object := map[string]any{field: value}
				for name, value := range body.required {
					object = with(object, name, value)
				}
				requests = append(requests, body.send(o, "id-"+kit.UUID(), object))
			}
		}
		for _, s := range samples {
			requests = append(requests, body.send(o, "id-"+kit.UUID(), with(body.required, s.text, 1)), body.send(o, s.text, body.required))
		}
	}
	for _, s := range samples {
		for _, place := range []string{"https://%s.example.com/", "https://%s@example.com/", "https://example.com/%s", "https://example.com/?q=%s", "https://example.com/#%s"} {
			attempt := with(bodies["ExecutionAttempt"].required, "attempt_id", "id-"+kit.UUID())
			attempt["url"] = fmt.Sprintf(place, url.PathEscape(s.text))
			requests = append(requests, o.Request(map[string]any{"attempts": []any{attempt}}, "callback-attempts"))
		}
		event := sendEvent(o, "id-"+kit.UUID(), bodies["ExecutionEvent"].required)
		event.Path += "?access_token=" + url.QueryEscape(s.text)
		requests = append(requests, event)
		if strings.Contains(s.text, "\n") {
			continue // no header has one
		}
		for _, header := range []string{"X-Agent-User-Id", "X-Agent-Channel-Id", "X-Agent-Role", "X-Agent-Instance-Id", "X-Agent-Task-Id", "X-Request-Id", "User-Agent", "Idempotency-Key"} {
			event := sendEvent(o, "id-"+kit.UUID(), bodies["ExecutionEvent"].required)
			event.Header = http.Header{header: {s.text}}
			task := o.Request(map[string]any{}, kit.Tasks, "id-"+kit.UUID())
			task.Header = event.Header
			requests = append(requests, event, task)
		}
	}
	return requests
}

// sendAll sends requests, several at a time, and returns how many of each status there were.
func sendAll(t *testing.T, e *kit.Endpoint, requests []kit.Request) map[int]int {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	const senders = 4
	for n := range senders {
		group.Go(func() {
			for i := n; i < len(requests); i += senders {
				answer, err := e.Do(t.Context(), requests[i])
				mu.Lock()
				statuses[answer.Status]++
				mu.Unlock()
				if !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	group.Wait()
	return statuses
}

// Nothing that is no metadata gets into the store of an execution: not into a table of
// either database, the outbox or a log, whichever field it is sent in. The redacted words
// of an approval's reason are the one exception.
func TestExecutionsKeepMetadataOnly(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	o := d.Orchestrator("app", "swarm-1")
	o.Open(t, kit.Opening{})
	d.StopAuditview() // so that all that is told stays in the outbox

	secrets, prose := secretSamples(), proseSamples()
	samples := append(slices.Clone(secrets), prose...)
	statuses := sendAll(t, d.Ingest, intrusions(t, o, samples))
	t.Logf("answers by status: %v", statuses)
	for status := range statuses {
		assert.Contains(t, []int{200, 201, 400, 404}, status)
	}
	assert.Greater(t, statuses[400], statuses[200], "most are refused")

	// In a reason stands what is no secret.
	said := sampled("The depot manager agreed by telephone.", "manager agreed by telephone")
	for i, s := range secrets {
		text := said.text + " " + s.text
		o.Put(t, kit.Approvals, fmt.Sprintf("ap-%d", i), map[string]any{"reason": text, "decision": "approved"})
	}
	o.Record(t, kit.ExecutionEvent{EventID: "last", EventType: "task.completed", OccurredAt: moment})
	require.Positive(t, kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from outbox where stream_kind = 'execution'`))
	approvals := prose // a reason may be any text
	atIngest := findings(t, d.IngestDB.AdminDSN, append(slices.Clone(samples), said))
	assert.Subset(t, reasons("bz_execution_approvals", append(approvals, said)), atIngest)
	assert.Contains(t, atIngest, "bz_execution_approvals: "+said.mark, "what is there is found")

	d.StartAuditview()
	view := d.View("app", "swarm-1")
	kit.Eventually(t, patience, func() error {
		if n := kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from outbox`); n > 0 {
			return fmt.Errorf("%d rows wait", n)
		}
		if answer := view.Get("audit", "", "limit", "1000"); !strings.Contains(string(answer.Body), `"task.completed"`) {
			return fmt.Errorf("the last event is not there: %d", answer.Status)
		}
		return nil
	})
	assert.Empty(t, findings(t, d.IngestDB.AdminDSN, secrets))
	inView := findings(t, d.AuditviewDB.AdminDSN, append(slices.Clone(samples), said))
	assert.Subset(t, reasons("execution_approvals", append(approvals, said)), inView)
	assert.Contains(t, inView, "execution_approvals: "+said.mark)

	checkReads(t, d, samples)
	for _, text := range append(metrics(t, d), d.Logs.String()) {
		text = strings.ToLower(text)
		for _, s := range append(slices.Clone(samples), said) {
			assert.NotContains(t, text, s.mark)
		}
	}
}

// reasons returns the findings that a reason explains.
func reasons(table string, samples []sample) (findings []string) {
	for _, s := range samples {
		findings = append(findings, table+": "+s.mark)
	}
	return findings
}

func metrics(t *testing.T, d *kit.Deployment) (texts []string) {
	t.Helper()
	for _, address := range d.MetricsURLs() {
		texts = append(texts, get(t, address+"/metrics"))
	}
	return texts
}

// checkReads asks auditview by every sample, and looks for samples in all that it serves
// but approvals.
func checkReads(t *testing.T, d *kit.Deployment, samples []sample) {
	t.Helper()
	for _, s := range samples {
		for _, view := range []kit.View{d.View("", s.text), d.View(s.text, "swarm-1")} {
			answer := view.Get("audit", "")
			assert.Equal(t, http.StatusNotFound, answer.Status, "%s", answer.Body)
		}
	}
	for _, what := range []string{"audit", "replay", "events", "logs", "lineage", "grants", "diagnostics"} {
		answer := d.View("app", "swarm-1").Get(what, "", "limit", "1000")
		require.Equal(t, http.StatusOK, answer.Status, "%s", answer.Body)
		for _, s := range samples {
			assert.NotContains(t, strings.ToLower(string(answer.Body)), s.mark, what)
		}
	}
}
