package ingest_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnExecutionIsOpenedOnce(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	const body = `{"manager_deployment_id":"mgr-1","deployment_id":null,"correlation_id":"corr-1","run_id":"` + execRunShop + `"}`
	opened := b.put(t, "/swarm-1", body, "X-Agent-User-Id", "ada@example.com", "X-Agent-Channel-Id", "42").is(t, http.StatusCreated)
	require.Equal(t, map[string]any{
		"schema": "verbatim.execution.v1", "swarm_id": "swarm-1", "run_id": execRunShop, "last_position": 0.0, "created_at": opened.body["created_at"],
		"lineage": map[string]any{"manager_deployment_id": "mgr-1", "deployment_id": nil, "swarm_id": "swarm-1", "correlation_id": "corr-1"},
	}, opened.body)
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, opened.body["created_at"])

	again := b.put(t, "/swarm-1", body, "X-Agent-User-Id", "bob").is(t, http.StatusOK)
	require.Equal(t, opened.raw, again.raw)
	b.put(t, "/swarm-1", strings.Replace(body, `"deployment_id":null,`, "", 1)).is(t, http.StatusOK) // a null is absent
	b.put(t, "/swarm-1", strings.Replace(body, "223e", "223E", 1)).is(t, http.StatusOK)              // one UUID, two spellings
	for _, other := range []string{
		`{}`, strings.Replace(body, "mgr-1", "mgr-2", 1), strings.Replace(body, "corr-1", "corr-2", 1),
		strings.Replace(body, `"deployment_id":null`, `"deployment_id":"d"`, 1), strings.Replace(body, `,"run_id":"`+execRunShop+`"`, "", 1),
	} {
		b.put(t, "/swarm-1", other).is(t, http.StatusConflict, "run_conflict")
	}

	id := b.text(t, `select execution_id::text from bz_executions where client_app_id = 'shop' and user_id = 'ada@example.com' and channel_id = '42'`)
	require.Equal(t, []string{`1 verbatim.execution.opened.v1 {}`}, b.outbox(t, id))
	require.Equal(t, "1", b.version(t, id))

	b.put(t, "/bare", `{}`).is(t, http.StatusCreated).has(t, "run_id", nil)
}

func TestParallelOpeningsGiveOneExecution(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	const rivals = 12
	replies := make([]execReply, rivals)
	var wg sync.WaitGroup
	for i := range rivals {
		wg.Go(func() {
			replies[i], _ = b.send(t.Context(), http.MethodPut, "/runtime-api/v1/runs/swarm", `{"deployment_id":"d"}`)
		})
	}
	wg.Wait()
	created := 0
	for _, r := range replies {
		if r.status == http.StatusCreated {
			created++
		} else {
			r.is(t, http.StatusOK)
		}
		require.Equal(t, replies[0].raw, r.raw)
	}
	require.Equal(t, 1, created)
	require.Equal(t, "1", b.text(t, `select count(*)::text from bz_executions`))
}

func TestARunOfTheClientIsLinked(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	b.put(t, "/s", `{"run_id":"`+execRunCRM+`"}`).is(t, http.StatusConflict, "run_conflict")
	b.put(t, "/s", `{"run_id":"223e4567-e89b-42d3-a456-4266141740ff"}`).is(t, http.StatusConflict, "run_conflict")
	b.put(t, "/s", `{"run_id":"run-1"}`).is(t, http.StatusBadRequest, "invalid_request")
	require.Equal(t, "0", b.text(t, `select count(*)::text from bz_executions`))
	b.put(t, "/s", `{"run_id":"`+execRunShop+`"}`).is(t, http.StatusCreated)
	b.put(t, "/also", `{"run_id":"`+execRunShop+`"}`).is(t, http.StatusCreated) // a run may lead to several
	b.as(execCRM).put(t, "/s", `{"run_id":"`+execRunCRM+`"}`).is(t, http.StatusCreated)
}

// writes are all calls but the opening.
func execWrites() map[string][2]string {
	return map[string][2]string{
		"/events":            {http.MethodPost, `{"events":[{"event_id":"e","event_type":"task.created","occurred_at":"2026-06-08T09:00:00Z"}]}`},
		"/tasks/t-1":         {http.MethodPut, `{"agent_role":"impl"}`},
		"/approvals/ap-1":    {http.MethodPut, `{"operation":"git.push"}`},
		"/grants/g-1":        {http.MethodPut, `{"secret_ref":"` + execVaultRef + `"}`},
		"/callback-attempts": {http.MethodPost, `{"attempts":[{"attempt_id":"a","event_id":"e","event_type":"task.created","url":"https://a.example/x","status":200,"attempted_at":"2026-06-08T09:00:00Z"}]}`},
	}
}

func TestOtherClientsExecutionsDoNotExist(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	b.open(t)
	for path, write := range execWrites() {
		for _, swarm := range []string{"/unknown", "/two%20words", "/%00", "/%FF", "/" + strings.Repeat("s", 129), "/" + execShop} {
			b.call(t, write[0], swarm+path, write[1]).is(t, http.StatusNotFound, "run_not_found")
		}
		b.as(execCRM).call(t, write[0], "/swarm"+path, write[1]).is(t, http.StatusNotFound, "run_not_found")
		b.call(t, write[0], "/swarm"+path, write[1]).is(t, http.StatusOK)
	}
	b.as(execCRM).put(t, "/swarm", `{}`).is(t, http.StatusCreated) // its own, of the same name
	require.Equal(t, "2", b.text(t, `select count(*)::text from bz_executions`))
	require.Equal(t, "6", b.text(t, `select stream_version::text from bz_executions where client_app_id = 'shop'`))
}

func TestOnlyAnEnabledClientTells(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	b.open(t)
	for _, token := range []string{"", execClosed, "bhk_" + strings.Repeat("z", 43), "bha_" + strings.Repeat("s", 43), execShop + "x"} {
		b.as(token).put(t, "/swarm", `{}`).is(t, http.StatusUnauthorized, "unauthorized")
		for path, write := range execWrites() {
			r := b.as(token).call(t, write[0], "/swarm"+path, write[1]).is(t, http.StatusUnauthorized, "unauthorized")
			require.Equal(t, "Bearer", r.header.Get("WWW-Authenticate"))
		}
	}
}

// A client that is disabled while its call waits is turned away by the locks.
func TestAClientIsDisabledBetweenItsTokenAndItsWrite(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	id := b.open(t)
	calls := execWrites()
	calls[""] = [2]string{http.MethodPut, `{"correlation_id":"corr-1"}`}
	for path, write := range calls {
		tx, err := b.owner.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `update bz_clients set enabled = false where app_id = 'shop'`)
		require.NoError(t, err)
		answered := make(chan execReply)
		go func() {
			r, _ := b.send(t.Context(), write[0], "/runtime-api/v1/runs/swarm"+path, write[1])
			answered <- r
		}()
		require.Eventually(t, func() bool {
			return b.text(t, `select exists (select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database()))::text`) == "true"
		}, execPatience, execTick)
		require.NoError(t, tx.Commit(t.Context()))
		(<-answered).is(t, http.StatusUnauthorized, "unauthorized")
		b.exec(t, `update bz_clients set enabled = true where app_id = 'shop'`)
	}
	require.Equal(t, "1", b.version(t, id))
}

func TestIDsInPathsAreEscaped(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	b.put(t, "/team%2Fswarm+1%3A%40x", `{}`).is(t, http.StatusCreated).has(t, "swarm_id", "team/swarm+1:@x")
	b.put(t, "/team%2fswarm+1:@x", `{}`).is(t, http.StatusOK)
	b.put(t, "/team%2Fswarm%2B1:@x/tasks/t%2F1+a", `{"agent_role":"impl"}`).is(t, http.StatusOK).has(t, "swarm_id", "team/swarm+1:@x", "changed", true)
	b.put(t, "/team%2Fswarm+1:@x/tasks/t%2F1%2Ba", `{"agent_role":"impl"}`).is(t, http.StatusOK).has(t, "changed", false)
	b.put(t, "/team%2Fswarm+1:@x/approvals/a%2F..%2Fb", `{}`).is(t, http.StatusOK)
	b.put(t, "/team%2Fswarm+1:@x/grants/%67%2D1", `{}`).is(t, http.StatusOK)
	require.Equal(t, []string{"a/../b", "g-1", "t/1+a", "team/swarm+1:@x"},
		b.texts(t, `select task_id from bz_execution_tasks union select approval_id from bz_execution_approvals union select grant_id from bz_execution_grants
			union select swarm_id from bz_executions order by 1`))
	b.put(t, "/a%2520b", `{}`).is(t, http.StatusBadRequest, "invalid_request") // unescaped once
	b.put(t, "/team/swarm", `{}`).is(t, http.StatusNotFound, "not_found")
	b.put(t, "/", `{}`).is(t, http.StatusNotFound, "not_found")
	b.put(t, "/x/", `{}`).is(t, http.StatusNotFound, "not_found")
	b.post(t, "/x", `{}`).is(t, http.StatusNotFound, "not_found")
	b.call(t, http.MethodGet, "/x", ``).is(t, http.StatusNotFound, "not_found")
	for _, path := range []string{"", "/..", "/%2E%2E%2F"} {
		r, err := b.send(t.Context(), http.MethodGet, "/runtime-api/v1"+path, "")
		require.NoError(t, err)
		r.is(t, http.StatusNotFound, "not_found")
	}
	// Other surfaces take their paths as before.
	r, err := b.send(t.Context(), http.MethodGet, "/agent%2Dapi/v1/conversation%2daudits/capabilities", "")
	require.NoError(t, err)
	r.is(t, http.StatusUnauthorized, "unauthorized")
	r, err = b.send(t.Context(), http.MethodGet, "/health%7A", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.status)
}

func TestIDsAndOpeningsHaveTheirForms(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	for _, swarm := range []string{"two%20words", "-x", "%00", "%FF", "%ff%fe", "caf%C3%A9", strings.Repeat("s", 129), execShop, "a%0Ab", "postgres:%2F%2Fada:hunter2@db"} {
		b.put(t, "/"+swarm, `{}`).is(t, http.StatusBadRequest, "invalid_request")
	}
	b.open(t)
	for _, kind := range []string{"tasks", "approvals", "grants"} {
		for _, id := range []string{"two%20words", "%00", "%FF", strings.Repeat("s", 129), execShop} {
			b.put(t, "/swarm/"+kind+"/"+id, `{}`).is(t, http.StatusBadRequest, "invalid_request")
		}
		b.put(t, "/swarm/"+kind+"/"+strings.Repeat("s", 128), `{}`).is(t, http.StatusOK)
	}
	for _, body := range []string{
		``, `null`, `[]`, `"x"`, `{`, `{}x`, `{"swarm_id":"s"}`, `{"Deployment_id":"d"}`, `{"deployment_id":1}`, `{"deployment_id":"a","deployment_id":"a"}`,
		`{"deployment_id":"two words"}`, `{"deployment_id":""}`, `{"correlation_id":"\ud800"}`, "{\"correlation_id\":\"\xff\"}", `{"manager_deployment_id":"` + execShop + `"}`, `{"run_id":""}`,
	} {
		b.put(t, "/new", body).is(t, http.StatusBadRequest, "invalid_request")
	}
	r := b.put(t, "/new", `{}`, "Content-Encoding", "gzip")
	r.is(t, http.StatusUnsupportedMediaType, "unsupported_media_type")
}

func TestExecutionsWaitForTheirMigration(t *testing.T) {
	t.Parallel()
	for _, version := range []int64{61, 58} {
		b := execSetup(t, version)
		r := b.put(t, "/swarm", `{}`).is(t, http.StatusServiceUnavailable, "runs_unavailable")
		require.Empty(t, r.header.Get("Retry-After"))
		b.put(t, "/swarm", `{"run_id":"`+execRunShop+`"}`).is(t, http.StatusServiceUnavailable, "runs_unavailable")
		for path, write := range execWrites() {
			b.call(t, write[0], "/swarm"+path, write[1]).is(t, http.StatusServiceUnavailable, "runs_unavailable")
		}
	}
}
