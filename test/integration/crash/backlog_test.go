package crash_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/test/integration/internal/kit"
)

const (
	// A backlog is a million messages: streams, and messages of each.
	backlogRuns, backlogVersions = 10_000, 100
	// backlogLimit bounds the time that the backlog takes.
	backlogLimit = 5 * time.Minute
	// heapLimit bounds each service's heap meanwhile, in bytes; heapEvery is how often
	// it is looked at.
	heapLimit, heapEvery = 64 << 20, 200 * time.Millisecond
)

// makeBacklog writes runs, and for each of them as many outbox rows as it has versions.
// The writes of a partition are in order, a run after the other.
const makeBacklog = `
	with made as (
		insert into bz_agent_client_runs (run_id, session_id, client_app_id, route_key, thread_id,
			client_conversation_id, client_turn_id, stream_version, created_at)
		select r.id::uuid, $3::uuid, 'app', 'orders', r.n, 'conversation', 'turn', $4, now()
		from unnest($1::text[]) with ordinality as r (id, n)
		returning run_id
	)
	insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
	select r.partition, 'run', r.id, v, 'verbatim.run.recorded.v1', '{}', 0, now()
	from unnest($1::text[], $2::int[]) as r (id, partition), generate_series(1, $4) as v
	order by r.partition, r.id, v`

// A million waiting messages are worked off in order, with bounded memory, and an
// agent's new ones with them.
func TestAMillionWaitingMessages(t *testing.T) {
	t.Parallel()
	metrics := map[string]string{"ingest": freeAddress(t), "auditview": freeAddress(t)}
	s := newSystem(t, options{
		ingestEnv:    map[string]string{"VERBATIM_INGEST_METRICS_ADDR": metrics["ingest"]},
		auditviewEnv: map[string]string{"VERBATIM_AUDITVIEW_METRICS_ADDR": metrics["auditview"]},
	})
	var ids []string
	var partitions []int
	for range backlogRuns {
		id := kit.UUID()
		ids, partitions = append(ids, id), append(partitions, transport.Partition(id))
	}
	require.NoError(t, kit.Exec(t, s.IngestDB.OwnerDSN, makeBacklog, ids, partitions, kit.SessionID(1), backlogVersions))
	const total = backlogRuns * backlogVersions
	require.Equal(t, total, kit.Count(t, s.IngestDB.AdminDSN, outboxRows+` where stream_kind = 'run'`))

	began := time.Now()
	s.start()
	id := s.newArchive()
	want := s.append(id, kit.Turn("turn-1", 1, 5))
	heap := map[string]float64{}
	left := kit.Connect(t, s.IngestDB.AdminDSN)
	var looked time.Time
	kit.Eventually(t, backlogLimit, func() error {
		if time.Since(looked) > heapEvery {
			looked = time.Now()
			for name, address := range metrics {
				bytes, err := heapInUse(t, address)
				if err != nil {
					return err
				}
				heap[name] = max(heap[name], bytes)
			}
		}
		var waiting bool
		err := left.QueryRow(t.Context(), `select exists (select from outbox)`).Scan(&waiting)
		if err == nil && waiting {
			err = errors.New("messages wait")
		}
		return err
	})
	took := time.Since(began)
	t.Logf("%d messages in %v: %.0f a second; heap at most %.0f MB (ingest), %.0f MB (auditview)",
		total, took.Round(time.Millisecond), total/took.Seconds(), heap["ingest"]/1e6, heap["auditview"]/1e6)
	for name, bytes := range heap {
		assert.Less(t, bytes, float64(heapLimit), name)
	}
	s.serves(id, want)
	s.settled()
	assert.Equal(t, backlogRuns, kit.Count(t, s.AuditviewDB.AdminDSN, `select count(*) from runs`))
	assert.Equal(t, backlogRuns, kit.Count(t, s.AuditviewDB.AdminDSN,
		`select count(*) from streams where stream_kind = 'run' and version = $1`, backlogVersions))
}

// heapInUse asks a service's metrics for the bytes of its heap.
func heapInUse(t *testing.T, address string) (float64, error) {
	t.Helper()
	e := &kit.Endpoint{URL: "http://" + address, Client: http.DefaultClient}
	answer, err := exchange(t.Context(), e, kit.Request{Method: http.MethodGet, Path: "/metrics"})
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(answer.Body)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "go_memstats_heap_inuse_bytes "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("no heap among the metrics: status %d", answer.Status)
}
