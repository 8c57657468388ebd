package crash_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/test/integration/internal/kit"
)

const (
	outboxRows   = `select count(*) from outbox`
	parkedRows   = `select count(*) from parked_messages`
	streamsState = `select version from streams where stream_id = $1`
)

// awaitClosed waits until nobody listens at an address any more: its service drains.
func awaitClosed(t *testing.T, url string) {
	t.Helper()
	kit.Eventually(t, patience, func() error {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			return nil //nolint:nilerr // it is refused
		}
		_ = conn.Close()
		return errors.New("still listening")
	})
}

// SIGTERM for ingest while a batch of its relay is on its way.
func TestIngestIsTerminatedInTheMiddleOfABatch(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := newSystem(t, options{relay: g.to})
	s.start()
	id := s.newArchive()
	want := s.append(id, kit.Turn("turn-1", 1, 5))
	s.serves(id, want)
	s.settled()
	held, release := newEvent(), newEvent()
	t.Cleanup(release.happen)
	g.onBefore(func(delivery) {
		held.happen()
		<-release.c
	})
	for range 5 {
		want = append(want, s.append(id, kit.Turn(kit.UUID(), len(want)+1, 20))...)
	}
	held.await(t)
	wait := s.ingest.terminate()
	awaitClosed(t, s.Ingest.URL)
	release.happen()
	wait()

	g.onBefore(nil)
	s.ingest.start()
	s.serves(id, want)
	s.settled()
}

// SIGTERM for auditview in the middle of a batch: it is applied and acknowledged before
// the end, and so its rows go.
func TestAuditviewIsTerminatedInTheMiddleOfABatch(t *testing.T) {
	t.Parallel()
	s := newSystem(t, options{})
	s.start()
	id := s.newArchive()
	want := s.append(id, kit.Turn("turn-1", 1, 5))
	s.serves(id, want)
	s.settled()
	release := kit.Hold(t, s.AuditviewDB.AdminDSN, `select from streams where stream_id = $1 for update`, id)
	want = append(want, s.append(id, kit.Turn("turn-2", 6, 50))...)
	kit.AwaitLockWaits(t, s.AuditviewDB.AdminDSN, 1)
	wait := s.auditview.terminate()
	awaitClosed(t, s.relayURL)
	release()
	wait()
	assert.Equal(t, 3, kit.Count(t, s.AuditviewDB.AdminDSN, streamsState, id))
	drained(t, s.IngestDB)

	want = append(want, s.append(id, kit.Turn("turn-3", 56, 5))...)
	s.auditview.start()
	s.serves(id, want)
	s.settled()
}

// Poison in the batch that auditview works at when it is terminated: nothing is parked
// at the end. It comes again, and is parked then.
func TestNothingIsParkedByAServiceThatEnds(t *testing.T) {
	t.Parallel()
	s := newSystem(t, options{})
	s.start()
	ids := neighbours(t, 2, s.newArchive)
	for _, id := range ids {
		s.serves(id, nil)
	}
	s.settled()
	release := kit.Hold(t, s.AuditviewDB.AdminDSN, `select from streams where stream_id = $1 for update`, ids[0])
	injectPoison(t, s.IngestDB.OwnerDSN, ids[0], typeAppended, `{}`)
	kit.AwaitLockWaits(t, s.AuditviewDB.AdminDSN, 1)
	wait := s.auditview.terminate()
	awaitClosed(t, s.relayURL)
	release()
	wait()
	assert.Zero(t, kit.Count(t, s.AuditviewDB.AdminDSN, parkedRows))
	assert.Equal(t, 1, kit.Count(t, s.IngestDB.AdminDSN, outboxRows))

	s.auditview.start()
	other := s.append(ids[1], kit.Turn("turn-1", 1, 5))
	s.serves(ids[1], other)
	drained(t, s.IngestDB)
	require.Equal(t, transport.Partition(ids[0]), transport.Partition(ids[1]))
	assert.Equal(t, 1, kit.Count(t, s.AuditviewDB.AdminDSN, parkedRows))
	assert.Equal(t, 1, kit.Count(t, s.AuditviewDB.AdminDSN, streamsState, ids[0]))
}
