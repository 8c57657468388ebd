package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/runv1"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest"
)

// everything returns what is in all text-like columns of all of the database's tables.
func (b *runsBundle) everything(t *testing.T) string {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), b.db.AdminDSN)
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	rows, err := admin.Query(t.Context(), `select format('select coalesce(string_agg(%1$I::text, E''\n''), '''') from %2$I.%3$I', column_name, table_schema, table_name)
		from information_schema.columns join information_schema.tables using (table_schema, table_name)
		where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`)
	require.NoError(t, err)
	queries, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(queries), 100)
	var all strings.Builder
	for _, query := range queries {
		var column string
		require.NoError(t, admin.QueryRow(t.Context(), query).Scan(&column), query)
		all.WriteString(column + "\n")
	}
	return all.String()
}

func TestNoTextOfARunIsStored(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	opened := wantRuns(t, b.post(t, runsTurns, runsA, `{"client_conversation_id":"kept-conv","client_turn_id":"kept-turn","user_message_id":"kept-message",
		"user_input":"canary input","page_context":{"canary name":"canary context","n":{"m":["canary deep"]}},"renderers":["canary.renderer"]}`))
	id := opened.text("run_id")
	wantRuns(t, b.post(t, "/runs/"+id+"/trace-events", runsA, traceBody(
		traceEvent("kept-event", `,"metadata":{"tool":"kept-tool","path":"/kept?canary=query#canary","prompt":"canary prompt","scope":["canary list"],
			"state":{"canary":"object"},"decision":"canary decision","canary":1}`))))
	refusedRuns(t, b.post(t, "/runs/"+id+"/trace-events", runsA, traceBody(traceEvent("e", `,"metadata":{"tool":"canary refused"}`))), http.StatusBadRequest, "invalid_request")
	wantRuns(t, b.post(t, "/runs/"+id+"/complete", runsA, `{"assistant_message_id":"kept-answer","status":"completed","content":"canary content","model":"kept-model"}`))
	refusedRuns(t, b.post(t, runsTurns, runsA, turnBody("kept-conv", "kept-turn")), http.StatusConflict, "turn_conflict")

	all := b.everything(t)
	for _, kept := range []string{"kept-conv", "kept-turn", "kept-message", "kept-event", "kept-tool", "/kept", "kept-answer", "kept-model", "Never</b> guess."} {
		require.Contains(t, all, kept)
	}
	require.NotContains(t, all, "canary")
	require.NotContains(t, all, runsA)
}

func TestWhatIsWrittenOfARunReachesTheReceiver(t *testing.T) {
	t.Parallel()
	local := transport.NewLocal(nil)
	receiver := receive(context.Background(), t, local)
	b := setupRunsWith(t, 0, runsRegistry, local)
	opened := wantRuns(t, b.post(t, runsTurns, runsA, wholeTurn))
	id := opened.text("run_id")
	wantRuns(t, b.post(t, "/runs/"+id+"/trace-events", runsA, manyEvents("e", 3)))
	wantRuns(t, b.post(t, "/runs/"+id+"/trace-events", runsA, manyEvents("e", 4)))
	wantRuns(t, b.post(t, "/runs/"+id+"/complete", runsA, wholeCompletion))
	events := receiver.stream(t, id, 4)
	for i, want := range []string{runv1.TypeRecorded, runv1.TypeTraceRecorded, runv1.TypeTraceRecorded, runv1.TypeCompleted} {
		require.Equal(t, want, events[i].Type)
		require.Equal(t, int64(i+1), events[i].StreamVersion)
	}
	recorded, err := runv1.Unmarshal[runv1.Run](events[0].Data)
	require.NoError(t, err)
	require.Equal(t, int64(opened.thread()), recorded.ThreadID)
	traced, err := runv1.Unmarshal[runv1.TraceRecorded](events[2].Data)
	require.NoError(t, err)
	require.Len(t, traced.Events, 1)
	require.Equal(t, "e-3", traced.Events[0].EventID)
	require.Equal(t, 4, traced.Events[0].Position)
	completed, err := runv1.Unmarshal[runv1.Completed](events[3].Data)
	require.NoError(t, err)
	require.Equal(t, "vendor/model-4.5", completed.Model)
	require.Equal(t, int64(300), *completed.Usage.OutputTokens)
}

func TestWithoutItsTablesTheSurfaceOfRunsSaysSoAndArchivesGoOn(t *testing.T) {
	t.Parallel()
	for _, version := range []int64{58, 60} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			registry := runsRegistry
			if version < 59 {
				registry = strings.Replace(registry, `, instructions: "Answer in short sentences.\n<b>Never</b> guess."`, "", 1)
			}
			b := setupRunsWith(t, version, registry, deaf{})
			calls := map[string]string{
				runsTurns:                         wholeTurn,
				"/runs/" + run1 + "/complete":     wholeCompletion,
				"/runs/" + run1 + "/trace-events": manyEvents("e", 1),
			}
			unavailable := func(r runsReply) {
				t.Helper()
				refusedRuns(t, r, http.StatusServiceUnavailable, "runs_unavailable")
				require.Empty(t, r.header.Get("Retry-After"))
			}
			for range 2 {
				for path, body := range calls {
					unavailable(b.post(t, path, runsA, body))
				}
				unavailable(b.get(t, "/workspaces", runsA))
				unavailable(b.get(t, "/workspaces/orders/bootstrap", runsA))
			}
			archived := wantRuns(t, b.post(t, "/conversation-audits", runsA, archiveV1("conv")))
			_, err := ingest.MigrateUp(t.Context(), config.Secret(b.db.OwnerDSN), 0)
			require.NoError(t, err)
			// The service that runs notices.
			wantRuns(t, b.get(t, "/workspaces", runsA))
			wantRuns(t, b.post(t, runsTurns, runsA, wholeTurn))
			require.Equal(t, archived.raw, wantRuns(t, b.post(t, "/conversation-audits", runsA, archiveV1("conv"))).raw)
		})
	}
}

func archiveV1(conversation string) string {
	return `{"client_archive_id":"323e4567-e89b-42d3-a456-426614174001","client_conversation_id":"` + conversation + `",
		"route":"orders","member_session_ids":["` + runsSessionA + `"]}`
}

func archiveV2(conversation string) string {
	return `{"schema":"bailing.agent-conversation-audit-create.v2","client_archive_id":"323e4567-e89b-42d3-a456-426614174002",
		"client_conversation_id":"` + conversation + `","members":[{"session_id":"` + runsSessionA + `","client_app_id":"shop","route":"orders"},
		{"session_id":"` + runsSessionD + `","client_app_id":"crm","route":"other"}]}`
}

func TestARunThatAnAgentOpenedIsLinkedInAnArchive(t *testing.T) {
	t.Parallel()
	b := setupRuns(t)
	link := func(sequence int, run, member string) string {
		return fmt.Sprintf(`{"event_id":"e%d","sequence":%d,"client_turn_id":"t1","kind":"run_link","run_id":%q,"member_session_id":%q}`, sequence, sequence, run, member)
	}
	const start = `{"event_id":"e1","sequence":1,"client_turn_id":"t1","kind":"turn_start"}`

	v1 := wantRuns(t, b.post(t, "/conversation-audits", runsA, archiveV1("conv-1"))).text("conversation_id")
	first := wantRuns(t, b.post(t, runsTurns, runsA, turnBody("conv-1", "t1")))
	wantRuns(t, b.post(t, "/conversation-audits/"+v1+"/events", runsA, `{"events":[`+start+`,`+link(2, first.text("run_id"), runsSessionA)+`]}`))
	require.Equal(t, []string{fmt.Sprint(first.thread())},
		b.rows(t, `select thread_id::text from bz_agent_conversation_events where run_id = $1`, first.text("run_id")))

	v2 := wantRuns(t, b.post(t, "/conversation-audits", runsA, archiveV2("conv-2"))).text("conversation_id")
	wantRuns(t, b.post(t, "/conversation-audits/"+v2+"/confirm", runsD, `{}`))
	own := wantRuns(t, b.post(t, runsTurns, runsA, turnBody("conv-2", "t1"))).text("run_id")
	theirs := wantRuns(t, b.post(t, "/workspaces/other/turns", runsD, turnBody("conv-2", "t1"))).text("run_id")
	foreign := wantRuns(t, b.post(t, "/workspaces/orders/turns", runsD, turnBody("conv-2", "t1"))).text("run_id")
	wantRuns(t, b.post(t, "/runs/"+theirs+"/complete", runsD, wholeCompletion))
	wantRuns(t, b.post(t, "/conversation-audits/"+v2+"/events", runsA,
		`{"events":[`+start+`,`+link(2, own, runsSessionA)+`,`+link(3, theirs, runsSessionD)+`]}`))
	// A run of another route than the member's is none of the archive's.
	refusedRuns(t, b.post(t, "/conversation-audits/"+v2+"/events", runsA, `{"events":[`+link(4, foreign, runsSessionD)+`]}`),
		http.StatusConflict, "conversation_audit_conflict")
	wantRuns(t, b.post(t, "/runs/"+own+"/complete", runsA, wholeCompletion))
}
