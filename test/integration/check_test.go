package integration_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// Whatever auditview lost without anybody writing to it again, the relay's own check finds
// and mends: a whole database, a stream, the last messages of one. It comes back to the
// same bytes, over both transports; what is parked is left alone.
func TestWhatWasLostIsFoundByTheCheck(t *testing.T) {
	t.Parallel()
	for name, http := range map[string]bool{"in process": false, "http": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := kit.Start(t, kit.Options{
				Registry: linkedRegistry(), HTTP: http,
				IngestEnv: map[string]string{"VERBATIM_INGEST_RELAY_CHECK_INTERVAL": "50ms"},
			})
			archives, paths := history(t, d)
			before, err := served(t, d, paths)
			require.NoError(t, err)
			streams := kit.Count(t, d.AuditviewDB.AdminDSN, `select count(*) from streams`)
			comesBack := func(what string) {
				t.Helper()
				kit.Eventually(t, recoveryLimit, func() error {
					after, err := served(t, d, paths)
					if err == nil && !assert.ObjectsAreEqual(before, after) {
						err = errors.New(what + ": the bytes differ")
					}
					return err
				})
				assert.Zero(t, kit.Count(t, d.AuditviewDB.AdminDSN, `select count(*) from parked_messages`), what)
				assert.Equal(t, streams, kit.Count(t, d.AuditviewDB.AdminDSN, `select count(*) from streams`), what)
			}
			for what, statements := range map[string][]string{
				"a stream": {
					`delete from archive_events where conversation_id = $1`, `delete from archive_members where conversation_id = $1`,
					`delete from archives where conversation_id = $1`, `delete from streams where stream_id = $1::uuid::text`,
				},
				"its last messages": {
					`delete from archive_events where conversation_id = $1 and sequence > 150`,
					`update archives set last_sequence = 150 where conversation_id = $1`,
					`update streams set version = version - 1 where stream_id = $1::uuid::text`,
				},
			} {
				for _, statement := range statements {
					require.NoError(t, kit.Exec(t, d.AuditviewDB.AdminDSN, statement, archives[0]))
				}
				comesBack(what)
			}
			if !http { // where auditview may be replaced under ingest's feet
				loseReadModel(t, d)
				comesBack("the database")
			}
		})
	}
}

// A stream that waits behind a parked message is not sent again by the check: it is behind
// for a reason that only an operator can end.
func TestAParkedStreamIsLeftAloneByTheCheck(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{IngestEnv: map[string]string{"VERBATIM_INGEST_RELAY_CHECK_INTERVAL": "20ms"}})
	parked, other := d.NewArchive(t, kit.SessionID(1), kit.SessionID(2)), d.NewArchive(t, kit.SessionID(1), kit.SessionID(2))
	d.WaitFor(t, parked, 0)
	d.WaitFor(t, other, 0)
	for _, statement := range []string{
		`insert into parked_messages select stream_kind, stream_id, version, 0, 't', '{}', 'a reason', now() from streams where stream_id = $1`,
		`update streams set version = version - 1 where stream_id = $1`,
	} {
		require.NoError(t, kit.Exec(t, d.AuditviewDB.AdminDSN, statement, parked))
	}
	// The other one is lost later, and is back: the check went over both.
	require.NoError(t, kit.Exec(t, d.AuditviewDB.AdminDSN, `update streams set version = 1 where stream_id = $1`, other))
	version := `select version from streams where stream_id = $1`
	stored := kit.Count(t, d.IngestDB.AdminDSN, `select stream_version from bz_agent_conversation_audits where conversation_id = $1`, other)
	kit.Eventually(t, recoveryLimit, func() error {
		if kit.Count(t, d.AuditviewDB.AdminDSN, version, other) < stored {
			return errors.New("not back yet")
		}
		return nil
	})
	assert.Equal(t, stored-1, kit.Count(t, d.AuditviewDB.AdminDSN, version, parked))
	assert.Equal(t, 1, kit.Count(t, d.AuditviewDB.AdminDSN, `select count(*) from parked_messages`))
}
