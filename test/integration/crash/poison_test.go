package crash_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
	"verbatim.internal/test/integration/internal/kit"
)

const (
	typeAppended = "verbatim.archive.events_appended.v1"
	// missingEvents is a payload as ingest writes it, of events that are not stored.
	missingEvents = `{"state":{"state":"ready","confirmed_count":1,"last_sequence":102,"message_count":1,"turn_count":1,
		"last_turn_status":"completed","text_bytes":9,"updated_at":"2026-01-01T00:00:00Z"},"first_sequence":101}`
)

// poisons are rows that can never be applied. What the outbox itself refuses is not here.
var poisons = map[string]struct{ eventType, payload string }{
	"an unknown type":       {"verbatim.archive.burned.v1", `{}`},
	"an empty payload":      {typeAppended, `{}`},
	"a malformed payload":   {typeAppended, `{"state":7,"first_sequence":"one"}`},
	"no object":             {typeAppended, `null`},
	"a missing event":       {typeAppended, missingEvents},
	"a second creation":     {"verbatim.archive.created.v1", `{}`},
	"an unknown member":     {"verbatim.archive.member_confirmed.v1", `{"member":"nobody"}`},
	"a lone surrogate":      {typeAppended, `{"state":"\ud800"}`},
	"a name that is twice":  {typeAppended, `{"state":1,"state":2}`},
	"a number of its own":   {typeAppended, `{"first_sequence":1e400}`},
	"another stream's type": {"verbatim.run.recorded.v1", `{}`},
}

// injectPoison commits a row as the archive's next change, as a broken release would.
func injectPoison(t *testing.T, dsn, id, eventType, payload string) {
	t.Helper()
	require.NoError(t, kit.Exec(t, dsn, `
		with stream as (
			update bz_agent_conversation_audits set stream_version = stream_version + 1
			where conversation_id = $1::text::uuid returning stream_version
		)
		insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		select $2, 'archive', $1, stream_version, $3, $4::text::json, 0, now() from stream`,
		id, transport.Partition(id), eventType, payload))
}

// Poison first in a partition is parked with its error, and so are the later messages of
// its stream, in order. Everything else flows, and a rebuild heals the stream.
func TestPoisonStopsItsStreamOnly(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{HTTP: true})
	create := func() string { return d.NewArchive(t, kit.SessionID(1)) }
	victims := map[string]string{}
	for name := range poisons {
		victims[name] = ""
	}
	ids := neighbours(t, len(victims)+1, create) // one partition
	other := ids[0]
	for name := range victims {
		ids = ids[1:]
		victims[name] = ids[0]
		d.MustAppend(t, kit.SessionID(1), victims[name], kit.Turn("turn-1", 1, 3)...)
		d.WaitFor(t, victims[name], 3)
	}
	d.StopIngest()
	for name, id := range victims { // versions 3; 1 and 2 are the creation and the turn
		injectPoison(t, d.IngestDB.OwnerDSN, id, poisons[name].eventType, poisons[name].payload)
	}
	d.StartIngest()
	for _, id := range victims {
		d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-2", 4, 3)...)
		d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-3", 7, 3)...)
	}
	d.MustAppend(t, kit.SessionID(1), other, kit.Turn("turn-1", 1, 3)...)
	assert.Len(t, d.WaitFor(t, other, 3).Events, 3)
	drained(t, d.IngestDB)

	parked := parkedStreams(t, d)
	assert.Len(t, parked, len(victims))
	for name, id := range victims {
		p, ok := parked[id]
		require.True(t, ok, name)
		assert.Equal(t, []int64{3, 5, 3}, []int64{p.FromVersion, p.ToVersion, p.Count}, name)
		assert.NotEmpty(t, p.Error, name)
		t.Logf("%s: %s", name, p.Error)
		assert.Equal(t, 2, kit.Count(t, d.AuditviewDB.AdminDSN,
			`select count(*) from parked_messages where stream_id = $1 and version > 3 and error is null`, id), "the later ones only wait")
		detail, err := d.Read(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, kit.Turn("turn-1", 1, 3), kit.Submitted(detail.Events), name)
	}
	replayed, still, err := auditview.ReplayParked(t.Context(), config.Secret(d.AuditviewDB.ServiceDSN), "")
	require.NoError(t, err)
	assert.Equal(t, []int{0, 3 * len(victims)}, []int{replayed, still}, "poison stays poison")

	for _, id := range victims {
		n, err := ingest.Rebuild(t.Context(), config.Secret(d.IngestDB.ServiceDSN), id)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
	}
	for name, id := range victims {
		d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-4", 10, 3)...)
		events := kit.Submitted(d.WaitFor(t, id, 12).Events)
		for n := range 4 {
			assert.Equal(t, kit.Turn(fmt.Sprintf("turn-%d", n+1), 1+3*n, 3), events[3*n:3*n+3], name)
		}
	}
	assert.Empty(t, parkedStreams(t, d))
}

// Poison whose stream is no archive stops nobody, and what nobody has is not sent.
func TestPoisonOfAForeignStream(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{HTTP: true})
	other := d.NewArchive(t, kit.SessionID(1))
	d.WaitFor(t, other, 0)
	d.StopIngest()
	const row = `insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		values ($1, $2, $3, 1, $4, '{}', 0, now())`
	partition := transport.Partition(other)
	ghost, unknown, gone := "no-uuid:at.all", kit.UUID(), kit.UUID()
	for _, args := range [][]any{
		{partition, "ghost", ghost, "verbatim.ghost.seen.v1"},
		{partition, "archive", unknown, "verbatim.archive.created.v1"},
		{partition, "archive", gone, "verbatim.archive.snapshot.v1"}, // a request; there is nothing to send
		{partition, "ghost", "x", "verbatim.archive.snapshot.v1"},
	} {
		require.NoError(t, kit.Exec(t, d.IngestDB.OwnerDSN, row, args...))
	}
	d.StartIngest()
	d.MustAppend(t, kit.SessionID(1), other, kit.Turn("turn-1", 1, 3)...)
	assert.Len(t, d.WaitFor(t, other, 3).Events, 3)
	drained(t, d.IngestDB)
	parked := parkedStreams(t, d)
	assert.Len(t, parked, 2)
	assert.Contains(t, parked, ghost)
	assert.Contains(t, parked, unknown)
}

// What auditview could not take because its read model was damaged is parked, and
// replayed in order once that is repaired.
func TestParkedMessagesAreReplayedAfterARepair(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{HTTP: true})
	dsn := config.Secret(d.AuditviewDB.ServiceDSN)
	id, other := d.NewArchive(t, kit.SessionID(1)), d.NewArchive(t, kit.SessionID(1))
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-1", 1, 5)...)
	d.WaitFor(t, id, 5)
	damage := func(by int) {
		t.Helper()
		require.NoError(t, kit.Exec(t, d.AuditviewDB.AdminDSN,
			`update archives set last_sequence = last_sequence + $2 where conversation_id = $1`, id, by))
	}
	damage(1)
	var want []kit.Event
	for n := range 20 { // more than a page of the replay
		want = append(want, kit.Turn(fmt.Sprintf("turn-%d", n+1), 1+5*n, 5)...)
		if n > 0 {
			d.MustAppend(t, kit.SessionID(1), id, want[5*n:]...)
		}
	}
	d.MustAppend(t, kit.SessionID(1), other, kit.Turn("turn-1", 1, 3)...)
	d.WaitFor(t, other, 3)
	drained(t, d.IngestDB)
	p := parkedStreams(t, d)[id]
	assert.Equal(t, []int64{3, 21, 19}, []int64{p.FromVersion, p.ToVersion, p.Count})
	assert.NotEmpty(t, p.Error)

	replay := func(stream string) []int {
		t.Helper()
		replayed, still, err := auditview.ReplayParked(t.Context(), dsn, stream)
		require.NoError(t, err)
		return []int{replayed, still}
	}
	assert.Equal(t, []int{0, 19}, replay(""), "still damaged")
	damage(-1)
	assert.Equal(t, []int{0, 0}, replay(other))
	assert.Equal(t, []int{19, 0}, replay(id))
	assert.Equal(t, want, kit.Submitted(d.WaitFor(t, id, 100).Events))
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-21", 101, 5)...)
	assert.Len(t, d.WaitFor(t, id, 105).Events, 105)
	assert.Empty(t, parkedStreams(t, d))
}

// parkedStreams returns what is parked, by stream id.
func parkedStreams(t *testing.T, d *kit.Deployment) map[string]auditview.ParkedStream {
	t.Helper()
	status, err := auditview.RelayStatus(t.Context(), config.Secret(d.AuditviewDB.ReaderDSN))
	require.NoError(t, err)
	parked := map[string]auditview.ParkedStream{}
	for _, p := range status.Parked {
		parked[p.ID] = p
	}
	return parked
}
