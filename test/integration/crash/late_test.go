package crash_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/test/integration/internal/kit"
)

// slowCommits makes the commit of each outbox row of a stream, which has its id by then,
// wait for an advisory lock. However long that takes, the row's id stays lower than those
// that others draw and commit meanwhile.
const slowCommits = `
	create table held_stream (id text);
	grant select on held_stream to public;
	create function hold_commit() returns trigger language plpgsql set lock_timeout = 0 as $$
	begin
		if exists (select from held_stream where id = new.stream_id) then
			perform pg_advisory_xact_lock(4711);
		end if;
		return null;
	end $$;
	create constraint trigger hold_commit after insert on outbox deferrable initially deferred
		for each row execute function hold_commit()`

// neighbours returns n new archives of one partition.
func neighbours(t *testing.T, n int, create func() string) []string {
	t.Helper()
	byPartition := map[int][]string{}
	for {
		id := create()
		p := transport.Partition(id)
		byPartition[p] = append(byPartition[p], id)
		if len(byPartition[p]) == n {
			return byPartition[p]
		}
	}
}

// A row that commits late, with a lower id than rows that were delivered meanwhile, is
// delivered, and its stream keeps its order.
func TestALateCommitIsDelivered(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{HTTP: true})
	ids := neighbours(t, 2, func() string { return d.NewArchive(t, kit.SessionID(1)) })
	late, other := ids[0], ids[1]
	require.NoError(t, kit.Exec(t, d.IngestDB.AdminDSN, slowCommits))
	require.NoError(t, kit.Exec(t, d.IngestDB.AdminDSN, `insert into held_stream values ($1)`, late))
	release := kit.Hold(t, d.IngestDB.AdminDSN, `select pg_advisory_xact_lock(4711)`)

	answers := make(chan error, 1)
	go func() {
		status, err := d.AppendUnchecked(t.Context(), kit.SessionID(1), late, kit.Turn("turn-1", 1, 5)...)
		if err == nil {
			assert.Equal(t, 200, status)
		}
		answers <- err
	}()
	kit.AwaitLockWaits(t, d.IngestDB.AdminDSN, 1)
	const drawn = `select last_value from outbox_id_seq`
	before := kit.Count(t, d.IngestDB.AdminDSN, drawn)
	d.MustAppend(t, kit.SessionID(1), other, kit.Turn("turn-1", 1, 3)...)
	d.MustAppend(t, kit.SessionID(1), other, kit.Turn("turn-2", 4, 3)...)
	assert.Equal(t, before+2, kit.Count(t, d.IngestDB.AdminDSN, drawn))
	d.WaitFor(t, other, 6) // while the lower id is still to come
	detail, err := d.Read(t.Context(), late)
	require.NoError(t, err)
	assert.Zero(t, detail.Conversation.LastSequence)

	release()
	require.NoError(t, <-answers)
	d.MustAppend(t, kit.SessionID(1), late, kit.Turn("turn-2", 6, 4)...)
	want := append(kit.Turn("turn-1", 1, 5), kit.Turn("turn-2", 6, 4)...)
	assert.Equal(t, want, kit.Submitted(d.WaitFor(t, late, 9).Events))
	assert.Len(t, d.WaitFor(t, other, 6).Events, 6)
}

// Transactions that stay open, with a lower id in the same partition, in the archive's
// neighbour, and in another database of the cluster, stall nobody.
func TestAWriterThatStaysOpenStallsNobody(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{HTTP: true})
	ids := neighbours(t, 2, func() string { return d.NewArchive(t, kit.SessionID(1)) })
	writer, other := ids[0], ids[1]
	const row = `insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		values ($1, 'archive', $2, 2, 'verbatim.archive.events_appended.v1', '{}', 0, now())`
	releases := []func(){
		kit.Hold(t, d.IngestDB.OwnerDSN, row, transport.Partition(writer), writer),
		kit.Hold(t, d.IngestDB.OwnerDSN, `select from bz_agent_conversation_audits where conversation_id = $1 for update`, writer),
		kit.Hold(t, d.AuditviewDB.OwnerDSN, `select txid_current()`),
	}
	var want []kit.Event
	for n := range 20 {
		turn := kit.Turn(kit.UUID(), 1+5*n, 5)
		d.MustAppend(t, kit.SessionID(1), other, turn...)
		want = append(want, turn...)
		assert.Equal(t, want, kit.Submitted(d.WaitFor(t, other, len(want)).Events))
	}
	for _, release := range releases {
		release() // rolls back: the row was never there
	}
	d.MustAppend(t, kit.SessionID(1), writer, kit.Turn("turn-1", 1, 5)...)
	assert.Len(t, d.WaitFor(t, writer, 5).Events, 5)
}
