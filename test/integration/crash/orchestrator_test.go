package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/test/integration/internal/kit"
)

const (
	stepsOfExecution = 24 // at most
	batchEvents      = 60 // at most
	tasksOfExecution = 4
)

// execution is what one execution was told and acknowledged.
type execution struct {
	told     kit.Told
	attempts int
	events   atomic.Int64 // acknowledged
}

// orchestrator is a client's backend. Each of its executions is told by it alone, so that
// events are stored in the order in which they are sent.
type orchestrator struct {
	*load
	name   string
	random *rand.Rand
	told   int // executions
}

// executions are the executions of all orchestrators.
type executions struct {
	mu  sync.Mutex
	all []*execution
}

func (l *executions) add(d *execution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

func (l *executions) list() []*execution {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// execution tells one execution, or a part of it when the load ends.
func (o *orchestrator) execution(ctx context.Context) error {
	o.told++
	swarmID := fmt.Sprintf("%s/%d", o.name, o.told)
	d := &execution{told: kit.Told{
		SwarmID: swarmID, Opening: kit.Opening{DeploymentID: o.name, CorrelationID: swarmID}, Tasks: map[string]kit.TaskFacts{}, Decisions: map[string]trace.Decision{},
	}}
	at := kit.Orchestrator{Ingest: o.s.Ingest, Bearer: kit.ClientToken("app"), SwarmID: swarmID}
	if _, err := o.send(ctx, at.Request(d.told.Opening)); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	o.executions.add(d)
	for range 1 + o.random.IntN(stepsOfExecution) {
		if err := o.step(ctx, &at, d); err != nil {
			return fmt.Errorf("tell: %w", err)
		}
		o.batches.Add(1)
		if o.stopping() {
			return nil
		}
	}
	return nil
}

// step tells one thing more, and remembers it once it is acknowledged.
func (o *orchestrator) step(ctx context.Context, at *kit.Orchestrator, d *execution) error {
	task := fmt.Sprintf("task/%d", o.random.IntN(tasksOfExecution))
	switch o.random.IntN(6) {
	case 0, 1:
		count := o.random.Int64N(1000)
		facts := kit.TaskFacts{AgentRole: fmt.Sprintf("role-%d", o.random.IntN(9)), Usage: &kit.TaskUsage{ModelID: "model-1"}, ToolCount: &count}
		if _, err := o.send(ctx, at.Request(facts, kit.Tasks, task)); err != nil {
			return err
		}
		d.told.Tasks[task] = facts
	case 2:
		id := fmt.Sprintf("approval/%d", len(d.told.Decisions))
		decision := []trace.Decision{trace.Approved, trace.Rejected}[o.random.IntN(2)]
		if _, err := o.send(ctx, at.Request(map[string]any{"decision": decision, "reason": "decided"}, kit.Approvals, id)); err != nil {
			return err
		}
		d.told.Decisions[id] = decision
	case 3:
		attempt := kit.CallbackAttempt{
			AttemptID: fmt.Sprintf("attempt/%d", d.attempts), EventID: "e", EventType: "task.running", URL: "https://hooks.example.com/x", Status: 200, AttemptedAt: "2026-06-08T09:00:01Z",
		}
		if _, err := o.send(ctx, at.Request(map[string]any{"attempts": []kit.CallbackAttempt{attempt}}, "callback-attempts")); err != nil {
			return err
		}
		d.attempts++
	default:
		return o.events(ctx, at, d, task)
	}
	return nil
}

func (o *orchestrator) events(ctx context.Context, at *kit.Orchestrator, d *execution, task string) error {
	var batch []kit.ExecutionEvent
	for range 1 + o.random.IntN(batchEvents) {
		batch = append(batch, kit.ExecutionEvent{
			EventID: fmt.Sprintf("event/%d", len(d.told.Events)+len(batch)), EventType: []string{"task.running", "task.completed", "task.failed"}[o.random.IntN(3)],
			OccurredAt: fmt.Sprintf("2026-06-08T09:00:00.%09dZ", o.random.IntN(1e9)), TaskID: task,
			Payload: map[string]any{"approval_id": fmt.Sprintf("approval/%d", o.random.IntN(3))},
		})
	}
	answer, err := o.send(ctx, at.Request(map[string]any{"events": batch}, "events"))
	if err != nil {
		return err
	}
	d.told.Events = append(d.told.Events, batch...)
	if last := fmt.Sprintf(`"last_position":%d}`, len(d.told.Events)); !strings.HasSuffix(string(answer), last) {
		return fmt.Errorf("the acknowledgement is %s, want %s", answer, last)
	}
	d.events.Store(int64(len(d.told.Events)))
	return nil
}

// records returns the trace of an execution as it is served.
func (s *system) records(ctx context.Context, swarmID string) ([]string, error) {
	answer, err := exchange(ctx, s.Auditview, kit.Request{
		Method: http.MethodGet, Path: "/admin/api/runs/" + strings.ReplaceAll(swarmID, "/", "%2F") + "/audit", Bearer: kit.Viewer,
		Header: http.Header{"Accept": {"application/x-ndjson"}},
	})
	if err != nil {
		return nil, err
	}
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", answer.Status, answer.Code())
	}
	if len(answer.Body) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(answer.Body), "\n"), "\n"), nil
}

// shows waits until as many records of an execution are served as events of it are
// acknowledged at the moment.
func (s *system) shows(d *execution) {
	s.t.Helper()
	want := int(d.events.Load())
	kit.Eventually(s.t, patience, func() error {
		got, err := s.records(s.t.Context(), d.told.SwarmID)
		if err == nil && len(got) < want {
			err = fmt.Errorf("%d records are served, %d events are acknowledged", len(got), want)
		}
		return err
	})
}

// verifyExecutions compares every trace with the one that follows from what was told, and
// counts what both databases hold.
func (s *system) verifyExecutions(all []*execution) {
	s.t.Helper()
	events, tasks, approvals, attempts := 0, 0, 0, 0
	for _, d := range all {
		got, err := s.records(s.t.Context(), d.told.SwarmID)
		require.NoError(s.t, err)
		require.Equal(s.t, d.told.Records(), got, "execution %s", d.told.SwarmID)
		events += len(d.told.Events)
		tasks += len(d.told.Tasks)
		approvals += len(d.told.Decisions)
		attempts += d.attempts
	}
	for table, want := range map[string]int{"s": len(all), "_events": events, "_tasks": tasks, "_approvals": approvals, "_callback_attempts": attempts} {
		assert.Equal(s.t, want, kit.Count(s.t, s.AuditviewDB.AdminDSN, `select count(*) from execution`+table), table)
		assert.Equal(s.t, want, kit.Count(s.t, s.IngestDB.AdminDSN, `select count(*) from bz_execution`+table), table)
	}
	s.t.Logf("%d executions with %d events and %d tasks are served exactly once", len(all), events, tasks)
}
