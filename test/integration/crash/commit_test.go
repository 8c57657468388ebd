package crash_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"verbatim.internal/test/integration/internal/kit"
)

// Ingest dies when auditview has committed a batch and the relay does not know: after
// the start the same batch comes again, changes nothing, and its rows go.
func TestTheRelayDiesBetweenPublishingAndDeleting(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := newSystem(t, options{relay: g.to})
	s.start()
	id := s.newArchive()
	events := s.append(id, kit.Turn("turn-1", 1, 5))
	s.serves(id, events)
	s.settled()

	died := newEvent()
	g.onAfter(func(d delivery, status int) bool {
		if !d.has(id) || status != http.StatusOK {
			return true
		}
		s.ingest.kill()
		died.happen()
		return false
	})
	known := len(g.acknowledged())
	events = append(events, s.append(id, kit.Turn("turn-2", 6, 20))...)
	died.await(t)
	g.onAfter(nil)
	s.serves(id, events) // committed, and not deleted
	assert.Equal(t, 1, kit.Count(t, s.IngestDB.AdminDSN, `select count(*) from outbox`))

	s.ingest.start()
	s.settled()
	s.serves(id, events)
	again := g.acknowledged()[known:]
	assert.Len(t, again, 2)
	assert.Equal(t, again[0], again[len(again)-1], "the same batch, twice")
	events = append(events, s.append(id, kit.Turn("turn-3", 26, 2))...)
	s.serves(id, events)
	s.settled()
}

// Auditview dies right before and right after the commit of a batch.
func TestAuditviewDiesAroundItsCommit(t *testing.T) {
	t.Parallel()
	const applied = `select version from streams where stream_id = $1`
	for name, after := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *wire
			s := newSystem(t, options{auditviewDSN: func(dsn string) (through string) {
				w, through = newWire(t, dsn)
				return through
			}})
			s.start()
			id := s.newArchive()
			events := s.append(id, kit.Turn("turn-1", 1, 5))
			s.serves(id, events)
			s.settled()
			version := kit.Count(t, s.AuditviewDB.AdminDSN, applied, id)

			died := newEvent()
			cut := w.cutBeforeCommit
			if after {
				cut = w.cutAfterCommit
			}
			cut(func() {
				s.auditview.kill()
				died.happen()
			})
			events = append(events, s.append(id, kit.Turn("turn-2", 6, 20))...)
			died.await(t)
			want := version
			if after {
				want++
			}
			assert.Equal(t, want, kit.Count(t, s.AuditviewDB.AdminDSN, applied, id))
			assert.Equal(t, 1, kit.Count(t, s.IngestDB.AdminDSN, `select count(*) from outbox`))

			s.auditview.start()
			s.serves(id, events)
			s.settled()
			assert.Equal(t, version+1, kit.Count(t, s.AuditviewDB.AdminDSN, applied, id))
		})
	}
}
