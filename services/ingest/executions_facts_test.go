package ingest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func (b *execBundle) task(t *testing.T, taskID string) string {
	t.Helper()
	return b.text(t, `select version || ' ' || facts::text from bz_execution_tasks where task_id = $1`, taskID)
}

func TestATaskIsPutByArrival(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	const whole = `{"parent_task_id":"t-0","root_task_id":"t-0","child_task_ids":["t-2","t/3"],"depends_on":[],"source":"planner","agent_role":"impl","assigned_agent_id":"agent-7",
		"retry_count":0,"created_at":"2026-06-08T11:00:00+02:00","updated_at":"2026-06-08T09:00:00.10Z",
		"usage":{"model_id":"gpt-x","input_tokens":120,"output_tokens":3e1,"total_tokens":150.0},"tool_calls":["read",{"name":"write","arguments":{"text":null}}],"tool_count":9}`
	const stored = `{"agent_role":"impl","assigned_agent_id":"agent-7","channel_id":"42","child_task_ids":["t-2","t/3"],"created_at":"2026-06-08T09:00:00Z","depends_on":[],` +
		`"parent_task_id":"t-0","retry_count":0,"root_task_id":"t-0","source":"planner","tool_count":2,"updated_at":"2026-06-08T09:00:00.10Z",` +
		`"usage":{"input_tokens":120,"model_id":"gpt-x","output_tokens":30,"total_tokens":150},"user_id":"ada"}`
	ada := []string{"X-Agent-User-Id", "ada", "X-Agent-Channel-Id", "42", "X-Agent-Role", "review", "X-Agent-Instance-Id", "agent-9"}
	b.put(t, "/swarm/tasks/t-1", whole, ada...).is(t, http.StatusOK).
		has(t, "schema", "verbatim.execution-ack.v1", "swarm_id", "swarm", "changed", true, "dropped_fields", 0)
	require.Equal(t, "2 "+stored, b.task(t, "t-1"))
	b.put(t, "/swarm/tasks/t-1", whole, ada...).is(t, http.StatusOK).has(t, "changed", false)
	require.Equal(t, "2", b.version(t, id))
	b.put(t, "/swarm/tasks/t-1", `{"parent_task_id":"t-8","root_task_id":"t-9","source":"dynamic_handoff","usage":{},"tool_calls":0,"retry_count":1,"depends_on":null}`).
		is(t, http.StatusOK).has(t, "changed", true)
	require.Equal(t, `3 {"parent_task_id":"t-0","retry_count":1,"root_task_id":"t-0","source":"planner","tool_count":0}`, b.task(t, "t-1"))
	b.put(t, "/swarm/tasks/t-2", `{}`, ada...).is(t, http.StatusOK).has(t, "changed", true)
	require.Equal(t, `4 {"agent_role":"review","channel_id":"42","user_id":"ada"}`, b.task(t, "t-2"))
	b.put(t, "/swarm/tasks/t-2", `{"parent_task_id":"t-1","depends_on":["t-2"]}`).is(t, http.StatusOK) // a cycle is a fact
	b.put(t, "/swarm/tasks/t-3", `{"tool_calls":3.0}`).is(t, http.StatusOK)
	require.Equal(t, `6 {"tool_count":3}`, b.task(t, "t-3"))
	require.Equal(t, []string{
		`1 verbatim.execution.opened.v1 {}`,
		`2 verbatim.execution.task_recorded.v1 {"task_id":"t-1"}`,
		`3 verbatim.execution.task_recorded.v1 {"task_id":"t-1"}`,
		`4 verbatim.execution.task_recorded.v1 {"task_id":"t-2"}`,
		`5 verbatim.execution.task_recorded.v1 {"task_id":"t-2"}`,
		`6 verbatim.execution.task_recorded.v1 {"task_id":"t-3"}`,
	}, b.outbox(t, id))
	require.Equal(t, "3", b.text(t, `select task_count::text from bz_executions where execution_id = $1`, id))
	for _, body := range []string{
		`null`, `[]`, `{"x":1}`, `{"usage":{"cost":1}}`, `{"usage":[]}`, `{"source":"person"}`, `{"retry_count":-1}`, `{"retry_count":1.5}`, `{"retry_count":"1"}`,
		`{"tool_calls":"two"}`, `{"tool_calls":-1}`, `{"tool_calls":{}}`, `{"tool_calls":true}`, `{"tool_count":9007199254740992}`, `{"tool_count":[1]}`, `{"created_at":"now"}`,
		`{"child_task_ids":"t"}`, `{"child_task_ids":[null]}`, `{"depends_on":[1]}`, `{"agent_role":"two words"}`, `{"usage":{"model_id":"` + execShop + `"}}`,
		`{"child_task_ids":[` + strings.Repeat(`"t",`, 10_000) + `"t"]}`,
	} {
		b.put(t, "/swarm/tasks/t-1", body).is(t, http.StatusBadRequest, "invalid_request")
	}
	b.put(t, "/swarm/tasks/t-4", `{"child_task_ids":[`+strings.Repeat(`"t",`, 9_999)+`"t"]}`).is(t, http.StatusOK)
}

func TestAnApprovalIsFrozenOnceItIsDecided(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	approval := func() string {
		return b.text(t, `select version || ' ' || decided || ' ' || facts::text from bz_execution_approvals where approval_id = 'ap/1'`)
	}
	const path = "/swarm/approvals/ap%2F1"
	b.put(t, path, `{"operation":"git.push","risk_level":null}`, "X-Agent-User-Id", "eve").is(t, http.StatusOK).has(t, "changed", true, "dropped_fields", 0)
	require.Equal(t, `2 false {"operation":"git.push"}`, approval())
	b.put(t, path, `{"risk_level":"high"}`).is(t, http.StatusOK).has(t, "changed", true)
	require.Equal(t, `3 false {"risk_level":"high"}`, approval())
	const decided = `{"operation":"git.push","risk_level":"high","decision":"approved","credential_ref":"` + execVaultRef + `","lease_id":"lease-9","scope":"repo:orders",
		"expires_at":"2026-06-09T00:00:00Z","reason":"Checked; password=hunter2 was rotated.","decided_at":"2026-06-08T11:00:05+02:00"}`
	b.put(t, path, decided, "X-Agent-User-Id", "ada", "X-Agent-Channel-Id", "42").is(t, http.StatusOK).has(t, "changed", true)
	const stored = `4 true {"credential_ref":"azkv://vault/orders-db","decided_at":"2026-06-08T09:00:05Z","decided_by":{"channel_id":"42","user_id":"ada"},"decision":"approved",` +
		`"expires_at":"2026-06-09T00:00:00Z","lease_id":"lease-9","operation":"git.push","reason":"Checked; password=[REDACTED] was rotated.","risk_level":"high","scope":"repo:orders"}`
	require.Equal(t, stored, approval())
	b.put(t, path, decided, "X-Agent-User-Id", "bob").is(t, http.StatusOK).has(t, "changed", false)
	for _, other := range []string{`{}`, strings.Replace(decided, "approved", "rejected", 1), strings.Replace(decided, "Checked", "Seen", 1), strings.Replace(decided, `"scope":"repo:orders",`, "", 1)} {
		b.put(t, path, other).is(t, http.StatusConflict, "run_conflict")
	}
	require.Equal(t, stored, approval())
	require.Equal(t, []string{
		`1 verbatim.execution.opened.v1 {}`,
		`2 verbatim.execution.approval_recorded.v1 {"approval_id":"ap/1"}`,
		`3 verbatim.execution.approval_recorded.v1 {"approval_id":"ap/1"}`,
		`4 verbatim.execution.approval_recorded.v1 {"approval_id":"ap/1"}`,
	}, b.outbox(t, id))
	for _, body := range []string{
		`{"decision":"maybe"}`, `{"decision":true}`, `{"credential_ref":"hunter2"}`, `{"credential_ref":"azkv://vault"}`, `{"credential_ref":"https://vault/git"}`, `{"credential_ref":""}`,
		`{"reason":"` + strings.Repeat("r", 513) + `"}`, `{"reason":"\u0000"}`, `{"reason":1}`, `{"decided_at":"now"}`, `{"scope":"two words"}`, `{"lease_id":"` + execShop + `"}`, `{"user":"ada"}`,
	} {
		b.put(t, "/swarm/approvals/ap-2", body).is(t, http.StatusBadRequest, "invalid_request")
	}
}

func TestARevokedGrantStaysSo(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	grant := func() string {
		return b.text(t, `select version || ' ' || revoked || ' ' || facts::text from bz_execution_grants where grant_id = 'g-1'`)
	}
	const active = `{"secret_ref":"` + execVaultRef + `","allowed_actions":["read","repo:push"],"constraints":{"branch":"main","ttl":900,"paths":["a"],"Note":"x","gone":null},
		"expires_at":"2026-06-09T00:00:00Z","status":"active","created_by":"ada","created_at":"2026-06-08T11:00:00+02:00"}`
	b.put(t, "/swarm/grants/g-1", active).is(t, http.StatusOK).has(t, "changed", true, "dropped_fields", 2)
	const stored = `false {"allowed_actions":["read","repo:push"],"constraints":{"branch":"main","ttl":900},"created_at":"2026-06-08T09:00:00Z","created_by":"ada",` +
		`"expires_at":"2026-06-09T00:00:00Z","secret_ref":"azkv://vault/orders-db","status":"active"}`
	require.Equal(t, "2 "+stored, grant())
	b.put(t, "/swarm/grants/g-1", active).is(t, http.StatusOK).has(t, "changed", false)
	b.put(t, "/swarm/grants/g-1", `{"status":"expired"}`).is(t, http.StatusOK).has(t, "changed", true)
	require.Equal(t, `3 false {"status":"expired"}`, grant())
	const revoked = `{"secret_ref":"` + execVaultRef + `","status":"revoked","revoked_by":"bob","revoked_at":"2026-06-08T10:00:00Z"}`
	b.put(t, "/swarm/grants/g-1", revoked).is(t, http.StatusOK).has(t, "changed", true)
	b.put(t, "/swarm/grants/g-1", revoked).is(t, http.StatusOK).has(t, "changed", false)
	for _, other := range []string{active, `{}`, strings.Replace(revoked, "bob", "eve", 1)} {
		b.put(t, "/swarm/grants/g-1", other).is(t, http.StatusConflict, "run_conflict")
	}
	require.Equal(t, `4 true {"revoked_at":"2026-06-08T10:00:00Z","revoked_by":"bob","secret_ref":"azkv://vault/orders-db","status":"revoked"}`, grant())
	require.Equal(t, []string{
		`1 verbatim.execution.opened.v1 {}`,
		`2 verbatim.execution.grant_recorded.v1 {"grant_id":"g-1"}`,
		`3 verbatim.execution.grant_recorded.v1 {"grant_id":"g-1"}`,
		`4 verbatim.execution.grant_recorded.v1 {"grant_id":"g-1"}`,
	}, b.outbox(t, id))
	for _, body := range []string{
		`{"secret_ref":"hunter2"}`, `{"secret_ref":"azkv://vault/a/b"}`, `{"secret_ref":1}`, `{"allowed_actions":[` + strings.Repeat(`"a",`, 64) + `"a"]}`, `{"allowed_actions":["two words"]}`,
		`{"constraints":[]}`, `{"constraints":{"note":"two words"}}`, `{"constraints":{"password":"swordfish"}}`, `{"status":"two words"}`, `{"revoked_at":"now"}`, `{"secret":"x"}`,
	} {
		b.put(t, "/swarm/grants/g-2", body).is(t, http.StatusBadRequest, "invalid_request")
	}
}

func TestCallbackAttemptsKeepNoURL(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	const hook = "https://hooks.example.com/services/T0/B0/zzz?token=x"
	const attempt = `{"attempt_id":"{id}","event_id":"e-1","event_type":"task.completed","url":"` + hook + `","status":502,"attempted_at":"2026-06-08T11:00:03+02:00"}`
	one := func(id string) string { return strings.Replace(attempt, "{id}", id, 1) }
	post := func(attempts ...string) execReply {
		return b.post(t, "/swarm/callback-attempts", `{"attempts":[`+strings.Join(attempts, ",")+`]}`)
	}
	delivered := strings.Replace(one("a-2"), "502", `"delivered"`, 1)
	post(one("a/1"), delivered, one("a/1")).is(t, http.StatusOK).
		has(t, "schema", "verbatim.execution-ack.v1", "swarm_id", "swarm", "accepted", 2, "skipped", 1, "last_position", 2)
	hash := sha256.Sum256([]byte(hook))
	facts := `{"attempted_at":"2026-06-08T09:00:03Z","event_id":"e-1","event_type":"task.completed","host":"hooks.example.com","port":443,"scheme":"https","status":502,"url_sha256":"` +
		hex.EncodeToString(hash[:]) + `"}`
	require.Equal(t, []string{"1 a/1 " + facts, "2 a-2 " + strings.Replace(facts, "502", `"delivered"`, 1)},
		b.texts(t, `select position || ' ' || attempt_id || ' ' || facts::text from bz_execution_callback_attempts order by position`))
	post(one("a/1"), delivered).is(t, http.StatusOK).has(t, "accepted", 0, "skipped", 2, "last_position", 2)
	post(one("a-3"), strings.Replace(one("a/1"), "zzz", "yyy", 1)).is(t, http.StatusConflict, "run_conflict")
	post(one("a-3"), strings.Replace(one("a-3"), "502", "200", 1)).is(t, http.StatusConflict, "run_conflict")
	post(one("a/1"), one("a-3")).is(t, http.StatusOK).has(t, "accepted", 1, "skipped", 1, "last_position", 3)
	require.Equal(t, []string{
		`1 verbatim.execution.opened.v1 {}`,
		`2 verbatim.execution.callbacks_recorded.v1 {"first_position":1,"last_position":2}`,
		`3 verbatim.execution.callbacks_recorded.v1 {"first_position":3,"last_position":3}`,
	}, b.outbox(t, id))
	many := make([]string, 201)
	for i, attemptID := range execIDs("m-", len(many)) {
		many[i] = one(attemptID)
	}
	post(many...).is(t, http.StatusBadRequest, "invalid_request")
	post(many[:200]...).is(t, http.StatusOK).has(t, "accepted", 200, "last_position", 203)
	for _, broken := range []string{
		strings.Replace(one("b"), hook, "hooks.example.com", 1), strings.Replace(one("b"), "https:", "ftp:", 1), strings.Replace(one("b"), "502", "null", 1), strings.Replace(one("b"), "502", "1000", 1),
		strings.Replace(one("b"), "502", `"two words"`, 1), strings.Replace(one("b"), "task.completed", "task", 1), strings.Replace(one("b"), `"event_id":"e-1",`, "", 1), one(""), one("two words"), `null`,
		strings.Replace(one("b"), "{", `{"response":"x",`, 1),
	} {
		post(one("good"), broken).is(t, http.StatusBadRequest, "invalid_request")
	}
	post().is(t, http.StatusBadRequest, "invalid_request")
	require.Equal(t, "203", b.text(t, `select count(*)::text from bz_execution_callback_attempts`))
}
