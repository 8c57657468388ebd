package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/ingest"
	"verbatim.internal/sql"
)

// Everything that changes is recorded, sent, and says nothing that it must not.
func TestChangesAreRecordedAndSentWithoutSecrets(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	const given = "bhk_GGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGG"
	secrets := []string{tokenA, tokenB, shopToken, controller, onlooker, given, "secret-tenant", "secret-role", "op-9", "a:op", "secret instructions", "secret-page"}

	c.do(t, http.StatusCreated, http.MethodPut, "/clients/crm", `{"name":"CRM","token":"`+given+`","allowed_routes":["*"],"agent_authorize_url":"https://secret-page.example/"}`)
	secrets = append(secrets,
		c.do(t, http.StatusOK, http.MethodPost, "/clients/crm/token", `{}`).text(t, "token"),
		c.do(t, http.StatusCreated, http.MethodPut, "/clients/made", `{"name":"Made"}`).text(t, "token"))
	c.do(t, http.StatusCreated, http.MethodPut, "/routes/returns", `{"name":"Returns","instructions":"secret instructions","audience":{"enabled":true,"roles":["secret-role"]}}`)
	c.do(t, http.StatusOK, http.MethodPut, "/routes/returns", `{"name":"Returns","instructions":"more secret instructions"}`)
	session := c.do(t, http.StatusCreated, http.MethodPost, "/sessions", issued(""))
	secrets = append(secrets, session.text(t, "access_token"))
	c.do(t, http.StatusOK, http.MethodPost, "/sessions/"+session.text(t, "session", "session_id")+"/revoke", `{}`)
	c.do(t, http.StatusOK, http.MethodPost, "/runs", `{"runs":[`+imported()+`]}`)
	c.refused(t, http.StatusConflict, "registry_conflict", http.MethodPut, "/clients/thief", `{"name":"Thief","token":"`+shopToken+`"}`)

	found := changes(t, c.admin, 0)
	require.Len(t, found, 15, "7 of the file, 8 over HTTP")
	for i, change := range found {
		want := []string{"operator", ""}
		if i >= 7 {
			want = []string{"controller", "ops"}
		}
		require.Equal(t, want, []string{change.ActorKind, change.ActorName})

		events := c.receiver.stream(t, change.ID, 1)
		require.Len(t, events, 1)
		require.Equal(t, registryv1.TypeRecorded, events[0].Type)
		require.Equal(t, int64(1), events[0].StreamVersion)
		sent, err := registryv1.Unmarshal(events[0].Data)
		require.NoError(t, err)
		require.Equal(t, change.Number, sent.Number)
		require.Equal(t, change.Name, sent.Name)
		require.Len(t, sent.Changes, strings.Count(change.Changes, `"field"`))
	}
	require.JSONEq(t, `[{"field":"name","from":null,"to":"CRM"},{"field":"allowed_routes","from":null,"to":["*"]},{"field":"enabled","from":null,"to":true}]`,
		found[7].Changes, "of a new entry every value that may be shown is")
	require.Equal(t, []string{"audience", "instructions"}, found[11].Fields)
	require.Equal(t, `[]`, found[11].Changes)

	var rows string
	require.NoError(t, c.admin.QueryRow(t.Context(), `select string_agg(r::text, '') from bz_registry_changes r`).Scan(&rows))
	logs := c.logs.String()
	for _, secret := range secrets {
		require.NotContains(t, rows, secret)
		require.NotContains(t, logs, secret)
	}
	require.Contains(t, logs, "/control-api/v1/clients/:app_id/token", "the log names routes")
}

// Changes of one entry have numbers in the order of their commits: each begins where the
// one before ended.
func TestParallelPutsOfOneClientAreNumberedInCommitOrder(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	before := last(t, c.admin)
	const puts = 24
	var all sync.WaitGroup
	failed := make(chan string, puts)
	for i := range puts {
		all.Go(func() {
			body := fmt.Sprintf(`{"name":"Shop %d","allowed_routes":["orders","route-%d"],"enabled":%t}`, i, i%5, i%2 == 0)
			r, err := ask(t.Context(), http.MethodPut, c.service.ControlURL()+"/control-api/v1/clients/shop", controller, body)
			if err != nil || r.status != http.StatusOK {
				failed <- fmt.Sprint(r.raw, err)
			}
		})
	}
	all.Wait()
	close(failed)
	for problem := range failed {
		t.Error(problem)
	}
	found := changes(t, c.admin, before)
	require.Len(t, found, puts)
	now := map[string]string{"name": `"Shop"`, "allowed_routes": `["orders"]`, "enabled": `true`}
	for _, change := range found {
		sent, err := registryv1.Unmarshal(c.receiver.stream(t, change.ID, 1)[0].Data)
		require.NoError(t, err)
		require.Equal(t, change.Number, sent.Number)
		for _, field := range sent.Changes {
			require.Equal(t, now[field.Field], string(field.From), "the change before is the one committed before")
			now[field.Field] = string(field.To)
		}
	}
	client := c.do(t, http.StatusOK, http.MethodGet, "/clients/shop", "")
	require.Equal(t, now["name"], fmt.Sprintf("%q", client.text(t, "client", "name")))
}

// The file's door works before and after each migration.
func TestApplyOnEveryState(t *testing.T) {
	t.Parallel()
	const withInstructions = "name: Orders, instructions: 'Be kind.',"
	for _, tc := range []struct {
		version          int64
		records, threads bool
	}{{2, false, false}, {58, false, false}, {59, true, false}, {60, true, false}, {61, true, true}, {0, true, true}} {
		t.Run(fmt.Sprint(tc.version), func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, database.Ingest, sql.FS, tc.version)
			conn := connect(t, db.AdminDSN)
			apply := func(file string) (ingest.Result, error) {
				return ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(file))
			}
			result, err := apply(registry)
			require.NoError(t, err)
			require.Equal(t, map[string]int{"created": 5}, actions(result))
			result, err = apply(registry)
			require.NoError(t, err)
			require.Equal(t, map[string]int{"unchanged": 5}, actions(result))
			result, err = apply(strings.Replace(registry, "name: Orders", "name: All orders", 1))
			require.NoError(t, err)
			require.Equal(t, map[string]int{"unchanged": 4, "updated": 1}, actions(result))
			outbox := count(t, conn, `select count(*) from outbox`)

			for _, file := range []string{controllers, strings.Replace(registry, "name: Orders,", withInstructions, 1)} {
				_, err := apply(file)
				if tc.records {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, "need the migration 059_registry_changes.sql")
				}
			}
			if !tc.records {
				require.EqualValues(t, 1, outbox, "the run's")
				return
			}
			found := changes(t, conn, 0)
			require.EqualValues(t, 7, outbox, "the run's, and one of each change so far")
			require.Len(t, found, 10)
			require.EqualValues(t, 10, count(t, conn, `select count(*) from outbox where stream_kind = 'registry_change' and version = 1
				and type = $1 and stream_id in (select change_id::text from bz_registry_changes)`, registryv1.TypeRecorded))
			require.JSONEq(t, `[{"field":"name","from":"Orders","to":"All orders"}]`, found[5].Changes)
			require.Equal(t, []string{"instructions"}, found[9].Fields)
			if tc.threads {
				require.EqualValues(t, 1, count(t, conn, `select count(*) from bz_agent_threads where thread_id = 101 and client_conversation_id = 'conv'`))
				_, err := apply(strings.NewReplacer("223e4567", "223e4568", "thread_id: 101", "thread_id: 102").Replace(registry))
				require.ErrorContains(t, err, "run 223e4568-e89b-42d3-a456-426614174001 has a thread_id, and its conversation has another thread")
			}
		})
	}
}

func TestARevocationByFileIsRecordedAsOne(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	conn := connect(t, db.AdminDSN)
	apply := func(file string) ingest.Result {
		t.Helper()
		r, err := ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(file))
		require.NoError(t, err)
		return r
	}
	apply(registry)
	before := last(t, conn)
	revoked := apply(strings.Replace(registry, "device_label: one,", "device_label: other, revoked_at: 2026-01-01T00:00:00Z,", 1))
	require.Equal(t, map[string]int{"unchanged": 4, "revoked": 1}, actions(revoked))
	apply(strings.Replace(registry, tokenB, "bha_ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ", 1))
	found := changes(t, conn, before)
	require.Len(t, found, 3)
	require.Equal(t, "revoked", found[0].Action)
	require.Equal(t, []string{"device_label", "revoked_at"}, found[0].Fields)
	require.JSONEq(t, `[{"field":"revoked_at","from":null,"to":"2026-01-01T00:00:00.000Z"}]`, found[0].Changes)
	require.Equal(t, []string{"device_label"}, found[1].Fields, "what is revoked stays so")
	require.Equal(t, []string{"access_token"}, found[2].Fields)
	require.Equal(t, `[]`, found[2].Changes)
}
