package postgres_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/services/auditview/internal/historytest"
	"verbatim.internal/sql/auditview"
)

// row returns a query's only value as text.
func (b *bundle) row(t *testing.T, query string, args ...any) (value string) {
	t.Helper()
	require.NoError(t, b.admin.QueryRow(t.Context(), `select (`+query+`)::text`, args...).Scan(&value))
	return value
}

func TestARunIsStoredAsItsMessagesSay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := historytest.OpenRun(t, 1)
	b.apply(t, run.Messages...)
	require.Equal(t, "(running,,,,,0)", b.row(t, `select r from (select status, model, runtime, usage, completed_at, last_position from runs) r`))

	run.Trace(2).Complete("completed").Trace(1)
	b.apply(t, run.Messages...)
	require.Equal(t, `(completed,model-4.1,agent@2.0,3)`, b.row(t, `select r from (select status, model, runtime, last_position from runs) r`))
	require.Equal(t, `{"cost_usd":0.0125,"tool_calls":2,"total_tokens":1200}`, b.row(t, `select usage from runs`), "canonical")
	metadata := `{"args_bytes":2,"tool":"orders.search"}`
	require.Equal(t, metadata, b.row(t, `select metadata from run_trace_events where position = 2`), "byte for byte")
	require.Equal(t, "2026-03-04T05:06:08.358023000Z", b.row(t, `select occurred_at from run_trace_events where position = 1`))
	require.Equal(t, "(2,tool.completed)", b.row(t, `select r from (select dropped_fields, event from run_trace_events where position = 2) r`))
}

// What contradicts a run is parked with what follows in its stream, and healed by a snapshot.
func TestPoisonOfARunParksItsStreamOnly(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]struct {
		change func(m []cloudevent.Event) // changes the third of five messages
		reason string
	}{
		"data of another type": {func(m []cloudevent.Event) { m[2] = historytest.Broken(m[2]) }, "data is not of its type"},
		"another run's data":   {func(m []cloudevent.Event) { m[2].Data = historytest.OpenRun(t, 2).Trace(2).Messages[1].Data }, "another stream"},
		"a trace with a gap": {func(m []cloudevent.Event) {
			m[2].Data = historytest.OpenRun(t, 1).Trace(3).Trace(1).Messages[2].Data
		}, "contradicts its stream"},
		"a trace that begins again": {func(m []cloudevent.Event) { m[2].Data = m[1].Data }, "contradicts its stream"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			run := historytest.OpenRun(t, 1).Trace(2).Trace(2).Complete("failed").Trace(1)
			b.apply(t, run.Messages...)
			want := b.content(t)
			b.clear(t)

			m := slices.Clone(run.Messages)
			poison.change(m)
			other := historytest.OpenRun(t, 3).Trace(1)
			b.apply(t, append(slices.Clone(m), other.Messages...)...)
			require.Equal(t, int64(2), b.version(t, run.ID()))
			require.Equal(t, int64(2), b.version(t, other.ID()))
			parked := b.parked(t)
			require.Len(t, parked, 1)
			require.Equal(t, []int64{3, 5, 3}, []int64{parked[0].FromVersion, parked[0].ToVersion, parked[0].Count})
			require.Contains(t, parked[0].Error, poison.reason)
			require.NotContains(t, parked[0].Error, "orders.search")

			b.exec(t, `delete from runs where run_id = $1`, other.ID())
			b.exec(t, `delete from run_trace_events where run_id = $1`, other.ID())
			b.exec(t, `delete from streams where stream_id = $1`, other.ID())
			b.apply(t, run.Snapshot(2)...)
			require.Empty(t, b.parked(t))
			require.Equal(t, want, b.content(t))
		})
	}
}

// The view lost a row, or a completion came back: the message's counts show it.
func TestARunThatIsNotAsItsStreamSaysIsParked(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"no run":            `delete from runs`,
		"another trace":     `update runs set last_position = 5`,
		"another event":     `update run_trace_events set position = 2`,
		"another metadata":  `update run_trace_events set position = 2, event_id = 'trace-2', event = 'tool.completed', dropped_fields = 2`,
		"already completed": `update runs set status = 'failed', completed_at = now()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			run := historytest.OpenRun(t, 1).Trace(1).Complete("completed").Trace(1)
			b.apply(t, run.Messages...)
			want := b.content(t)
			b.clear(t)
			b.apply(t, run.Messages[:2]...)
			b.exec(t, damage)
			b.apply(t, run.Messages[2:]...)
			require.Contains(t, b.parked(t)[0].Error, "contradicts its stream")
			b.apply(t, run.Rebuild(1)...)
			require.Equal(t, want, b.content(t))
		})
	}
}

func TestSnapshotOfARunOfALowerVersionReplacesTheStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	older := historytest.OpenRun(t, 1).Trace(3)
	b.apply(t, older.Snapshot(2)...)
	want := b.content(t)
	b.clear(t)

	newer := historytest.OpenRun(t, 1).Trace(1).Trace(4).Complete("completed")
	b.apply(t, newer.Messages...)
	further := b.content(t)
	b.apply(t, older.Snapshot(2)...)
	require.Equal(t, further, b.content(t), "a late snapshot takes nothing back")
	b.apply(t, older.Rebuild(2)...)
	require.Equal(t, want, b.content(t))
	require.Empty(t, b.apply(t, older.Complete("cancelled").Messages[2:]...).Gaps)
	require.Equal(t, int64(3), b.version(t, older.ID()))
}

// The parts before the last are there, and the run does not show them.
func TestUnfinishedSnapshotOfARunLeavesTheTraceWhereItEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := historytest.OpenRun(t, 1).Trace(2).Trace(4).Complete("completed")
	b.apply(t, run.Messages...)
	want := b.content(t)
	b.clear(t)
	b.apply(t, run.Messages[:2]...)
	parts := run.Snapshot(4)
	b.apply(t, parts[:1]...)
	require.Equal(t, "(running,2)", b.row(t, `select r from (select status, last_position from runs) r`))

	// The relay was cut and sends the stream's messages instead: they find their events.
	require.Empty(t, b.apply(t, run.Messages...).Gaps)
	require.Empty(t, b.parked(t))
	require.Equal(t, want, b.content(t))
}

func TestSnapshotOfARunWithoutItsFirstPartIsParked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := historytest.OpenRun(t, 1).Trace(6).Complete("failed")
	parts := run.Snapshot(2)
	b.apply(t, parts[1:]...)
	require.Contains(t, b.parked(t)[0].Error, "incomplete")
	require.Equal(t, int64(0), b.version(t, run.ID()))
	b.apply(t, parts...)
	require.Empty(t, b.parked(t))
	require.Equal(t, int64(3), b.version(t, run.ID()))

	broken := slices.Clone(parts)
	broken[1] = historytest.Broken(broken[1])
	b.apply(t, broken...)
	require.Equal(t, int64(2), b.parked(t)[0].Count, "the part behind a broken one waits")
	b.apply(t, parts...)
	require.Empty(t, b.parked(t))
}

func TestAGapOfARunIsHealedByASnapshot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := historytest.OpenRun(t, 1).Trace(1).Trace(1).Complete("completed")
	b.apply(t, run.Messages[0])
	require.Equal(t, int64(1), b.apply(t, run.Messages[3]).Gaps[0].Applied)
	require.Empty(t, b.apply(t, run.Snapshot(500)...).Gaps)
	require.Empty(t, b.apply(t, run.Messages[3]).Gaps)
	require.Equal(t, int64(4), b.version(t, run.ID()))
}

func TestAChangeOfTheRegistryIsStoredOnceAndAsItIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := 1; n <= 2; n++ {
		require.Equal(t, 1, b.apply(t, historytest.ChangeMessage(t, historytest.NewChange(n), 0)).Summary.Applied)
	}
	require.Equal(t, 1, b.apply(t, historytest.ChangeMessage(t, historytest.NewChange(1), 0)).Summary.Skipped)
	want := b.content(t)
	require.Equal(t, `(route,route-0,updated,"{instructions,name}",controller,console)`, b.row(t,
		`select r from (select kind, name, action, fields, actor_kind, actor_name from registry_changes where number = 2) r`))
	changes := `[{"field":"name","from":null,"to":"R\u00f6ute <2>"}]`
	require.Equal(t, changes, b.row(t, `select changes from registry_changes where number = 2`), "byte for byte")
	require.Equal(t, `{}`, b.row(t, `select fields from registry_changes where number = 1`))
	for n := 1; n <= 2; n++ {
		b.apply(t, historytest.ChangeMessage(t, historytest.NewChange(n), 1))
	}
	require.Equal(t, want, b.content(t))
}

// ingest came back from a backup and draws numbers again: its change waits until an
// operator says that ingest is right.
func TestANumberThatComesAgainWaitsForARebuild(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lost, again := historytest.NewChange(1), historytest.NewChange(2)
	b.apply(t, historytest.ChangeMessage(t, lost, 0))
	again.Number = lost.Number
	b.apply(t, historytest.ChangeMessage(t, again, 0), historytest.ChangeMessage(t, historytest.NewChange(3), 0))
	require.Contains(t, b.parked(t)[0].Error, "SQLSTATE 23505")
	require.Equal(t, int64(1), b.version(t, historytest.NewChange(3).ChangeID))
	b.apply(t, historytest.ChangeMessage(t, again, 1))
	require.Empty(t, b.parked(t))
	require.Equal(t, again.ChangeID, b.row(t, `select change_id from registry_changes where number = 1`))
}

func TestAChangeHasOneVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := historytest.ChangeMessage(t, historytest.NewChange(1), 0)
	b.apply(t, e)
	b.apply(t, cloudevent.New(registryv1.StreamKind, e.StreamID, 2, 0, e.Type, e.Time, e.Data))
	require.Contains(t, b.parked(t)[0].Error, "contradicts its stream")
}

// Before migration 003 runs are recorded as ever, and snapshots of runs that have nothing
// more are taken; what needs the migration comes again until it is there.
func TestRunsAreRecordedBeforeTheirMigration(t *testing.T) {
	t.Parallel()
	b := setupTo(t, 2)
	run, other := historytest.OpenRun(t, 1), historytest.OpenRun(t, 2)
	archive := ready(t, 1, 1).Link(run.Run())
	b.apply(t, append(slices.Clone(archive.Messages), run.Messages...)...)
	b.apply(t, append(run.Snapshot(500), other.Rebuild(500)...)...)
	require.Equal(t, int64(1), b.version(t, run.ID()))
	require.Equal(t, int64(1), b.version(t, other.ID()))

	change := historytest.ChangeMessage(t, historytest.NewChange(1), 0)
	run.Trace(2).Complete("completed")
	for _, batch := range [][]cloudevent.Event{run.Messages[1:2], run.Messages[1:], run.Snapshot(500), {change}} {
		_, err := b.projector.Apply(t.Context(), decode(batch...))
		require.ErrorContains(t, err, "SQLSTATE 42") // 42P01, 42703
		require.Empty(t, b.parked(t))
	}
	_, err := migration.Up(t.Context(), b.dsn.OwnerDSN, auditview.FS, 0)
	require.NoError(t, err)
	b.apply(t, append(run.Messages[1:], change)...)
	require.Equal(t, "(completed,2)", b.row(t, `select r from (select status, last_position from runs where run_id = $1) r`, run.ID()))
	require.Equal(t, "(running,0)", b.row(t, `select r from (select status, last_position from runs where run_id = $1) r`, other.ID()))
	require.Equal(t, int64(1), b.version(t, change.StreamID))
}
