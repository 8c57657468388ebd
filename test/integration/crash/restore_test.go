package crash_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/test/integration/internal/kit"
)

// Ingest's database is dumped and restored into a new cluster, where transaction ids
// begin again: what waits in the outbox is delivered, and everything goes on.
func TestTheRelayContinuesInANewCluster(t *testing.T) {
	t.Parallel()
	from := newServer(t)
	ofIngest, ofAuditview := from.migrated()
	s := newSystem(t, options{ingestDB: ofIngest, auditviewDB: ofAuditview})
	s.start()
	history := map[string][]kit.Event{}
	for range 3 {
		id := s.newArchive()
		history[id] = s.append(id, kit.Turn("turn-1", 1, 10))
	}
	for id, events := range history {
		s.serves(id, events)
	}
	s.settled()
	s.auditview.kill()
	for range 3 {
		history[s.newArchive()] = nil
	}
	for id, events := range history {
		history[id] = append(events, s.append(id, kit.Turn("turn-2", len(events)+1, 20))...)
	}
	s.ingest.terminate()()

	// The new cluster shall be far behind in transactions.
	require.NoError(t, kit.Exec(t, from.adminDSN, `do $$ begin for i in 1..5000 loop perform txid_current(); commit; end loop; end $$`))
	const waiting, transaction = `select count(*) from outbox`, `select pg_current_xact_id()::text::bigint`
	left, last := kit.Count(t, ofIngest.AdminDSN, waiting), kit.Count(t, from.adminDSN, transaction)
	assert.Equal(t, 9, left)
	const dump = "/tmp/ingest.dump"
	from.exec("pg_dump", "--format=custom", "--file="+dump, ofIngest.Name)
	to := newServer(t)
	copyFile(t, from, to, dump)
	s.IngestDB = to.bootstrap(database.Ingest)
	to.exec("pg_restore", "--exit-on-error", "--dbname="+s.IngestDB.Name, dump)
	assert.Equal(t, left, kit.Count(t, s.IngestDB.AdminDSN, waiting))
	assert.Less(t, kit.Count(t, to.adminDSN, transaction), last)

	s.ingest, s.Ingest = s.newIngest(s.IngestDB.ServiceDSN, s.relayURL, nil)
	s.auditview.start()
	s.ingest.start()
	awaitReady(t, s.Auditview)
	awaitReady(t, s.Ingest)
	for id, events := range history {
		s.serves(id, events)
		history[id] = append(events, s.append(id, kit.Turn("turn-3", len(events)+1, 5))...)
	}
	history[s.newArchive()] = nil
	for id, events := range history {
		s.serves(id, events)
	}
	s.settled()
}

// copyFile copies a file from one server's container to another's.
func copyFile(t *testing.T, from, to *server, path string) {
	t.Helper()
	file, err := from.container.CopyFileFromContainer(t.Context(), path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(file)
	require.NoError(t, err)
	require.NoError(t, to.container.CopyToContainer(t.Context(), content, path, 0o644))
}
