package ingest_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// execEvents is a body of events with the ids, each with more members.
func execEvents(more string, ids ...string) string {
	events := make([]string, len(ids))
	for i, id := range ids {
		events[i] = `{"event_id":"` + id + `","event_type":"task.completed","occurred_at":"2026-06-08T11:00:03.120+02:00"` + more + `}`
	}
	return `{"events":[` + strings.Join(events, ",") + `]}`
}

func execIDs(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = prefix + strconv.Itoa(i+1)
	}
	return ids
}

// storedEvents are "position event_id" of an execution, by position.
func (b *execBundle) storedEvents(t *testing.T, id string) []string {
	t.Helper()
	return b.texts(t, `select position || ' ' || event_id from bz_execution_events where execution_id = $1 order by position`, id)
}

func TestEventsAreStoredInOrder(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	b.post(t, "/swarm/events", `{"events":[
		{"event_id":"e/1","event_type":"task.completed","occurred_at":"2026-06-08T11:00:03.120+02:00","task_id":"t-1","agent_instance_id":"agent-7","correlation_id":"corr-1",
		 "payload":{"to_status":"done","attempt":1.0,"prompt":"say it","Note":"x","decision":"maybe","gone":null,"secret_ref":"`+execVaultRef+`"}},
		{"event_id":"e-2","event_type":"timeline.updated","occurred_at":"2026-06-08T09:00:00Z","task_id":null,"correlation_id":null,"payload":null}]}`,
		"X-Agent-User-Id", "ada", "X-Agent-Channel-Id", "42", "X-Agent-Role", "impl", "X-Agent-Instance-Id", "agent-9", "X-Agent-Task-Id", "t-9").
		is(t, http.StatusOK).has(t, "schema", "verbatim.execution-ack.v1", "swarm_id", "swarm", "accepted", 2, "skipped", 0, "dropped_fields", 3, "last_position", 2)
	require.Equal(t, []string{
		`1|e/1|task.completed|2026-06-08T09:00:03.120Z|t-1|agent-7|impl|ada|42|{"attempt":1,"secret_ref":"azkv://vault/orders-db","to_status":"done"}|{decision,prompt}|3`,
		`2|e-2|timeline.updated|2026-06-08T09:00:00Z|t-9|agent-9|impl|ada|42|{}|{}|0`,
	}, b.texts(t, `select concat_ws('|', position, event_id, event_type, occurred_at, task_id, agent_instance_id, agent_role, user_id, channel_id, payload::text,
		dropped_fields::text, dropped_count) from bz_execution_events where execution_id = $1 order by position`, id))
	b.post(t, "/swarm/events", execEvents("", "e-3")).is(t, http.StatusOK).has(t, "last_position", 3)
	require.Equal(t, "true", b.text(t, `select (task_id is null and agent_instance_id is null and agent_role is null and user_id is null and channel_id is null)::text
		from bz_execution_events where event_id = 'e-3'`))
	require.Equal(t, []string{
		`1 verbatim.execution.opened.v1 {}`,
		`2 verbatim.execution.events_recorded.v1 {"first_position":1,"last_position":2}`,
		`3 verbatim.execution.events_recorded.v1 {"first_position":3,"last_position":3}`,
	}, b.outbox(t, id))
	require.Equal(t, "3", b.version(t, id))
	b.put(t, "/swarm", `{"correlation_id":"corr-1"}`).is(t, http.StatusOK).has(t, "last_position", 3)
}

func TestEventsAreIdempotent(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	body := execEvents(`,"task_id":"t-1","payload":{"attempt":1}`, "e-1", "e-2")
	b.post(t, "/swarm/events", body).is(t, http.StatusOK).has(t, "accepted", 2)
	b.post(t, "/swarm/events", body).is(t, http.StatusOK).has(t, "accepted", 0, "skipped", 2, "last_position", 2)
	// Another spelling, other dropped fields, other headers: what remains of the body is the same.
	same := strings.NewReplacer("11:00:03.120+02:00", "09:00:03.120Z", `{"attempt":1}`, `{"attempt":1e0,"prompt":"x"}`).Replace(body)
	b.post(t, "/swarm/events", same, "X-Agent-User-Id", "bob", "X-Agent-Instance-Id", "agent-9").is(t, http.StatusOK).has(t, "skipped", 2, "dropped_fields", 2)
	require.Equal(t, "2", b.version(t, id), "nothing new is no version")

	twice := execEvents("", "e-3", "e-4", "e-3")
	b.post(t, "/swarm/events", twice).is(t, http.StatusOK).has(t, "accepted", 2, "skipped", 1, "last_position", 4)
	mixed := strings.Replace(body, `]}`, `,`+strings.TrimPrefix(execEvents("", "e-5"), `{"events":[`), 1)
	b.post(t, "/swarm/events", mixed).is(t, http.StatusOK).has(t, "accepted", 1, "skipped", 2, "last_position", 5)

	for name, other := range map[string]string{
		"type":     strings.Replace(body, "task.completed", "task.failed", 1),
		"digits":   strings.Replace(body, ".120", ".12", 1),
		"task":     strings.Replace(body, `,"task_id":"t-1"`, "", 1),
		"payload":  strings.Replace(body, `"attempt":1`, `"attempt":2`, 1),
		"instance": strings.Replace(body, `"task_id":"t-1"`, `"task_id":"t-1","agent_instance_id":"a"`, 1),
		"in batch": execEvents("", "new")[:len(execEvents("", "new"))-2] + `,{"event_id":"new","event_type":"task.failed","occurred_at":"2026-06-08T09:00:00Z"}]}`,
	} {
		withNew := strings.Replace(other, `{"events":[`, execEvents("", "new-"+strings.ReplaceAll(name, " ", "-"))[:len(execEvents("", "new-"+strings.ReplaceAll(name, " ", "-")))-2]+`,`, 1)
		b.post(t, "/swarm/events", withNew).is(t, http.StatusConflict, "run_conflict")
	}
	require.Equal(t, []string{"1 e-1", "2 e-2", "3 e-3", "4 e-4", "5 e-5"}, b.storedEvents(t, id), "a conflict writes nothing")
	require.Equal(t, "4", b.version(t, id))
}

func TestEventsBelongToTheCorrelationOfTheirRun(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	b.put(t, "/none", `{}`).is(t, http.StatusCreated)
	b.post(t, "/swarm/events", execEvents(`,"correlation_id":"corr-1"`, "e-1")).is(t, http.StatusOK)
	b.post(t, "/swarm/events", execEvents(``, "e-1")).is(t, http.StatusOK).has(t, "skipped", 1)
	b.post(t, "/swarm/events", execEvents(`,"correlation_id":"corr-2"`, "e-2")).is(t, http.StatusConflict, "run_conflict")
	b.post(t, "/swarm/events", execEvents(`,"correlation_id":"corr-2"`, "e-1")).is(t, http.StatusConflict, "run_conflict")
	b.post(t, "/none/events", execEvents(`,"correlation_id":"corr-1"`, "e-1")).is(t, http.StatusConflict, "run_conflict")
	b.post(t, "/none/events", execEvents(`,"correlation_id":null`, "e-1")).is(t, http.StatusOK)
	require.Equal(t, []string{"1 e-1"}, b.storedEvents(t, id))
}

func TestEventsHaveTheirForms(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	for name, body := range map[string]string{
		"no events": `{}`, "null": `{"events":null}`, "an empty list": `{"events":[]}`, "an object": `{"events":{}}`, "a null event": `{"events":[null]}`,
		"201": execEvents("", execIDs("e-", 201)...), "undeclared": execEvents(`,"prompt":null`, "e"), "a list": `[]`, "top level": `{"events":[],"x":1}`,
		"a number": `{"events":[{"event_id":1,"event_type":"a.b","occurred_at":"2026-06-08T09:00:00Z"}]}`, "no id": execEvents("", ""),
		"a type": strings.Replace(execEvents("", "e"), "task.completed", "Task done", 1), "a time": strings.Replace(execEvents("", "e"), "03.120+02:00", "60Z", 1),
		"a payload": execEvents(`,"payload":[]`, "e"), "prose": execEvents(`,"payload":{"status":"two words"}`, "e"), "a name twice": execEvents(`,"payload":{"x":1,"x":1}`, "e"),
		"a secret": execEvents(`,"payload":{"status":"`+execShop+`"}`, "e"), "no reference": execEvents(`,"payload":{"secret_ref":"hunter2"}`, "e"),
		"after good ones": strings.Replace(execEvents("", "e-1", "e-2"), "e-2", "e 2", 1),
	} {
		r := b.post(t, "/swarm/events", body)
		require.Equal(t, http.StatusBadRequest, r.status, name)
		r.is(t, http.StatusBadRequest, "invalid_request")
	}
	for _, header := range []string{"X-Agent-User-Id", "X-Agent-Channel-Id", "X-Agent-Role", "X-Agent-Instance-Id", "X-Agent-Task-Id"} {
		for _, value := range []string{"", "two words", strings.Repeat("n", 129), "café", execShop, "tab\tin"} {
			b.post(t, "/swarm/events", execEvents("", "e"), header, value).is(t, http.StatusBadRequest, "invalid_request")
		}
		b.post(t, "/swarm/events", execEvents("", "e"), header, "a", header, "a").is(t, http.StatusBadRequest, "invalid_request")
		b.put(t, "/new", `{}`, header, "two words").is(t, http.StatusBadRequest, "invalid_request")
	}
	require.Empty(t, b.storedEvents(t, id))
	b.post(t, "/swarm/events", execEvents("", execIDs("e-", 200)...), "X-Agent-User-Id", strings.Repeat("n", 128)).is(t, http.StatusOK).has(t, "accepted", 200)
}

func TestExecutionsAreLimited(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	for path, write := range execWrites() {
		body := write[1][:len(write[1])-1] + strings.Repeat(" ", 2<<20-len(write[1])) + "}"
		b.call(t, write[0], "/swarm"+path, body).is(t, http.StatusOK)
		b.call(t, write[0], "/swarm"+path, body+" ").is(t, http.StatusRequestEntityTooLarge, "run_limit")
	}
	b.put(t, "/swarm", `{"correlation_id":"corr-1"}`+strings.Repeat(" ", 2<<20)).is(t, http.StatusRequestEntityTooLarge, "run_limit")

	b.exec(t, `update bz_executions set last_position = 999998, task_count = 99999 where execution_id = $1`, id)
	b.post(t, "/swarm/events", execEvents("", "n-1", "n-2", "n-3")).is(t, http.StatusRequestEntityTooLarge, "run_limit")
	b.post(t, "/swarm/events", execEvents("", "n-1", "n-2")).is(t, http.StatusOK).has(t, "last_position", 1_000_000)
	b.post(t, "/swarm/events", execEvents("", "n-3")).is(t, http.StatusRequestEntityTooLarge, "run_limit")
	b.post(t, "/swarm/events", execEvents("", "n-1")).is(t, http.StatusOK).has(t, "skipped", 1, "last_position", 1_000_000)
	b.put(t, "/swarm/tasks/last", `{}`).is(t, http.StatusOK)
	b.put(t, "/swarm/tasks/more", `{}`).is(t, http.StatusRequestEntityTooLarge, "run_limit")
	b.put(t, "/swarm/tasks/last", `{"agent_role":"impl"}`).is(t, http.StatusOK).has(t, "changed", true)
	require.Equal(t, "1000000 100000", b.text(t, `select last_position || ' ' || task_count from bz_executions where execution_id = $1`, id))
}

// Positions are 1 to n without gaps, whoever writes, each batch stays together, and the
// outbox has the versions in order.
func TestParallelWritersShareOneOrder(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	const writers, rounds, size = 8, 6, 5
	var wg sync.WaitGroup
	failures := make(chan string, writers*rounds*2)
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				ids := execIDs(fmt.Sprintf("w%d-r%d-", w, r), size)
				for _, write := range []struct {
					method, path, body string
				}{
					{http.MethodPost, "/events", execEvents("", append(ids, "shared-"+strconv.Itoa(r))...)},
					{http.MethodPut, "/tasks/t-" + strconv.Itoa(r), fmt.Sprintf(`{"retry_count":%d}`, w)},
				} {
					reply, err := b.send(t.Context(), write.method, "/runtime-api/v1/runs/swarm"+write.path, write.body)
					if err != nil || reply.status != http.StatusOK {
						failures <- fmt.Sprint(reply.raw, err)
					}
				}
			}
		})
	}
	wg.Wait()
	close(failures)
	for failure := range failures {
		t.Error(failure)
	}
	const events = writers*rounds*size + rounds
	stored := b.storedEvents(t, id)
	require.Len(t, stored, events)
	seen := map[string]int{}
	for i, line := range stored {
		position, eventID, _ := strings.Cut(line, " ")
		require.Equal(t, strconv.Itoa(i+1), position)
		seen[eventID] = i + 1
	}
	for w := range writers {
		for r := range rounds {
			ids := execIDs(fmt.Sprintf("w%d-r%d-", w, r), size)
			for i, eventID := range ids {
				require.Equal(t, seen[ids[0]]+i, seen[eventID], "a batch stays together")
			}
		}
	}
	messages := b.outbox(t, id)
	next := 1
	for i, m := range messages {
		require.True(t, strings.HasPrefix(m, strconv.Itoa(i+1)+" "), m)
		var first, last int
		if n, _ := fmt.Sscanf(m, strconv.Itoa(i+1)+` verbatim.execution.events_recorded.v1 {"first_position":%d,"last_position":%d}`, &first, &last); n == 2 {
			require.Equal(t, next, first, m)
			next = last + 1
		}
	}
	require.Equal(t, events+1, next)
	require.Equal(t, strconv.Itoa(len(messages)), b.version(t, id))
	require.Equal(t, fmt.Sprintf("%d %d", events, rounds), b.text(t, `select last_position || ' ' || task_count from bz_executions where execution_id = $1`, id))
}
