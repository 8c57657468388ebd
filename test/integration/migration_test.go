package integration_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// noticed is how long a running service may take to see an applied migration.
const noticed = 5 * time.Second

func crossBinding() kit.Creation {
	return kit.Creation{
		Schema: "bailing.agent-conversation-audit-create.v2", ClientArchiveID: kit.UUID(), ClientConversationID: "cross",
		Members: []kit.Member{{SessionID: kit.SessionID(1), ClientAppID: "app", Route: "orders"}},
	}
}

func capability(t *testing.T, d *kit.Deployment) bool {
	t.Helper()
	answer := d.Ingest.Must(kit.Request{Method: http.MethodGet, Path: kit.ArchivesPath + "/capabilities", Bearer: d.Bearer(kit.SessionID(1))})
	var got struct {
		CrossBindingMembers bool `json:"cross_binding_members"`
	}
	answer.Decode(t, http.StatusOK, &got)
	return got.CrossBindingMembers
}

// Each migration is applied while the services run, and writes go on meanwhile.
func TestMigrationsAreAppliedWhileRunning(t *testing.T) {
	t.Parallel()
	const registryAndOutbox = 2
	d := kit.Start(t, kit.Options{IngestVersion: registryAndOutbox})
	assert.False(t, capability(t, d), "without 057: no archives, and that is an answer")
	for _, creation := range []kit.Creation{kit.NewCreation(kit.SessionID(1)), crossBinding()} {
		answer, err := d.Create(t.Context(), kit.SessionID(1), creation)
		require.NoError(t, err)
		assert.Equal(t, http.StatusServiceUnavailable, answer.Status)
		assert.Equal(t, "conversation_audit_unavailable", answer.Code())
	}
	answer, err := d.Append(t.Context(), kit.SessionID(1), kit.UUID(), kit.Turn("t", 1, 2)...)
	require.NoError(t, err)
	assert.Equal(t, "conversation_audit_unavailable", answer.Code())

	d.MigrateIngest(57)
	kit.Eventually(t, noticed, func() error {
		answer, err := d.Create(t.Context(), kit.SessionID(1), kit.NewCreation(kit.SessionID(1)))
		if err == nil && answer.Status != http.StatusOK {
			err = fmt.Errorf("status %d", answer.Status)
		}
		return err
	})
	assert.False(t, capability(t, d))
	answer, err = d.Create(t.Context(), kit.SessionID(1), crossBinding())
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, answer.Status)
	assert.Equal(t, "conversation_audit_cross_binding_unavailable", answer.Code())

	v1 := d.NewArchive(t, kit.SessionID(1), kit.SessionID(2))
	d.MustAppend(t, kit.SessionID(1), v1, kit.Turn("turn-1", 1, 5)...)
	stop := keepAppending(t, d, v1, 6)
	d.MigrateIngest(58)
	kit.Eventually(t, noticed, func() error {
		if !capability(t, d) {
			return fmt.Errorf("058 is not noticed")
		}
		return nil
	})
	answer, err = d.Create(t.Context(), kit.SessionID(1), crossBinding())
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, answer.Status, "body: %s", answer.Body)
	last := stop()

	detail := d.WaitFor(t, v1, last)
	assert.Len(t, detail.Events, last)
	raw := d.Auditview.Must(kit.Request{Method: http.MethodGet, Path: "/admin/api/conversation-audits/" + v1, Bearer: d.Bearer(kit.Viewer)})
	assert.NotContains(t, string(raw.Body), "client_name", "a v1 archive stays v1")
	assert.Equal(t, 0, kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from bz_agent_conversation_members
		where conversation_id = '`+v1+`' and (client_app_id is not null or route_key is not null or client_name is not null)`))
}

// keepAppending appends turn after turn until stopped, and returns the last sequence.
func keepAppending(t *testing.T, d *kit.Deployment, id string, first int) (stop func() int) {
	t.Helper()
	enough := make(chan struct{})
	var group sync.WaitGroup
	last := first - 1
	group.Go(func() {
		for n := 2; ; n++ {
			select {
			case <-enough:
				return
			default:
			}
			answer, err := d.Append(t.Context(), kit.SessionID(1), id, kit.Turn(fmt.Sprintf("turn-%d", n), last+1, 4)...)
			if err != nil || answer.Status != http.StatusOK {
				t.Errorf("an append during the migration: status %d, %v: %s", answer.Status, err, answer.Body)
				return
			}
			last += 4
		}
	})
	return func() int {
		close(enough)
		group.Wait()
		return last
	}
}

func TestServicesStartOnEmptyDatabases(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{IngestVersion: kit.NoMigration, AuditviewVersion: kit.NoMigration})
	for _, endpoint := range []*kit.Endpoint{d.Ingest, d.Auditview} {
		assert.Equal(t, http.StatusOK, endpoint.Must(kit.Request{Method: http.MethodGet, Path: "/healthz"}).Status)
		ready := endpoint.Must(kit.Request{Method: http.MethodGet, Path: "/readyz"})
		assert.Equal(t, http.StatusServiceUnavailable, ready.Status)
		assert.Contains(t, string(ready.Body), "001_", "it names what is missing")
	}
	d.MigrateIngest(0)
	d.MigrateAuditview()
	d.Apply(kit.NewRegistry(1).Encode())
	d.ApplyAdministrators()
	var id string
	kit.Eventually(t, noticed, func() error {
		answer, err := d.Create(t.Context(), kit.SessionID(1), kit.NewCreation(kit.SessionID(1)))
		if err != nil || answer.Status != http.StatusOK {
			return fmt.Errorf("status %d: %w", answer.Status, err)
		}
		var header kit.Header
		answer.Decode(t, http.StatusOK, &header)
		id = header.ConversationID
		return nil
	})
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-1", 1, 3)...)
	d.WaitFor(t, id, 3)
	for _, endpoint := range []*kit.Endpoint{d.Ingest, d.Auditview} {
		assert.Equal(t, http.StatusOK, endpoint.Must(kit.Request{Method: http.MethodGet, Path: "/readyz"}).Status)
	}
}

// 058 adds four columns and nothing else (contract: "Host packaging and migration").
func TestMigration058AddsFourColumnsOnly(t *testing.T) {
	t.Parallel()
	before := kit.Start(t, kit.Options{IngestVersion: 57})
	const columns = `select count(*) from information_schema.columns where table_schema = 'public' and table_name <> 'goose_db_version'`
	const tables = `select count(*) from information_schema.tables where table_schema = 'public'`
	columns57, tables57 := kit.Count(t, before.IngestDB.AdminDSN, columns), kit.Count(t, before.IngestDB.AdminDSN, tables)
	before.MigrateIngest(58)
	assert.Equal(t, columns57+4, kit.Count(t, before.IngestDB.AdminDSN, columns))
	assert.Equal(t, tables57, kit.Count(t, before.IngestDB.AdminDSN, tables))
	assert.Equal(t, 4, kit.Count(t, before.IngestDB.AdminDSN, columns+` and (table_name, column_name) in (
		('bz_agent_conversation_audits', 'membership_version'), ('bz_agent_conversation_members', 'client_app_id'),
		('bz_agent_conversation_members', 'route_key'), ('bz_agent_conversation_members', 'client_name'))`))
}
