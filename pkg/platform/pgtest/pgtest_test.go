package pgtest_test

import (
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
)

func migrations() fstest.MapFS {
	return fstest.MapFS{
		"001_note.sql": {Data: []byte("-- +goose Up\ncreate table note (id bigint primary key);\ngrant select, insert on note to verbatim_ingest;\ngrant select on note to verbatim_ingest_reader;\n")},
		"002_more.sql": {Data: []byte("-- +goose Up\nalter table note add column text text;\n")},
	}
}

func exec(t *testing.T, dsn, statement string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), statement)
	return err
}

func TestNewGivesEachTestADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	one := pgtest.New(t, database.Ingest, migrations(), 0)
	two := pgtest.New(t, database.Ingest, migrations(), 0)

	require.NoError(t, exec(t, one.ServiceDSN, `insert into note values (1, 'a')`))
	require.NoError(t, exec(t, two.ServiceDSN, `insert into note values (1, 'b')`))
	require.NoError(t, exec(t, one.ReaderDSN, `select * from note`))
	require.NoError(t, exec(t, one.OwnerDSN, `drop table note`))
	require.NoError(t, exec(t, two.AdminDSN, `select id, text from note`))
}

func TestNewKeepsTheRolesApart(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, migrations(), 0)
	foreign := pgtest.New(t, database.Auditview, nil, -1)

	require.ErrorContains(t, exec(t, db.ServiceDSN, `update note set id = 2`), "42501")
	require.ErrorContains(t, exec(t, db.ReaderDSN, `insert into note values (2)`), "42501")
	require.ErrorContains(t, exec(t, db.ServiceDSN, `create table mine ()`), "42501")

	stranger, err := pgtest.On(foreign.ServiceDSN, db.Name)
	require.NoError(t, err)
	_, err = pgx.Connect(t.Context(), stranger)
	require.ErrorContains(t, err, "42501")
}

func TestNewStopsAtAVersion(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, migrations(), 1)

	require.ErrorContains(t, exec(t, db.ServiceDSN, `select text from note`), "42703")
}
