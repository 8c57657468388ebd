package integration_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/test/integration/internal/kit"
)

const (
	insufficientPrivilege = "42501"
	invalidAuthorization  = "28"
)

// Append-only by grant: whatever ingest's code does, its role cannot change what
// was archived.
func TestIngestsRoleCannotChangeEvents(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	id := d.NewArchive(t, kit.SessionID(1))
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-1", 1, 3)...)
	for _, statement := range []string{
		`update bz_agent_conversation_events set content = 'changed'`,
		`update bz_agent_conversation_events set created_at = now()`,
		`delete from bz_agent_conversation_events`,
		`truncate bz_agent_conversation_events`,
		`drop table bz_agent_conversation_events`,
		`alter table bz_agent_conversation_events add column x int`,
		`create trigger t before insert on bz_agent_conversation_events execute function suppress_redundant_updates_trigger()`,
		`update bz_agent_conversation_run_links set conversation_id = gen_random_uuid()`,
		`delete from bz_agent_conversation_run_links`,
		`delete from bz_agent_conversation_audits`,
		`update bz_agent_conversation_audits set creator_session_id = gen_random_uuid()`,
		`update bz_agent_conversation_audits set membership_version = 1`,
		`delete from bz_agent_conversation_members`,
		`update bz_agent_conversation_members set session_id = gen_random_uuid()`,
		`update bz_agent_conversation_members set client_app_id = 'other'`,
		`delete from bz_agent_sessions`,
		`create table mine (x int)`,
		`set role verbatim_ingest_owner`,
	} {
		err := kit.Exec(t, d.IngestDB.ServiceDSN, statement)
		assert.Equal(t, insufficientPrivilege, sqlState(err), "%s: %v", statement, err)
	}
	assert.Equal(t, kit.Turn("turn-1", 1, 3), kit.Submitted(d.WaitFor(t, id, 3).Events))
}

func TestReadersReadAndSeeNoTokens(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	for dsn, tables := range map[string][]string{
		d.IngestDB.ReaderDSN:    {"bz_client_tokens", "bz_agent_session_tokens"},
		d.AuditviewDB.ReaderDSN: {"administrator_tokens"},
	} {
		for _, table := range tables {
			assert.Equal(t, insufficientPrivilege, sqlState(kit.Exec(t, dsn, `select from `+table)), table)
		}
	}
	require.NoError(t, kit.Exec(t, d.IngestDB.ReaderDSN, `select from bz_agent_conversation_events`))
	assert.Equal(t, insufficientPrivilege, sqlState(kit.Exec(t, d.IngestDB.ReaderDSN, `delete from outbox`)))
	require.NoError(t, kit.Exec(t, d.AuditviewDB.ReaderDSN, `select from archive_events`))
	assert.Equal(t, insufficientPrivilege, sqlState(kit.Exec(t, d.AuditviewDB.ReaderDSN, `delete from archive_events`)))
}

// Neither service's roles can even connect to the other's database.
func TestTheServicesCannotReachEachOthersDatabase(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	for _, c := range []struct{ dsn, database string }{
		{d.AuditviewDB.ServiceDSN, name(t, d.IngestDB.ServiceDSN)},
		{d.AuditviewDB.OwnerDSN, name(t, d.IngestDB.ServiceDSN)},
		{d.AuditviewDB.ReaderDSN, name(t, d.IngestDB.ServiceDSN)},
		{d.IngestDB.ServiceDSN, name(t, d.AuditviewDB.ServiceDSN)},
		{d.IngestDB.OwnerDSN, name(t, d.AuditviewDB.ServiceDSN)},
		{d.IngestDB.ReaderDSN, name(t, d.AuditviewDB.ServiceDSN)},
	} {
		dsn, err := pgtest.On(c.dsn, c.database)
		require.NoError(t, err)
		conn, err := pgx.Connect(t.Context(), dsn)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		state := sqlState(err)
		assert.True(t, state == insufficientPrivilege || len(state) == 5 && state[:2] == invalidAuthorization, "connected, or another failure: %v", err)
	}
}

func name(t *testing.T, dsn string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	return cfg.Database
}

// sqlState returns the state of a server's error, or "" for success and other failures.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
