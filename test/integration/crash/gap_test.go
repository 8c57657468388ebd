package crash_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/ingest"
	"verbatim.internal/test/integration/internal/kit"
)

// readModel are the tables of auditview that are built from messages.
const readModel = `archives, archive_members, archive_events, run_links, runs, run_trace_events, registry_changes, executions,
	execution_events, execution_tasks, execution_attributions, execution_approvals, execution_grants, execution_callback_attempts,
	streams, parked_messages`

// What auditview has lost of a stream comes back by itself, with the stream's next event.
func TestAGapHealsItself(t *testing.T) {
	t.Parallel()
	losses := map[string]struct{ before, lose string }{
		"the stream's row is gone": {`select 1`, `delete from streams where stream_id = $1`},
		"the whole archive is gone": {`select 1`, `with s as (delete from streams where stream_id = $1),
			a as (delete from archives where conversation_id = $1::uuid), m as (delete from archive_members where conversation_id = $1::uuid)
			delete from archive_events where conversation_id = $1::uuid`},
		"the archive is older": {
			`create table old_archives as select * from archives; create table old_streams as select * from streams`,
			`with s as (update streams s set version = o.version from old_streams o where s.stream_id = $1 and o.stream_id = $1),
				e as (delete from archive_events e using old_archives o where e.conversation_id = $1::uuid
					and o.conversation_id = $1::uuid and e.sequence > o.last_sequence)
				update archives a set last_sequence = o.last_sequence, message_count = o.message_count, turn_count = o.turn_count,
					text_bytes = o.text_bytes, updated_at = o.updated_at
				from old_archives o where a.conversation_id = $1::uuid and o.conversation_id = $1::uuid`,
		},
	}
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := kit.Start(t, kit.Options{HTTP: true})
			id, other := d.NewArchive(t, kit.SessionID(1)), d.NewArchive(t, kit.SessionID(2))
			want := kit.Turn("turn-1", 1, 50)
			d.MustAppend(t, kit.SessionID(1), id, want...)
			d.WaitFor(t, id, 50)
			require.NoError(t, kit.Exec(t, d.AuditviewDB.AdminDSN, loss.before))
			for n := range 3 {
				turn := kit.Turn(fmt.Sprintf("turn-%d", n+2), len(want)+1, 20)
				want = append(want, turn...)
				d.MustAppend(t, kit.SessionID(1), id, turn...)
			}
			d.WaitFor(t, id, len(want))
			drained(t, d.IngestDB)
			require.NoError(t, kit.Exec(t, d.AuditviewDB.AdminDSN, loss.lose, id))

			next := kit.Turn("turn-9", len(want)+1, 3)
			want = append(want, next...)
			d.MustAppend(t, kit.SessionID(1), id, next...)
			d.MustAppend(t, kit.SessionID(2), other, kit.Turn("turn-1", 1, 3)...)
			assert.Equal(t, want, kit.Submitted(d.WaitFor(t, id, len(want)).Events))
			d.WaitFor(t, other, 3)
			drained(t, d.IngestDB)
			assert.Empty(t, parkedStreams(t, d))
			assert.Equal(t, 6, kit.Count(t, d.AuditviewDB.AdminDSN, `select version from streams where stream_id = $1`, id))
		})
	}
}

// An emptied auditview comes back by a rebuild, while agents write, to the same bytes of
// every answer that an administrator can get.
func TestAnEmptiedReadModelComesBackToTheSameBytes(t *testing.T) {
	t.Parallel()
	const runID = "323e4567-e89b-42d3-a456-426614174001"
	registry := kit.NewRegistry(3)
	registry.Runs = []kit.Run{{
		RunID: runID, SessionID: kit.SessionID(2), ClientAppID: "app", RouteKey: "orders",
		ThreadID: 9, ClientConversationID: "linked", ClientTurnID: "turn-1",
	}}
	d := kit.Start(t, kit.Options{HTTP: true, Registry: registry.Encode()})
	long := d.NewArchive(t, kit.SessionID(1), kit.SessionID(2))
	for n := range 30 { // more than one part of a snapshot
		d.MustAppend(t, kit.SessionID(1), long, kit.Turn(fmt.Sprintf("turn-%d", n), 1+50*n, 50)...)
	}
	linked := kit.NewCreation()
	linked.Schema, linked.ClientConversationID, linked.Route = "bailing.agent-conversation-audit-create.v2", "linked", ""
	linked.Members = []kit.Member{
		{SessionID: kit.SessionID(1), ClientAppID: "app", Route: "orders", Label: "Zweite Filiale 👩‍👧"},
		{SessionID: kit.SessionID(2), ClientAppID: "app", Route: "orders"},
	}
	bound := d.Enrol(t, linked, kit.SessionID(1), kit.SessionID(2))
	link := kit.Turn("turn-1", 1, 3)
	link[1] = kit.Event{EventID: "link", Sequence: 2, ClientTurnID: "turn-1", Kind: "run_link", RunID: runID, MemberSessionID: kit.SessionID(2)}
	d.MustAppend(t, kit.SessionID(1), bound, link...)
	enrolling, err := d.Create(t.Context(), kit.SessionID(3), kit.NewCreation(kit.SessionID(2), kit.SessionID(3)))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, enrolling.Status)
	d.WaitFor(t, long, 1500)
	d.WaitFor(t, bound, 3)
	drained(t, d.IngestDB)
	trace := "/admin/api/threads/9/agent-runs/" + runID + "/trace"
	before, err := answers(t, d, trace)
	require.NoError(t, err)
	require.Greater(t, len(before), 30)

	require.NoError(t, kit.Exec(t, d.AuditviewDB.AdminDSN, `truncate `+readModel))
	empty, err := answers(t, d)
	require.NoError(t, err)
	assert.Len(t, empty, 1)
	n, err := ingest.Rebuild(t.Context(), config.Secret(d.IngestDB.ServiceDSN), "")
	require.NoError(t, err)
	changes := kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from bz_registry_changes`)
	assert.Equal(t, 4+changes, n, "three archives, a run and the registry's changes")
	kit.Eventually(t, patience, func() error {
		after, err := answers(t, d, trace)
		if err == nil && !maps.Equal(before, after) {
			err = errors.New("the bytes differ")
		}
		return err
	})
	drained(t, d.IngestDB)
	assert.Empty(t, parkedStreams(t, d))
	d.MustAppend(t, kit.SessionID(1), long, kit.Turn("turn-later", 1501, 5)...)
	assert.Len(t, d.WaitFor(t, long, 1505).Events, 1505)
}

// answers returns all pages of the list, all pages of each archive in it, and what the
// paths answer, by path.
func answers(t *testing.T, d *kit.Deployment, paths ...string) (map[string]string, error) {
	t.Helper()
	bodies := map[string]string{}
	get := func(path string, page any) error {
		answer, err := exchange(t.Context(), d.Auditview, kit.Request{Method: http.MethodGet, Path: path, Bearer: kit.Viewer})
		if err != nil {
			return err
		}
		if answer.Status != http.StatusOK {
			return fmt.Errorf("%s: status %d", path, answer.Status)
		}
		bodies[path] = string(answer.Body)
		answer.Decode(t, http.StatusOK, page)
		return nil
	}
	for _, path := range paths {
		if err := get(path, &struct{}{}); err != nil {
			return nil, err
		}
	}
	var ids []string
	for offset := 0; ; {
		var page listPage
		if err := get(fmt.Sprintf("/admin/api/conversation-audits?limit=2&offset=%d", offset), &page); err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			ids = append(ids, item.ConversationID)
		}
		if page.NextOffset == nil {
			break
		}
		offset = *page.NextOffset
	}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		page := kit.Detail{HasMore: true}
		for page.HasMore {
			after := page.NextAfterSequence
			page = kit.Detail{}
			if err := get(fmt.Sprintf("/admin/api/conversation-audits/%s?limit=50&after_sequence=%d", id, after), &page); err != nil {
				return nil, err
			}
		}
	}
	return bodies, nil
}
