package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/contracts/runv1"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest/internal/adapters/outbox"
	"verbatim.internal/sql"
)

const (
	sessionID = "123e4567-e89b-42d3-a456-426614174001"
	runID     = "223e4567-e89b-42d3-a456-426614174001"
	jobID     = "323e4567-e89b-42d3-a456-426614174001"
	changeID  = "523e4567-e89b-42d3-a456-426614174001"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 890123000, time.UTC)

func ptr[T any](v T) *T { return &v }

func exec(t *testing.T, db execer, statement string, args ...any) {
	t.Helper()
	_, err := db.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

// putRun writes a run as ingest would, at a version of its stream.
func putRun(t *testing.T, db execer, version int) runv1.Run {
	t.Helper()
	exec(t, db, `insert into bz_clients values ('crm-demo', 'CRM', null, '{customers}', true, $1, $1)`, at)
	exec(t, db, `insert into bz_agent_sessions values ($1, 'crm-demo', 'device', '{}', '', '{customers}', $2, null, $2, $2)`, sessionID, at)
	exec(t, db, `insert into bz_agent_client_runs values ($1, $2, 'crm-demo', 'customers', 101, 'conv-1', 'turn-1', $3, $4)`, runID, sessionID, version, at)
	return runv1.Run{
		RunID: runID, SessionID: sessionID, ClientAppID: "crm-demo", RouteKey: "customers", ThreadID: 101,
		ClientConversationID: "conv-1", ClientTurnID: "turn-1", CreatedAt: at,
	}
}

func putCompletion(t *testing.T, db execer) runv1.Completed {
	t.Helper()
	exec(t, db, `insert into bz_agent_run_completions values
		($1, 101, 'message-1', sha256('request'), sha256('content'), 'completed', 'model-4.1', null, '{"cost_usd":0.0125,"total_tokens":1200}', $2)`,
		runID, at.Add(time.Second))
	return runv1.Completed{
		RunID: runID, Status: runv1.StatusCompleted, Model: "model-4.1",
		Usage: &runv1.Usage{TotalTokens: ptr(int64(1200)), CostUSD: ptr(0.0125)}, CompletedAt: at.Add(time.Second),
	}
}

// putTrace writes trace events up to a position, with metadata of at least width bytes each.
func putTrace(t *testing.T, db execer, last, width int) []runv1.TraceEvent {
	t.Helper()
	exec(t, db, `insert into bz_agent_run_trace_events
		select $1, n, 'event-' || n, 'tool.called', '2026-03-04T05:06:07.5Z', case n % 2 when 0 then $2::uuid end,
			('{"tool":"' || repeat('x', $3) || n || '"}')::json, n % 3, sha256(n::text::bytea), $4
		from generate_series(1, $5::int) as n`, runID, jobID, width, at.Add(2*time.Second), last)
	var events []runv1.TraceEvent
	for n := 1; n <= last; n++ {
		e := runv1.TraceEvent{
			Position: n, EventID: fmt.Sprintf("event-%d", n), Event: "tool.called", OccurredAt: "2026-03-04T05:06:07.5Z",
			Metadata:      jsontext.Value(fmt.Sprintf(`{"tool":"%s%d"}`, strings.Repeat("x", width), n)),
			DroppedFields: n % 3, CreatedAt: at.Add(2 * time.Second),
		}
		if n%2 == 0 {
			e.JobID = jobID
		}
		events = append(events, e)
	}
	return events
}

func putChange(t *testing.T, db execer, id string) registryv1.Change {
	t.Helper()
	exec(t, db, `insert into bz_registry_changes (change_id, kind, name, action, fields, changes, actor_kind, actor_name, recorded_at)
		values ($1, 'route', 'customers', 'updated', '{instructions,name}', '[{"field":"name","from":null,"to":"K\u00e4ufer"}]', 'controller', 'console', $2)`,
		id, at)
	return registryv1.Change{
		ChangeID: id, Number: 1, Kind: registryv1.KindRoute, Name: "customers", Action: registryv1.ActionUpdated,
		Fields:  []string{"instructions", "name"},
		Changes: []registryv1.FieldChange{{Field: "name", From: jsontext.Value(`null`), To: jsontext.Value(`"K\u00e4ufer"`)}},
		Actor:   registryv1.Actor{Kind: registryv1.ActorController, Name: "console"}, RecordedAt: at,
	}
}

// announce writes an outbox row.
func announce(t *testing.T, db execer, kind, id string, version int, eventType, payload string) {
	t.Helper()
	exec(t, db, `insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		values ($1, $2, $3, $4, $5, $6, 100, $7)`, transport.Partition(id), kind, id, version, eventType, payload, at)
}

// collect acknowledges what a stream's partition sends, until it has n events.
func (r *replica) collect(t *testing.T, id string, n int) []cloudevent.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	messages, err := r.reader.Subscribe(ctx, transport.Topic(transport.Partition(id)))
	require.NoError(t, err)
	var events []cloudevent.Event
	for len(events) < n {
		r.waker.Wake(transport.Partition(id))
		msg, _ := receive(t, messages)
		batch, err := cloudevent.DecodeBatch(msg.Payload)
		require.NoError(t, err)
		events = append(events, batch...)
		msg.Ack()
	}
	require.Eventually(t, func() bool { return waiting(t, r.db) == 0 }, patience, 5*time.Millisecond)
	require.Len(t, events, n)
	return events
}

func unmarshal[M runv1.Message](t *testing.T, e cloudevent.Event) M {
	t.Helper()
	m, err := runv1.Unmarshal[M](e.Data)
	require.NoError(t, err)
	require.Equal(t, m.Type(), e.Type)
	return m
}

func TestRunsAreSentWithWhatTheirRowsName(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	run := putRun(t, r.db.Pool, 4)
	trace := putTrace(t, r.db.Pool, 5, 3)
	completed := putCompletion(t, r.db.Pool)
	announce(t, r.db.Pool, "run", runID, 1, runv1.TypeRecorded, `{}`)
	announce(t, r.db.Pool, "run", runID, 2, runv1.TypeTraceRecorded, `{"first_position":1,"last_position":3}`)
	announce(t, r.db.Pool, "run", runID, 3, runv1.TypeCompleted, `{}`)
	announce(t, r.db.Pool, "run", runID, 4, runv1.TypeTraceRecorded, `{"first_position":4,"last_position":5}`)
	events := r.collect(t, runID, 4)
	require.Equal(t, run, unmarshal[runv1.Run](t, events[0]))
	require.Equal(t, runv1.TraceRecorded{RunID: runID, Events: trace[:3]}, unmarshal[runv1.TraceRecorded](t, events[1]))
	require.Equal(t, completed, unmarshal[runv1.Completed](t, events[2]))
	require.Equal(t, runv1.TraceRecorded{RunID: runID, Events: trace[3:]}, unmarshal[runv1.TraceRecorded](t, events[3]))
	for _, e := range events {
		require.NotContains(t, string(e.Data), "message-1")
	}
}

// What does not match goes out as it is, for the receiver to park, and stops nothing else.
func TestARowThatNamesWhatIsNotStoredGoesOutBare(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	putRun(t, r.db.Pool, 1)
	putTrace(t, r.db.Pool, 2, 3)
	rows := []struct{ kind, eventType, payload string }{
		{"run", runv1.TypeTraceRecorded, `{"first_position":1,"last_position":3}`},
		{"run", runv1.TypeTraceRecorded, `{"first_position":0,"last_position":2000000000}`},
		{"run", runv1.TypeTraceRecorded, `"positions"`},
		{"run", runv1.TypeCompleted, `{}`},
		{"registry_change", registryv1.TypeRecorded, `{}`},
		{"registry_change", registryv1.TypeSnapshot, `{}`}, // of a change that is not stored: nothing to send
	}
	for i, row := range rows {
		announce(t, r.db.Pool, row.kind, runID, i+1, row.eventType, row.payload)
	}
	announce(t, r.db.Pool, "run", runID, 7, runv1.TypeRecorded, `{}`)
	events := r.collect(t, runID, 6)
	for i, e := range events[:5] {
		require.Equal(t, rows[i].eventType, e.Type)
		require.Equal(t, rows[i].payload, string(e.Data))
	}
	unmarshal[runv1.Run](t, events[5])
}

func TestARunWhoseStoredPartsDoNotFitGoesOutBare(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]struct {
		statement string
		parts     int // that go out before it shows
	}{
		"a gap between parts": {`delete from bz_agent_run_trace_events where position = 501`, 1},
		"metadata with lists": {`update bz_agent_run_trace_events set metadata = '{"a":[]}' where position = 2`, 0},
		"an unknown usage":    {`update bz_agent_run_completions set usage = '{"words":1}'`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, database.Ingest, sql.FS, 0)
			r := newReplica(t, db.ServiceDSN)
			putRun(t, r.db.Pool, 3)
			putTrace(t, r.db.Pool, 502, 3)
			putCompletion(t, r.db.Pool)
			admin, err := pgx.Connect(t.Context(), db.AdminDSN)
			require.NoError(t, err)
			defer func() { require.NoError(t, admin.Close(context.WithoutCancel(t.Context()))) }()
			exec(t, admin, damage.statement)
			announce(t, r.db.Pool, "run", runID, 3, runv1.TypeSnapshot, `{"replace":true}`)
			announce(t, r.db.Pool, "run", runID, 1, runv1.TypeRecorded, `{}`)
			events := r.collect(t, runID, damage.parts+2)
			require.Equal(t, `{"replace":true}`, string(events[damage.parts].Data))
			require.Equal(t, runv1.TypeRecorded, events[damage.parts+1].Type)
		})
	}
}

func TestARunIsSentWholeInParts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ events, width, parts, most int }{
		"nothing more":       {0, 0, 1, 0},
		"one part":           {500, 3, 1, 500},
		"several":            {1203, 3, 3, 500},
		"parts of few bytes": {300, 30_000, 3, 140}, // 4 MiB of metadata and one event more
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, database.Ingest, sql.FS, 0)
			r := newReplica(t, db.ServiceDSN)
			run := putRun(t, r.db.Pool, 7)
			trace := putTrace(t, r.db.Pool, test.events, test.width)
			var completed *runv1.Completed
			if test.events > 0 {
				completed = ptr(putCompletion(t, r.db.Pool))
			}
			n, err := outbox.Rebuild(t.Context(), r.db.Pool, runID)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			var got []runv1.TraceEvent
			events := r.collect(t, runID, test.parts)
			for i, e := range events {
				require.Equal(t, []int64{7, int64(i + 1)}, []int64{e.StreamVersion, int64(e.Part())})
				s := unmarshal[runv1.Snapshot](t, e)
				require.Equal(t, run, s.Run)
				require.Equal(t, completed, s.Completion)
				require.LessOrEqual(t, len(s.Events), test.most)
				require.Equal(t, i == len(events)-1, s.Last)
				require.True(t, s.Replace)
				got = append(got, s.Events...)
			}
			require.Equal(t, trace, got)
		})
	}
}

// A snapshot waits for the writer that holds the run, and has all that its version says.
func TestARunIsReadUnderItsLock(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	putRun(t, r.db.Pool, 1)
	writer, err := r.db.Pool.Begin(t.Context())
	require.NoError(t, err)
	exec(t, writer, `update bz_agent_client_runs set stream_version = 2`)
	_, err = outbox.Rebuild(t.Context(), r.db.Pool, runID)
	require.NoError(t, err)
	messages, err := r.reader.Subscribe(t.Context(), transport.Topic(transport.Partition(runID)))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var n int
		err := r.db.Pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query like '%for share%'`).Scan(&n)
		return err == nil && n == 1
	}, patience, 5*time.Millisecond)
	putCompletion(t, writer)
	require.NoError(t, writer.Commit(t.Context()))
	msg, _ := receive(t, messages)
	msg.Ack()
	events, err := cloudevent.DecodeBatch(msg.Payload)
	require.NoError(t, err)
	require.Equal(t, int64(2), events[0].StreamVersion)
	require.NotNil(t, unmarshal[runv1.Snapshot](t, events[0]).Completion)
}

// Before the migrations that bring completions and traces there are none to send.
func TestRunsAreSentBeforeTheirMigration(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 58)
	r := newReplica(t, db.ServiceDSN)
	run := putRun(t, r.db.Pool, 1)
	announce(t, r.db.Pool, "run", runID, 1, runv1.TypeRecorded, `{}`)
	announce(t, r.db.Pool, "run", runID, 2, runv1.TypeCompleted, `{}`)
	announce(t, r.db.Pool, "run", runID, 3, runv1.TypeTraceRecorded, `{"first_position":1,"last_position":1}`)
	announce(t, r.db.Pool, "registry_change", runID, 1, registryv1.TypeRecorded, `{}`)
	announce(t, r.db.Pool, "registry_change", runID, 1, registryv1.TypeSnapshot, `{}`)
	n, err := outbox.Rebuild(t.Context(), r.db.Pool, "")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	events := r.collect(t, runID, 5)
	require.Equal(t, run, unmarshal[runv1.Run](t, events[0]))
	require.Equal(t, []string{`{}`, `{"first_position":1,"last_position":1}`, `{}`},
		[]string{string(events[1].Data), string(events[2].Data), string(events[3].Data)}, "what cannot be there is sent bare")
	require.Equal(t, runv1.Snapshot{Run: run, Events: []runv1.TraceEvent{}, Last: true, Replace: true}, unmarshal[runv1.Snapshot](t, events[4]))
}

func TestRebuildBeforeTheArchive(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 2)
	r := newReplica(t, db.ServiceDSN)
	putRun(t, r.db.Pool, 1)
	n, err := outbox.Rebuild(t.Context(), r.db.Pool, "")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = outbox.Rebuild(t.Context(), r.db.Pool, changeID)
	require.ErrorIs(t, err, outbox.ErrNoStream)
}

func TestChangesOfTheRegistryAreSentAndSentAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	change := putChange(t, r.db.Pool, changeID)
	announce(t, r.db.Pool, "registry_change", changeID, 1, registryv1.TypeRecorded, `{}`)
	n, err := outbox.Rebuild(t.Context(), r.db.Pool, changeID)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	events := r.collect(t, changeID, 2)
	for i, eventType := range []string{registryv1.TypeRecorded, registryv1.TypeSnapshot} {
		got, err := registryv1.Unmarshal(events[i].Data)
		require.NoError(t, err)
		require.Equal(t, change, got)
		require.Equal(t, eventType, events[i].Type)
		require.Equal(t, []int64{1, int64(i)}, []int64{events[i].StreamVersion, int64(events[i].Part())})
	}
}

// Rebuild asks for every stream of every kind, page by page.
func TestRebuildAsksForAllStreams(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	putRun(t, r.db.Pool, 1)
	exec(t, r.db.Pool, `insert into bz_registry_changes (change_id, kind, name, action, fields, changes, actor_kind, actor_name, recorded_at)
		select gen_random_uuid(), 'run', 'x', 'created', '{}', '[]', 'operator', '', now() from generate_series(1, 1201)`)
	n, err := outbox.Rebuild(t.Context(), r.db.Pool, "")
	require.NoError(t, err)
	require.Equal(t, 1202, n)
	var changes int
	require.NoError(t, r.db.Pool.QueryRow(t.Context(), `select count(distinct stream_id) from outbox where stream_kind = 'registry_change' and version = 1`).Scan(&changes))
	require.Equal(t, 1201, changes)
	_, err = outbox.Rebuild(t.Context(), r.db.Pool, jobID)
	require.ErrorIs(t, err, outbox.ErrNoStream)
}
