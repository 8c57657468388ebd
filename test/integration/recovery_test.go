package integration_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/ingest"
	auditviewsql "verbatim.internal/sql/auditview"
	"verbatim.internal/test/integration/internal/kit"
)

const recoveryLimit = 20 * time.Second

// served returns the bodies that the admin API answers with, by path.
func served(t *testing.T, d *kit.Deployment, paths []string) (map[string]string, error) {
	t.Helper()
	bodies := map[string]string{}
	for _, path := range paths {
		answer, err := d.Auditview.Do(t.Context(), kit.Request{Method: http.MethodGet, Path: path, Bearer: kit.Viewer})
		if err != nil {
			return nil, err
		}
		if answer.Status != http.StatusOK {
			return nil, fmt.Errorf("%s: status %d", path, answer.Status)
		}
		bodies[path] = string(answer.Body)
	}
	return bodies, nil
}

// loseReadModel replaces auditview's database by an empty one.
func loseReadModel(t *testing.T, d *kit.Deployment) {
	t.Helper()
	d.StopAuditview()
	d.AuditviewDB = pgtest.New(t, database.Auditview, auditviewsql.FS, 0)
	d.ApplyAdministrators()
	d.StartAuditview()
}

// history writes archives of every shape and returns the paths that show them.
func history(t *testing.T, d *kit.Deployment) (archives, paths []string) {
	t.Helper()
	paths = []string{"/admin/api/conversation-audits?limit=100"}
	add := func(id string) string {
		archives = append(archives, id)
		paths = append(paths, "/admin/api/conversation-audits/"+id+"?limit=200")
		return id
	}
	labelled := kit.NewCreation(kit.SessionID(1), kit.SessionID(2))
	labelled.MemberLabels = map[string]string{kit.SessionID(2): "Zweite Filiale 👩‍👧"}
	v1 := add(d.Enrol(t, labelled, kit.SessionID(1), kit.SessionID(2)))
	for i := range 4 {
		d.MustAppend(t, kit.SessionID(1), v1, kit.Turn(fmt.Sprintf("turn-%d", i), 1+50*i, 50)...)
	}
	bindings := add(d.Enrol(t, kit.Creation{
		Schema: "bailing.agent-conversation-audit-create.v2", ClientArchiveID: kit.UUID(), ClientConversationID: "bound",
		Members: []kit.Member{
			{SessionID: kit.SessionID(3), ClientAppID: "app", Route: "orders", Label: "third"},
			{SessionID: kit.SessionID(1), ClientAppID: "app", Route: "orders"},
		},
	}, kit.SessionID(3), kit.SessionID(1)))
	link := kit.Turn("turn-1", 1, 3)
	link[1] = kit.Event{
		EventID: "link", Sequence: 2, ClientTurnID: "turn-1", Kind: "run_link",
		RunID: linkedRun, MemberSessionID: kit.SessionID(1),
	}
	d.MustAppend(t, kit.SessionID(3), bindings, link...)
	paths = append(paths, "/admin/api/threads/7/agent-runs/"+linkedRun+"/trace")
	enrolling, err := d.Create(t.Context(), kit.SessionID(2), kit.NewCreation(kit.SessionID(2), kit.SessionID(3)))
	require.NoError(t, err)
	var header kit.Header
	enrolling.Decode(t, http.StatusOK, &header)
	add(header.ConversationID)
	d.WaitFor(t, v1, 200)
	d.WaitFor(t, bindings, 3)
	d.WaitFor(t, header.ConversationID, 0)
	return archives, paths
}

const linkedRun = "223e4567-e89b-42d3-a456-426614174001"

func linkedRegistry() []byte {
	registry := kit.NewRegistry(3)
	registry.Runs = []kit.Run{{
		RunID: linkedRun, SessionID: kit.SessionID(1), ClientAppID: "app", RouteKey: "orders",
		ThreadID: 7, ClientConversationID: "bound", ClientTurnID: "turn-1",
	}}
	return registry.Encode()
}

// An empty auditview comes back to the same bytes.
func TestRebuildGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{Registry: linkedRegistry()})
	archives, paths := history(t, d)
	before, err := served(t, d, paths)
	require.NoError(t, err)

	loseReadModel(t, d)
	_, err = served(t, d, paths[1:2])
	require.Error(t, err, "the archive survived the loss of its database")
	n, err := ingest.Rebuild(t.Context(), config.Secret(d.IngestDB.ServiceDSN), "")
	require.NoError(t, err)
	changes := kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from bz_registry_changes`)
	assert.Equal(t, len(archives)+1+changes, n, "streams: the archives, the run and the changes of the registry")

	kit.Eventually(t, recoveryLimit, func() error {
		after, err := served(t, d, paths)
		if err == nil && !assert.ObjectsAreEqual(before, after) {
			err = errors.New("the bytes differ")
		}
		return err
	})
	for path, body := range before {
		after, err := served(t, d, []string{path})
		require.NoError(t, err)
		assert.Equal(t, body, after[path], path)
	}

	d.MustAppend(t, kit.SessionID(1), archives[0], kit.Turn("later", 201, 5)...)
	assert.Len(t, d.WaitFor(t, archives[0], 205).Events, 205)
}

// A stream whose past the read model has lost comes back whole with its next event.
func TestAGapHealsByItself(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{Registry: linkedRegistry()})
	archives, _ := history(t, d)
	want := d.WaitFor(t, archives[0], 200).Events
	loseReadModel(t, d)
	next := kit.Turn("later", 201, 5)
	d.MustAppend(t, kit.SessionID(1), archives[0], next...)
	detail := d.WaitFor(t, archives[0], 205)
	assert.Equal(t, want, detail.Events[:200])
	assert.Equal(t, next, kit.Submitted(detail.Events[200:]))
}

// What is written while auditview is down is served once it is back, in order.
func TestAuditviewCatchesUpAfterARestart(t *testing.T) {
	t.Parallel()
	for name, http := range map[string]bool{"in process": false, "http": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := kit.Start(t, kit.Options{HTTP: http})
			id := d.NewArchive(t, kit.SessionID(1), kit.SessionID(2))
			d.MustAppend(t, kit.SessionID(1), id, kit.Turn("before", 1, 10)...)
			d.StopAuditview()
			want := kit.Turn("before", 1, 10)
			for i := range 5 {
				turn := kit.Turn(fmt.Sprintf("while-%d", i), 11+50*i, 50)
				d.MustAppend(t, kit.SessionID(1), id, turn...)
				want = append(want, turn...)
			}
			if http {
				d.StopIngest() // it learns auditview's new address at its start
			}
			d.StartAuditview()
			if http {
				d.StartIngest()
			}
			assert.Equal(t, want, kit.Submitted(d.WaitFor(t, id, len(want)).Events))
		})
	}
}

// A service that is stopped right after its start, when half of it is not running
// yet, stops at once.
func TestServicesStopRightAfterTheirStart(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	for range 20 {
		began := time.Now()
		d.StopIngest()
		d.StopAuditview()
		require.Less(t, time.Since(began), 5*time.Second)
		d.StartAuditview()
		d.StartIngest()
	}
}
