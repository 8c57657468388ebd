package integration_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/ingest"
	"verbatim.internal/test/integration/internal/kit"
)

// deliveries tells executions of every kind of fact, and returns the paths that show them.
func deliveries(t *testing.T, d *kit.Deployment) (paths []string) {
	t.Helper()
	seed := kit.Seed(t)
	paths = []string{"/admin/api/runs?limit=100", "/admin/api/runs?model_id=gpt-x&since=2020-01-01T00:00:00Z"}
	for _, by := range []string{"user", "channel", "client", "role", "model"} {
		paths = append(paths, "/admin/api/usage?by="+by)
	}
	for n, v := range traceVectors(t) {
		o := d.Orchestrator("app", v.swarmID())
		o.Header = http.Header{"X-Agent-User-Id": {"ada"}, "X-Agent-Channel-Id": {"42"}}
		v.tell(t, o, kit.Choices(seed, n))
		o.Put(t, kit.Grants, "grant/1", map[string]any{"secret_ref": "azkv://vault/git", "allowed_actions": []string{"read"}, "constraints": map[string]any{"max_uses": 3}})
		o.Attempt(t, kit.CallbackAttempt{AttemptID: "at-1", EventID: "ev-1", EventType: "task.created", URL: hook, Status: 503, AttemptedAt: moment})
		o.Attempt(t, kit.CallbackAttempt{AttemptID: "at-2", EventID: "ev-1", EventType: "task.created", URL: hook, Status: "ok", AttemptedAt: moment})
		for _, what := range []string{"audit", "audit?limit=4&cursor=3", "replay", "events", "logs", "lineage", "approvals", "grants", "diagnostics"} {
			paths = append(paths, "/admin/api/runs/"+v.swarmID()+"/"+what)
		}
		v.await(t, d.View("app", v.swarmID()))
	}
	awaitDrained(t, d)
	return paths
}

// awaitDrained waits until auditview has all that ingest knows.
func awaitDrained(t *testing.T, d *kit.Deployment) {
	t.Helper()
	kit.Eventually(t, recoveryLimit, func() error {
		if n := kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from outbox`); n > 0 {
			return fmt.Errorf("%d rows wait", n)
		}
		return nil
	})
}

// A restart, a rebuild from nothing and a gap that heals give the same bytes, under the
// same entity tags.
func TestExecutionsComeBackToTheSameBytes(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	paths := deliveries(t, d)
	before, err := served(t, d, paths)
	require.NoError(t, err)
	tag := firstDelivery(d).Get("audit", "").Header.Get("Etag")
	require.NotEmpty(t, tag)
	unchanged := func() {
		t.Helper()
		again := d.Auditview.Must(kit.Request{
			Method: http.MethodGet, Path: "/admin/api/runs/swarm-1/audit?client_app_id=app", Bearer: kit.Viewer, Header: http.Header{"If-None-Match": {`"x", W/` + tag}},
		})
		assert.Equal(t, http.StatusNotModified, again.Status)
		assert.Equal(t, tag, again.Header.Get("Etag"))
	}
	same := func(when string) {
		t.Helper()
		kit.Eventually(t, recoveryLimit, func() error {
			after, err := served(t, d, paths)
			if err == nil && !assert.ObjectsAreEqual(before, after) {
				err = errors.New("the bytes differ " + when)
			}
			return err
		})
		unchanged()
	}

	d.StopAuditview()
	d.StartAuditview()
	same("after a restart")

	loseReadModel(t, d)
	assert.Equal(t, http.StatusNotFound, firstDelivery(d).Get("audit", "").Status)
	_, err = ingest.Rebuild(t.Context(), config.Secret(d.IngestDB.ServiceDSN), "")
	require.NoError(t, err)
	same("after a rebuild")

	// What is told to an empty read model brings the past of its execution along.
	loseReadModel(t, d)
	d.Orchestrator("app", "swarm-1").Record(t, kit.ExecutionEvent{EventID: "later", EventType: "task.heartbeat", OccurredAt: moment})
	v := traceVectors(t)[0]
	kit.Eventually(t, recoveryLimit, func() error {
		got, err := firstDelivery(d).Audit(0)
		if err == nil && len(got) != len(v.Records)+1 {
			err = fmt.Errorf("%d records", len(got))
		}
		if err == nil {
			assert.Equal(t, v.records(t), got[:len(v.Records)])
		}
		return err
	})
	changed := firstDelivery(d).Get("audit", "")
	assert.NotEqual(t, tag, changed.Header.Get("Etag"), "another page has another tag")
}

// firstDelivery is the first vector's execution, as the present auditview serves it.
func firstDelivery(d *kit.Deployment) kit.View { return d.View("app", "swarm-1") }

// Late facts of a task change exactly the records of its events.
func TestLateFactsChangeTheirRecords(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{HTTP: true})
	o, view := d.Orchestrator("app", "swarm-1"), d.View("app", "swarm-1")
	o.Open(t, kit.Opening{})
	told := kit.Told{SwarmID: "swarm-1", Tasks: map[string]kit.TaskFacts{}}
	for i := range 30 {
		told.Events = append(told.Events, kit.ExecutionEvent{EventID: fmt.Sprintf("ev-%d", i), EventType: "task.running", OccurredAt: moment, TaskID: fmt.Sprintf("t-%d", i%3)})
	}
	o.Record(t, told.Events...)
	calls := int64(0)
	for _, change := range []struct {
		id    string
		facts kit.TaskFacts
	}{
		{"t-1", kit.TaskFacts{AgentRole: "impl", Usage: &kit.TaskUsage{ModelID: "gpt-x"}}},
		{"t-1", kit.TaskFacts{ToolCount: &calls}},
		{"t-2", kit.TaskFacts{AgentRole: "review"}},
		{"t-of-no-event", kit.TaskFacts{AgentRole: "review"}},
		{"t-1", kit.TaskFacts{}},
	} {
		o.Put(t, kit.Tasks, change.id, change.facts)
		told.Tasks[change.id] = change.facts
		kit.Eventually(t, patience, func() error {
			got, err := view.Audit(0)
			if err == nil && !assert.ObjectsAreEqual(told.Records(), got) {
				err = fmt.Errorf("served are %q", got)
			}
			return err
		})
	}
}
