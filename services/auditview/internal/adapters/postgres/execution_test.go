package postgres_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/historytest"
	"verbatim.internal/sql/auditview"
)

// busy returns an execution with a bit of everything, so many times.
func busy(t *testing.T, n, times int) *historytest.Execution {
	t.Helper()
	x := historytest.OpenExecution(t, n, "")
	for i := range times {
		x.Happen("task.created", "task.failed", "approval.requested").Task(i).Approve(i, "").Grant(i, "active").Attempt(2)
	}
	return x
}

func TestAnExecutionIsStoredAsItsMessagesSay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := historytest.OpenExecution(t, 1, historytest.RunID(1))
	b.apply(t, x.Messages...)
	header := `select r from (select client_app_id, swarm_id, manager_deployment_id, deployment_id, correlation_id, run_id, last_position, result,
		version, latest_at = created_at from executions) r`
	require.Equal(t, `(client-0,swarm/1,manager-1,deployment:1,correlation-1,`+historytest.RunID(1)+`,0,info,1,t)`, b.row(t, header))

	x.Happen("task.created", "task.claimed", "task.failed").Task(1).Task(2).Approve(1, "approved").Grant(1, "active").Attempt(1).Happen("timeline.updated")
	b.apply(t, x.Messages...)
	require.Equal(t, `(client-0,swarm/1,manager-1,deployment:1,correlation-1,`+historytest.RunID(1)+`,4,failed,8,f)`, b.row(t, header))
	require.Equal(t, "t", b.row(t, `select x.latest_at = e.recorded_at from executions x join execution_events e using (execution_id) where position = 4`)[:1])
	require.Equal(t, `(event-3,task.failed,2026-03-04T05:07:05.358023000Z,task/3,agent-0,impl,user-1@example.com,41,"{output,prompt}",3)`, b.row(t,
		`select r from (select event_id, event_type, occurred_at, task_id, agent_instance_id, agent_role, user_id, channel_id, dropped_fields, dropped_count
		from execution_events where position = 3) r`))
	require.Equal(t, `x{"attempt":3,"status":"running"}`, b.row(t, `select 'x' || payload::text from execution_events where position = 3`), "byte for byte")
	require.Equal(t, `{}`, b.row(t, `select dropped_fields from execution_events where position = 1`))
	require.Equal(t, `(3,role-1,model-1,1001,,,1,worker-1,cli,t)`, b.row(t, `select r from (select version, agent_role, model_id, input_tokens, output_tokens,
		total_tokens, tool_count, user_id, channel_id, used_at = '2026-03-04 05:06:07.123456Z' from execution_tasks where task_id = 'task/1') r`))
	require.Equal(t, `(approved,"{""decision"":""approved"",""operation"":""git.push"",""reason"":""Read & checked, 1 times.""}")`,
		b.row(t, `select r from (select decision, facts from execution_approvals) r`))
	require.Equal(t, `(grant-1,6)`, b.row(t, `select r from (select grant_id, version from execution_grants) r`))
	require.Equal(t, `(1,attempt-1,event-0)`, b.row(t, `select r from (select position, attempt_id, event_id from execution_callback_attempts) r`))
	require.Equal(t, `{41,console,opener,user-1@example.com}`, b.row(t, `select array_agg(value order by value) from execution_attributions`))
	require.Equal(t, `(channel,cli)`, b.row(t, `select r from (select 'channel', channel_id from execution_tasks where task_id = 'task/2') r`))
}

// An execution is found by whom its opening, its events and its tasks name.
func TestExecutionsAreFoundByWhomTheyName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := historytest.OpenExecution(t, 1, "").Happen("task.created", "task.created", "task.created").Task(1)
	b.apply(t, append(slices.Clone(x.Messages), historytest.OpenExecution(t, 2, "").Messages...)...)
	for _, filter := range []app.ExecutionFilter{
		{UserID: "opener"},
		{UserID: "user-1@example.com"},
		{UserID: "worker-1"},
		{ChannelID: "console"},
		{ChannelID: "cli"},
		{AgentRole: "role-1", ModelID: "model-1", UserID: "worker-1", ChannelID: "41"},
	} {
		found, err := b.store.Executions(t.Context(), filter, 10)
		require.NoError(t, err)
		require.Len(t, found, 1, filter)
		require.Equal(t, x.ID(), found[0].ExecutionID)
	}
	b.apply(t, x.Task(3).PutTask(historytest.TaskID(1), execution.Task{UserID: "worker-9"}).Messages...)
	found, err := b.store.Executions(t.Context(), app.ExecutionFilter{UserID: "worker-1"}, 10)
	require.NoError(t, err)
	require.Empty(t, found, "what a task does not say any more")
}

// What contradicts an execution is parked with what follows in its stream, and healed by a
// snapshot or by a replay.
func TestPoisonOfAnExecutionParksItsStreamOnly(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]struct {
		change func(m []cloudevent.Event) // changes the third of five messages
		reason string
	}{
		"data of another type":     {func(m []cloudevent.Event) { m[2] = historytest.Broken(m[2]) }, "data is not of its type"},
		"another execution's data": {func(m []cloudevent.Event) { m[2].Data = busy(t, 2, 2).Messages[1].Data }, "another stream"},
		"events with a gap": {func(m []cloudevent.Event) {
			m[2].Data = historytest.OpenExecution(t, 1, "").Happen("task.created", "task.created").Happen("task.created").Messages[2].Data
		}, "contradicts its stream"},
		"events that begin again": {func(m []cloudevent.Event) { m[2].Data = m[1].Data }, "contradicts its stream"},
		"an unknown type":         {func(m []cloudevent.Event) { m[2].Type = "verbatim.execution.burned.v1" }, "unknown type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			x := historytest.OpenExecution(t, 1, "").Happen("task.created").Happen("task.failed").Task(1).Approve(1, "rejected")
			b.apply(t, x.Messages...)
			want := b.content(t)
			b.clear(t)

			m := slices.Clone(x.Messages)
			poison.change(m)
			b.apply(t, append(slices.Clone(m), ready(t, 3, 1).Messages...)...)
			require.Equal(t, int64(2), b.version(t, x.ID()))
			require.Equal(t, int64(2), b.version(t, ready(t, 3, 1).ConversationID()))
			parked := b.parked(t)
			require.Len(t, parked, 1)
			require.Equal(t, []int64{3, 5, 3}, []int64{parked[0].FromVersion, parked[0].ToVersion, parked[0].Count})
			require.Contains(t, parked[0].Error, poison.reason)
			require.NotContains(t, parked[0].Error, "secret")

			// Whoever repaired the message lets what is parked be applied.
			b.exec(t, `delete from parked_messages where version = 3`)
			b.apply(t, x.Messages[2])
			replayed, still, err := app.NewReplayer(b.store).Replay(t.Context(), x.ID())
			require.NoError(t, err)
			require.Equal(t, []int{3, 0}, []int{replayed, still})

			b.clear(t)
			b.apply(t, m...)
			b.apply(t, x.Snapshot(2)...)
			require.Empty(t, b.parked(t))
			require.Equal(t, want, b.content(t))
		})
	}
}

// The view lost a row, or has another: the message's counts show it.
func TestAnExecutionThatIsNotAsItsStreamSaysIsParked(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"no execution":   `delete from executions`,
		"other events":   `update executions set last_position = 5`,
		"an event":       `update execution_events set position = 2`,
		"a payload":      `update execution_events set position = 2, event_id = 'event-2', payload = '{"a":1}'`,
		"an attempt":     `update execution_callback_attempts set position = 2`,
		"another opened": `delete from executions; insert into executions select gen_random_uuid(), 'client-0', 'swarm/1', '', '', '', null, 0, 'info', 1, now(), now()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			x := historytest.OpenExecution(t, 1, "").Happen("task.created").Attempt(1).Happen("task.failed").Attempt(1)
			b.apply(t, x.Messages...)
			want := b.content(t)
			b.clear(t)
			b.apply(t, x.Messages[:3]...)
			b.exec(t, damage)
			b.apply(t, x.Messages[3:]...)
			require.Contains(t, b.parked(t)[0].Error, "contradicts its stream")
			b.apply(t, x.Rebuild(1)...)
			require.Equal(t, want, b.content(t))
		})
	}
}

// ingest came back from a backup: its stream has a lower version and another history.
func TestSnapshotOfAnExecutionOfALowerVersionReplacesTheStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	older := historytest.OpenExecution(t, 1, "").Happen("task.created", "task.completed").Task(1).Approve(1, "").Attempt(1)
	newer := older.Fork().Approve(1, "approved").Happen("task.failed", "task.failed").Task(1).Task(2).Grant(1, "active").Attempt(3)
	older.Task(3).Task(0)
	b.apply(t, older.Snapshot(2)...)
	want := b.content(t)
	b.clear(t)

	b.apply(t, newer.Messages...)
	further := b.content(t)
	b.apply(t, older.Snapshot(2)...)
	require.Equal(t, further, b.content(t), "a late snapshot takes nothing back")
	b.apply(t, older.Rebuild(2)...)
	require.Equal(t, want, b.content(t))
	require.Empty(t, b.apply(t, older.Happen("task.stopped").Messages[older.Version()-1:]...).Gaps)
	records, _ := b.records(t, older)
	require.Equal(t, older.Records(), records)
}

// ingest lost an execution with its backup, and its orchestrator opened it again.
func TestASwarmThatIsOpenedAgainWaitsForARebuild(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lost, again := busy(t, 3, 2), busy(t, 1, 1)
	b.apply(t, again.Messages...)
	want := b.content(t)
	b.clear(t)
	b.apply(t, lost.Messages...)
	b.exec(t, `update executions set swarm_id = $1`, again.Opened().SwarmID)
	b.apply(t, again.Messages...)
	require.Contains(t, b.parked(t)[0].Error, "SQLSTATE 23505")
	b.apply(t, again.Snapshot(3)...)
	require.NotEmpty(t, b.parked(t))
	b.apply(t, again.Rebuild(3)...)
	require.Empty(t, b.parked(t))
	b.exec(t, `delete from streams where stream_id = $1`, lost.ID())
	require.Equal(t, want, b.content(t))
}

// The parts before the last are there, and the execution does not show them.
func TestUnfinishedSnapshotOfAnExecutionLeavesItWhereItEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := busy(t, 1, 3)
	b.apply(t, x.Messages...)
	want := b.content(t)
	b.clear(t)
	b.apply(t, x.Messages[:2]...)
	parts := x.Snapshot(4)
	for _, part := range parts[:len(parts)-1] {
		b.apply(t, part)
	}
	require.Equal(t, "(3,2)", b.row(t, `select r from (select last_position, version from executions) r`))
	records, _ := b.records(t, x)
	require.Len(t, records, 3)

	// The relay was cut and sends the stream's messages instead: they find their events.
	require.Empty(t, b.apply(t, x.Messages...).Gaps)
	require.Empty(t, b.parked(t))
	require.Equal(t, want, b.content(t))
}

func TestSnapshotOfAnExecutionWithoutAPartIsParked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := busy(t, 1, 3)
	parts := x.Snapshot(3)
	for missing := range parts[:len(parts)-1] {
		b.clear(t)
		b.apply(t, slices.Concat(parts[:missing], parts[missing+1:])...)
		require.Contains(t, b.parked(t)[0].Error, "incomplete", missing)
		require.Equal(t, int64(0), b.version(t, x.ID()))
		b.apply(t, parts...)
		require.Empty(t, b.parked(t))
		require.Equal(t, x.Version(), b.version(t, x.ID()))
	}
	broken := slices.Clone(parts)
	broken[1] = historytest.Broken(broken[1])
	b.apply(t, broken...)
	require.Equal(t, int64(len(parts)-1), b.parked(t)[0].Count, "the parts behind a broken one wait")
	b.apply(t, parts...)
	require.Empty(t, b.parked(t))
}

func TestAGapOfAnExecutionIsHealedByASnapshot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := busy(t, 1, 1)
	b.apply(t, x.Messages[0])
	require.Equal(t, int64(1), b.apply(t, x.Messages[3]).Gaps[0].Applied)
	require.Empty(t, b.apply(t, x.Snapshot(500)...).Gaps)
	require.Empty(t, b.apply(t, x.Messages[3]).Gaps)
	require.Equal(t, x.Version(), b.version(t, x.ID()))
}

// Before migration 004 what is about executions comes again until it is there; nothing of
// it is parked, and nothing else needs the migration.
func TestExecutionsWaitForTheirMigration(t *testing.T) {
	t.Parallel()
	b := setupTo(t, 3)
	x := busy(t, 1, 1)
	b.apply(t, append(ready(t, 1, 1).Messages, historytest.OpenRun(t, 1).Trace(1).Messages...)...)
	for _, batch := range [][]cloudevent.Event{x.Messages, x.Snapshot(500), x.Rebuild(2)} {
		_, err := b.projector.Apply(t.Context(), decode(batch...))
		require.ErrorContains(t, err, "SQLSTATE 42P01")
		require.Empty(t, b.parked(t))
	}
	_, err := migration.Up(t.Context(), b.dsn.OwnerDSN, auditview.FS, 0)
	require.NoError(t, err)
	b.apply(t, x.Messages...)
	records, _ := b.records(t, x)
	require.Equal(t, x.Records(), records)
}
