package main

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRelayCheckMendsWhatWasLost(t *testing.T) {
	t.Parallel()
	server := otherServer(t)
	dir := dataDir(t)
	p := startWith(t, []string{"VERBATIM_ADMIN_DSN=" + server.DSN("postgres")}, "up", "--data-dir", dir, "--ingest", "127.0.0.1:0",
		"--auditview", "127.0.0.1:0", "--control", "127.0.0.1:0", "--postgres", "-",
		"--registry", file(t, "r.json", registry), "--admins", file(t, "a.json", admins))
	r := p.awaitReady(t)
	id := create(t, r)
	awaitListed(t, r, id)
	check := func(args ...string) *process {
		return start(t, append([]string{"relay", "check", "--data-dir", dir}, args...)...)
	}
	// The archive, and what the registry file changed: a client, a route and a session.
	assert.Equal(t, "4 streams compared; waiting to be sent: 0; parked: 0; lost: 0; ahead: 0; sent again: 0\n", check().output(t))

	cfg, err := pgx.ParseConfig(server.DSN("postgres"))
	require.NoError(t, err)
	cfg.Database = "verbatim_auditview"
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	exec := func(statement string) {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	exec(`truncate archives, archive_members; delete from streams where stream_kind = 'archive'`)
	dry := check("--dry-run")
	assert.Equal(t, "4 streams compared; waiting to be sent: 0; parked: 0; lost: 1; ahead: 0; sent again: 0\nlost: archive/"+id+", version 0 of 1\n", dry.rest(t))
	assert.Equal(t, 1, dry.awaitExit(t))
	assert.Contains(t, check().output(t), "; lost: 1; ahead: 0; sent again: 1\n")
	awaitListed(t, r, id)

	exec(`insert into streams values ('archive', '00000000-0000-4000-8000-000000000000', 7)`)
	ahead := check("--json")
	assert.Contains(t, ahead.rest(t), `"ahead": 1`)
	assert.Equal(t, 1, ahead.awaitExit(t))
	assert.Contains(t, ahead.stderr.String(), "docs/runbook.md")
	require.NoError(t, conn.Close(t.Context()))
	p.stop(t)
}
