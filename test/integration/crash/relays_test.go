package crash_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/test/integration/internal/kit"
)

// lockClass is the first key of the partitions' advisory locks.
const lockClass = 0x76627461

// leader finds the server process that holds all partitions of a database, or 0.
const leader = `
	select coalesce(min(l.pid), 0) from pg_locks l join pg_database d on d.oid = l.database
	where d.datname = current_database() and l.locktype = 'advisory' and l.classid = $1 and l.objsubid = 2 and l.granted
	having count(*) = $2 and count(distinct l.pid) = 1`

// awaitLeader waits until one replica holds all partitions, and it is not the one that
// did before; it returns the new one.
func (s *system) awaitLeader(before int) (pid int) {
	s.t.Helper()
	conn := kit.Connect(s.t, s.IngestDB.AdminDSN)
	kit.Eventually(s.t, patience, func() error {
		err := conn.QueryRow(s.t.Context(), leader, lockClass, transport.Partitions).Scan(&pid)
		if err == nil && (pid == 0 || pid == before) {
			err = fmt.Errorf("the leader is %d, and was %d", pid, before)
		}
		return err
	})
	return pid
}

// Two replicas of ingest on one database: one relays what both write, and when it is
// killed the other goes on.
func TestTwoRelays(t *testing.T) {
	t.Parallel()
	s := newSystem(t, options{})
	s.start()
	first := s.awaitLeader(0)
	second, endpoint := s.newIngest(s.IngestDB.ServiceDSN, s.relayURL, nil)
	second.start()
	awaitReady(t, endpoint)
	id := s.newArchive()
	var want []kit.Event
	write := func(e *kit.Endpoint) {
		t.Helper()
		for range 5 {
			want = append(want, s.appendAt(e, id, kit.Turn(kit.UUID(), len(want)+1, 10))...)
		}
		s.serves(id, want)
	}
	write(s.Ingest)
	write(endpoint)
	assert.Equal(t, first, s.awaitLeader(0), "the partitions stay where they are")

	s.ingest.kill()
	write(endpoint)
	now := s.awaitLeader(first)
	s.ingest.start()
	awaitReady(t, s.Ingest)
	write(s.Ingest)
	assert.Equal(t, now, s.awaitLeader(0))
	second.kill()
	write(s.Ingest)
	s.awaitLeader(now)
	s.settled()
}

// The replica that holds the partitions is cut off the database while a batch of its is
// on its way, or the snapshot that heals a stream. Another one goes on with the same
// rows; what arrives late changes nothing.
func TestTheLeaderIsCutOffItsDatabaseWhileItPublishes(t *testing.T) {
	t.Parallel()
	for name, snapshot := range map[string]bool{"a batch": false, "a snapshot": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cutOffLeader(t, snapshot)
		})
	}
}

func cutOffLeader(t *testing.T, snapshot bool) {
	t.Helper()
	g := newGate(t)
	var proxy *toxiproxy.Proxy
	s := newSystem(t, options{
		relay: g.to,
		ingestDSN: func(dsn string) (through string) {
			proxy, through = newProxy(t, dsn)
			return through
		},
	})
	s.start()
	first := s.awaitLeader(0)
	second, endpoint := s.newIngest(s.IngestDB.ServiceDSN, s.relayURL, nil)
	second.start()
	awaitReady(t, endpoint)
	id := s.newArchive()
	want := s.append(id, kit.Turn("turn-1", 1, 5))
	s.serves(id, want)
	s.settled()
	if snapshot {
		require.NoError(t, kit.Exec(t, s.AuditviewDB.AdminDSN, `delete from streams where stream_id = $1`, id))
	}

	held, release := newEvent(), newEvent()
	t.Cleanup(release.happen) // before the gate is closed
	g.onBefore(func(d delivery) {
		if d.has(id) && d.snapshot() == snapshot {
			held.happen()
			<-release.c
		}
	})
	want = append(want, s.appendAt(endpoint, id, kit.Turn("turn-2", 6, 20))...)
	held.await(t)
	proxy.Stop()
	s.awaitLeader(first)
	s.serves(id, want) // by the second
	want = append(want, s.appendAt(endpoint, id, kit.Turn("turn-3", 26, 20))...)
	s.serves(id, want)

	before := len(g.acknowledged())
	g.onBefore(nil)
	release.happen()
	kit.Eventually(t, patience, func() error {
		if len(g.acknowledged()) == before {
			return errors.New("what is late is not there yet")
		}
		return nil
	})
	require.NoError(t, s.same(t.Context(), id, want))
	require.NoError(t, proxy.Start())
	awaitReady(t, s.Ingest)
	want = append(want, s.append(id, kit.Turn("turn-4", 46, 3))...)
	s.serves(id, want)
	s.settled()
}

// The packets between the leader and its database are dropped, and nobody tells either
// side. The leader notices by itself and lets go; another one goes on.
func TestTheLeaderIsCutOffSilently(t *testing.T) {
	t.Parallel()
	var proxy *toxiproxy.Proxy
	s := newSystem(t, options{ingestDSN: func(dsn string) (through string) {
		proxy, through = newProxy(t, dsn)
		return through
	}})
	s.start()
	first := s.awaitLeader(0)
	second, endpoint := s.newIngest(s.IngestDB.ServiceDSN, s.relayURL, nil)
	second.start()
	awaitReady(t, endpoint)
	id := s.newArchive()
	want := s.append(id, kit.Turn("turn-1", 1, 5))
	s.serves(id, want)

	for _, stream := range []string{"upstream", "downstream"} {
		toxic := fmt.Sprintf(`{"name":%q,"type":"timeout","stream":%q,"attributes":{"timeout":0}}`, stream, stream)
		_, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic))
		require.NoError(t, err)
	}
	want = append(want, s.appendAt(endpoint, id, kit.Turn("turn-2", 6, 20))...)
	s.awaitLeader(first)
	s.serves(id, want)
	proxy.Toxics.ResetToxics(t.Context())
	awaitReady(t, s.Ingest)
	want = append(want, s.append(id, kit.Turn("turn-3", 26, 5))...)
	s.serves(id, want)
	s.settled()
}

// newProxy returns a proxy before a database, and the DSN that leads through it.
func newProxy(t *testing.T, dsn string) (*toxiproxy.Proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "database", "127.0.0.1:0", u.Host)
	require.NoError(t, proxy.Start())
	t.Cleanup(proxy.Stop)
	u.Host = proxy.Listen
	return proxy, u.String()
}
