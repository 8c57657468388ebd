package ingest_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// execCorpus are texts that no execution may keep, each with a part that is found wherever
// any of it is. What looks like a secret is put together here and was never valid.
func execCorpus() map[string]string {
	const tail = "Zk3vQ9xT2mLw8Rb5Yc7Nd1Hf4Jg6Ks0PqAuEiOtV"
	return map[string]string{
		"bhk_" + tail + "abc":                   tail,
		"ghp_" + tail[:36]:                      tail[:36],
		"sk_live_" + strings.ToLower(tail[:24]): strings.ToLower(tail[:24]),
		"AKIA" + "IOSFODNN7" + "EXAMPLE":        "IOSFODNN7",
		"eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P": "eyJzdWIiOiIxMjM0NTY3ODkwIn0",
		"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----":            "MIIEvQIBADANBgkqhkiG9w0B",
		"postgres://ada:swordfish9@db.internal/orders":                                                "swordfish9",
		"password=correcthorse7":                                    "correcthorse7",
		"Authorization: Bearer mF_9B5f41JqMbattery":                 "mF_9B5f41JqMbattery",
		"Please refund the order of Mrs Dalloway today.":            "Dalloway",
		"def refund(order):\n    return kumquat(order)":             "kumquat",
		"User: where is my parcel?\nAssistant: In Quagmire Street.": "Quagmire",
		"请把订单退款给达洛维夫人":                                              "达洛维",
		`{"role":"user","content":"tell me about marzipan"}`:        "marzipan",
	}
}

// execReason is where the redacted words of a person may stand.
const execReason = "reason"

// execBodies are whole bodies of every call.
func execBodies() map[string][2]string {
	const at = `"2026-06-08T09:00:00Z"`
	return map[string][2]string{
		"": {http.MethodPut, `{"manager_deployment_id":"m","deployment_id":"d","correlation_id":"c","run_id":"` + execRunShop + `"}`},
		"/events": {http.MethodPost, `{"events":[{"event_id":"e","event_type":"task.created","occurred_at":` + at + `,"task_id":"t","agent_instance_id":"a","correlation_id":"corr-1",
			"payload":{"status":"s","from_status":"s","to_status":"s","reason_code":"r","error_code":"e","attempt":1,"retry_count":1,"duration_ms":1,"progress":1,"exit_code":1,
			"artifact_id":"a","artifact_type":"t","sha256":"s","bytes":1,"count":1,"tool_count":1,"approval_id":"a","decision":"approved","operation":"o","risk_level":"r","lease_id":"l",
			"secret_ref":"` + execVaultRef + `","handoff_id":"h","from_agent":"f","to_agent":"t","target_role":"t"}}]}`},
		"/tasks/t": {http.MethodPut, `{"parent_task_id":"p","root_task_id":"r","child_task_ids":["c"],"depends_on":["d"],"source":"planner","agent_role":"r","assigned_agent_id":"a","retry_count":1,
			"created_at":` + at + `,"updated_at":` + at + `,"usage":{"model_id":"m","input_tokens":1,"output_tokens":1,"total_tokens":1},"tool_calls":["x"],"tool_count":1}`},
		"/approvals/ap":      {http.MethodPut, `{"operation":"o","risk_level":"r","credential_ref":"` + execVaultRef + `","lease_id":"l","scope":"s","expires_at":` + at + `,"reason":"ok","decided_at":` + at + `}`},
		"/grants/g":          {http.MethodPut, `{"secret_ref":"` + execVaultRef + `","allowed_actions":["a"],"constraints":{"c":"v"},"expires_at":` + at + `,"status":"s","created_by":"c","created_at":` + at + `}`},
		"/callback-attempts": {http.MethodPost, `{"attempts":[{"attempt_id":"a","event_id":"e","event_type":"task.created","url":"https://hooks.example.com/x","status":"s","attempted_at":` + at + `}]}`},
	}
}

// spoil returns v with the text in the place of each of its values, and beside them as an
// undeclared field and as a name, one at a time, by the place.
func spoil(v any, text string) map[string]any {
	spoilt := map[string]any{"": text}
	if strings.Contains(text, " ") { // in a list or an object the form of the text does not matter
		spoilt["{}"], spoilt["[]"] = map[string]any{"text": text}, []any{text}
	}
	add := func(step string, inner any, with func(any) any) {
		for place, value := range spoil(inner, text) {
			spoilt[step+"/"+place] = with(value)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			add(name, inner, func(value any) any { return with(v, name, value) })
		}
		spoilt["+"], spoilt["+name"] = with(v, "note", text), with(v, text, 1)
	case []any:
		add("0", v[0], func(value any) any { return []any{value} })
		spoilt["+"] = []any{v[0], text}
	}
	return spoilt
}

func with(object map[string]any, name string, value any) map[string]any {
	object = maps.Clone(object)
	object[name] = value
	return object
}

// secretsAndProse sends every text of the corpus in every place of every call, and returns
// how many requests of what answer there were.
func (b *execBundle) secretsAndProse(t *testing.T) map[int]int {
	t.Helper()
	type request struct{ method, path, body, header, value string }
	requests := make(chan request)
	answers := map[int]int{}
	var mu sync.Mutex
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for r := range requests {
				headers := []string{}
				if r.header != "" {
					headers = append(headers, r.header, r.value)
				}
				reply, err := b.send(t.Context(), r.method, "/runtime-api/v1/runs/"+r.path, r.body, headers...)
				mu.Lock()
				answers[reply.status]++
				mu.Unlock()
				if err != nil || !slices.Contains([]int{200, 201, 400, 404, 409}, reply.status) {
					t.Errorf("%s %s: %d, %v", r.method, r.path, reply.status, err)
				}
			}
		})
	}
	n := 0
	for text := range execCorpus() {
		escaped := url.PathEscape(text)
		for path, call := range execBodies() {
			var whole any
			require.NoError(t, json.Unmarshal([]byte(call[1]), &whole))
			for place, body := range spoil(whole, text) {
				if place == execReason+"/" {
					continue
				}
				raw, err := json.Marshal(body)
				require.NoError(t, err)
				n++
				swarm := "swarm"
				if path == "" {
					swarm = fmt.Sprint("new-", n)
				}
				// Another id each time, so that nothing is turned away as known or frozen.
				sent := strings.NewReplacer(`"event_id":"e"`, fmt.Sprintf(`"event_id":"e-%d"`, n), `"attempt_id":"a"`, fmt.Sprintf(`"attempt_id":"a-%d"`, n)).Replace(string(raw))
				requests <- request{call[0], swarm + path, sent, "", ""}
			}
			requests <- request{call[0], escaped + path, call[1], "", ""}
			if i := strings.LastIndexByte(path, '/'); i > 0 {
				requests <- request{call[0], "swarm" + path[:i+1] + escaped, call[1], "", ""}
			}
			if !strings.Contains(text, "\n") {
				for _, header := range []string{"X-Agent-User-Id", "X-Agent-Channel-Id", "X-Agent-Role", "X-Agent-Instance-Id", "X-Agent-Task-Id", "Traceparent"} {
					requests <- request{call[0], "swarm" + path, call[1], header, text}
				}
			}
		}
		for _, hook := range []string{"https://hooks.example.com/" + escaped, "https://hooks.example.com?q=" + escaped, "https://" + escaped + "@hooks.example.com/#" + escaped, "https://" + escaped} {
			n++
			requests <- request{http.MethodPost, "swarm/callback-attempts", fmt.Sprintf(`{"attempts":[{"attempt_id":"u-%d","event_id":"e","event_type":"task.created",
				"url":%q,"status":200,"attempted_at":"2026-06-08T09:00:00Z"}]}`, n, hook), "", ""}
		}
	}
	close(requests)
	senders.Wait()
	return answers
}

// No prose, code, dialogue, body or secret gets through, in whatever field, name, header or
// id it stands: it is refused, or dropped and counted, and is nowhere afterwards.
func TestExecutionsKeepMetadataOnly(t *testing.T) {
	t.Parallel()
	b := execSetup(t, 0)
	b.open(t)
	answers := b.secretsAndProse(t)
	t.Logf("answers: %v", answers)
	require.NotZero(t, answers[http.StatusOK], "what is dropped is taken")
	require.NotZero(t, answers[http.StatusBadRequest])

	// The reason of an approval is the one place for words, and they are redacted.
	for i, text := range slices.Sorted(maps.Keys(execCorpus())) {
		body, err := json.Marshal(map[string]string{"reason": "Wisteria said: " + text, "decision": "approved"})
		require.NoError(t, err)
		b.put(t, "/swarm/approvals/reason-"+strconv.Itoa(i), string(body)).is(t, http.StatusOK)
	}

	found := map[string][]string{}
	for _, table := range b.texts(t, `select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`) {
		rows := strings.Join(b.texts(t, `select x::text from `+table+` x`), "\n")
		for _, needle := range append(slices.Collect(maps.Values(execCorpus())), "Wisteria", "corr-1", execShop) {
			if strings.Contains(rows, needle) || strings.Contains(rows, fmt.Sprintf("%x", needle)) {
				found[needle] = append(found[needle], table)
			}
		}
	}
	words := []string{"Dalloway", "kumquat", "Quagmire", "达洛维", "marzipan"}
	for _, word := range append(words, "Wisteria") {
		require.Equal(t, []string{"bz_execution_approvals"}, found[word], "%s may stand in a reason only", word)
		require.Equal(t, "true", b.text(t, `select bool_and(not (facts::jsonb - 'reason')::text like '%'||$1||'%')::text from bz_execution_approvals`, word))
		delete(found, word)
	}
	require.Equal(t, []string{"bz_executions"}, found["corr-1"], "what is stored is found")
	delete(found, "corr-1")
	require.Empty(t, found)

	log := b.log.String()
	require.Contains(t, log, "/runtime-api/v1/runs/:swarm_id/events", "the log names routes")
	for text, needle := range execCorpus() {
		require.NotContains(t, log, needle)
		require.NotContains(t, log, url.PathEscape(text))
	}
	require.NotContains(t, log, execShop)
	require.NotContains(t, log, "Wisteria")
}
