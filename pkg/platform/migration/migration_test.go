package migration_test

import (
	"context"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/pkg/platform/pgtest"
)

func file(body string) *fstest.MapFile { return &fstest.MapFile{Data: []byte("-- +goose Up\n" + body)} }

func set() fstest.MapFS {
	return fstest.MapFS{
		"001_first.sql":   {Data: []byte("-- +goose Up\ncreate table first ();\n")},
		"057_archive.sql": {Data: []byte("-- +goose Up\ncreate table archive ();\n-- +goose StatementBegin\ncreate function f() returns int language plpgsql as $$ begin return 1; end $$;\n-- +goose StatementEnd\n")},
		"058_members.sql": {Data: []byte("-- +goose Up\ncreate table members ();\n")},
		"embed.go":        {Data: []byte("package sql")},
	}
}

type testBundle struct {
	db     pgtest.Database
	pool   *pgxpool.Pool // as the service
	reader *pgxpool.Pool
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	db := pgtest.New(t, database.Ingest, nil, -1)
	connect := func(dsn string) *pgxpool.Pool {
		pool, err := pgxpool.New(t.Context(), dsn)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		return pool
	}
	return &testBundle{db: db, pool: connect(db.ServiceDSN), reader: connect(db.ReaderDSN)}
}

func (b *testBundle) status(t *testing.T, fsys fstest.MapFS) migration.State {
	t.Helper()
	state, err := migration.Status(t.Context(), b.pool, fsys)
	require.NoError(t, err)
	same, err := migration.Status(t.Context(), b.reader, fsys)
	require.NoError(t, err)
	require.Equal(t, state, same)
	return state
}

func names(applied []migration.Applied) []string {
	var names []string
	for _, a := range applied {
		names = append(names, a.Name)
	}
	return names
}

func TestUpGoesStepByStep(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, migration.State{Pending: []string{"001_first.sql", "057_archive.sql", "058_members.sql"}}, b.status(t, set()))

	applied, err := migration.Up(t.Context(), b.db.OwnerDSN, set(), 57)
	require.NoError(t, err)
	require.Equal(t, []string{"001_first.sql", "057_archive.sql"}, names(applied))
	require.EqualValues(t, 57, applied[1].Version)
	require.Less(t, applied[1].Duration, time.Minute)
	require.Equal(t, migration.State{Current: 57, Pending: []string{"058_members.sql"}}, b.status(t, set()))

	applied, err = migration.Up(t.Context(), b.db.OwnerDSN, set(), 0)
	require.NoError(t, err)
	require.Equal(t, []string{"058_members.sql"}, names(applied))
	require.Equal(t, migration.State{Current: 58}, b.status(t, set()))

	applied, err = migration.Up(t.Context(), b.db.OwnerDSN, set(), 0)
	require.NoError(t, err)
	require.Empty(t, applied)

	older := set()
	delete(older, "058_members.sql")
	require.Equal(t, migration.State{Current: 58, Unknown: []int64{58}}, b.status(t, older))
}

func TestUpKeepsWhatCameBeforeAFailure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	broken := set()
	broken["002_broken.sql"] = file("create table half ();\ncreate table first ();\n")

	applied, err := migration.Up(t.Context(), b.db.OwnerDSN, broken, 0)
	require.ErrorContains(t, err, "42P07")
	require.NotContains(t, err.Error(), pgtest.Password(database.Ingest.Owner))
	require.Equal(t, []string{"001_first.sql"}, names(applied))
	require.Equal(t, migration.State{Current: 1, Pending: []string{"002_broken.sql", "057_archive.sql", "058_members.sql"}}, b.status(t, broken))
	var half *string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select to_regclass('half')::text`).Scan(&half))
	require.Nil(t, half)
}

func TestUpRunsOnceWhenStartedTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const runs = 4
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		applied []string
		errs    []error
	)
	for range runs {
		wg.Go(func() {
			done, err := migration.Up(t.Context(), b.db.OwnerDSN, set(), 0)
			mu.Lock()
			defer mu.Unlock()
			applied = append(applied, names(done)...)
			errs = append(errs, err)
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.ElementsMatch(t, []string{"001_first.sql", "057_archive.sql", "058_members.sql"}, applied)
}

func TestServicesCannotTouchTheVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := migration.Up(t.Context(), b.db.OwnerDSN, set(), 0)
	require.NoError(t, err)
	_, err = b.pool.Exec(t.Context(), `delete from goose_db_version`)
	require.ErrorContains(t, err, "42501")
	_, err = migration.Up(t.Context(), b.db.ServiceDSN, set(), 0)
	require.NoError(t, err, "with nothing to apply, even the service's role may look")
}

func TestUpRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	_, err := migration.Up(t.Context(), "postgres://u:geheim@[", set(), 0)
	require.Equal(t, database.ErrMalformedDSN, err)
	_, err = migration.Up(t.Context(), "postgres://u:geheim@127.0.0.1:1/d", set(), 56)
	require.ErrorContains(t, err, "no version 56")
	_, err = migration.Up(t.Context(), "postgres://u:geheim@127.0.0.1:1/d", set(), 0)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "geheim")
	misnamed := set()
	misnamed["later.sql"] = file("")
	_, err = migration.Up(t.Context(), "postgres://u@127.0.0.1:1/d", misnamed, 0)
	require.ErrorContains(t, err, "later.sql is not named NNN_name.sql")
}

// A migration that needs a table in use waits shortly at a time: those who come after it
// pass in between.
func TestUpLetsOthersPassWhileItWaitsForATable(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"001_a.sql": {Data: []byte("-- +goose Up\ncreate table a (x int);\n")},
		"002_b.sql": {Data: []byte("-- +goose Up\nalter table a add column y int;\n")},
	}
	db := pgtest.New(t, database.Ingest, files, 1)
	backup, err := pgx.Connect(t.Context(), db.OwnerDSN)
	require.NoError(t, err)
	t.Cleanup(func() { _ = backup.Close(context.Background()) })
	reading, err := backup.Begin(t.Context())
	require.NoError(t, err)
	_, err = reading.Exec(t.Context(), `select from a`)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := migration.Up(t.Context(), db.OwnerDSN, files, 0)
		done <- err
	}()
	other, err := pgx.Connect(t.Context(), db.OwnerDSN)
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	require.Eventually(t, func() bool { // the migration waits
		var waits bool
		err := backup.QueryRow(t.Context(), `select exists (select from pg_locks where not granted and relation = 'a'::regclass)`).Scan(&waits)
		return err == nil && waits
	}, 20*time.Second, 10*time.Millisecond)
	_, err = other.Exec(t.Context(), `insert into a values (1)`) // queued behind it, and let pass
	require.NoError(t, err)
	require.NoError(t, reading.Commit(t.Context()))
	require.NoError(t, <-done)
}
