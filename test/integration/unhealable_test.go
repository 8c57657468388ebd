package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview"
	"verbatim.internal/test/integration/internal/kit"
)

// A message of a stream that is not stored, with a version that nothing came before,
// is a gap that no snapshot can close: it is parked, and its partition flows on.
func TestAGapThatCannotBeHealedStopsItsStreamOnly(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{HTTP: true})
	id := d.NewArchive(t, kit.SessionID(1))
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-1", 1, 4)...)
	d.WaitFor(t, id, 4)
	strangers := []string{kit.UUID(), "no-uuid"}
	for _, stranger := range strangers {
		require.NoError(t, kit.Exec(t, d.IngestDB.OwnerDSN, `insert into outbox
			(partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
			values ($1, 'archive', $2, 7, 'verbatim.archive.events_appended.v1', '{"first_sequence":1}', 0, now())`,
			transport.Partition(id), stranger))
	}
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-2", 5, 4)...)
	assert.Len(t, d.WaitFor(t, id, 8).Events, 8, "the same partition's other stream")
	kit.Eventually(t, patience, func() error {
		relay, err := auditview.RelayStatus(t.Context(), config.Secret(d.AuditviewDB.ServiceDSN))
		if err == nil && len(relay.Parked) != len(strangers) {
			err = fmt.Errorf("%d streams are parked", len(relay.Parked))
		}
		return err
	})
	kit.Eventually(t, 30*time.Second, func() error {
		if n := kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from outbox`); n > 0 {
			return fmt.Errorf("%d rows wait", n)
		}
		return nil
	})
}

// A registry that changes nothing waits for nobody and makes nobody wait.
func TestAnUnchangedRegistryTakesNoAuthorizationLock(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	hold := kit.Hold(t, d.IngestDB.AdminDSN, `select pg_advisory_xact_lock_shared(bz_lock_key('client', 'app')),
		pg_advisory_xact_lock_shared(bz_lock_key('route', 'orders'))`)
	defer hold()
	d.Apply(kit.NewRegistry(3).Encode()) // an append of the same client seems to run for ever
}
