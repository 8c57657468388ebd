package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

const (
	// roundsEach is how often each part is killed alone; some rounds kill two at once.
	roundsEach  = 6
	roundsTwice = 6
	writers     = 4
	// orchestrators tell of executions meanwhile.
	orchestrators = 2
	// longestWait bounds the random time from one round's end to the next kill.
	longestWait = 600 * time.Millisecond
)

// Kill -9 of ingest with its relay, of auditview and of PostgreSQL, at random points
// under load: every acknowledged event of an archive or an execution is served exactly
// once, in order and byte for byte, and nothing else is.
func TestNothingIsLostDoubledOrInventedByCrashes(t *testing.T) {
	t.Parallel()
	seed := kit.Seed(t)
	random := kit.Choices(seed, 0)
	server := newServer(t)
	ofIngest, ofAuditview := server.migrated()
	s := newSystem(t, options{ingestDB: ofIngest, auditviewDB: ofAuditview, sessions: 2 * writers})
	s.start()
	ctx, cancel := context.WithCancel(t.Context())
	load := startLoad(ctx, s, writers, orchestrators, seed)
	t.Cleanup(func() {
		cancel()
		load.ended.Wait()
	})

	parts := map[string]struct{ kill, start func() }{
		"ingest":     {s.ingest.kill, s.ingest.start},
		"auditview":  {s.auditview.kill, s.auditview.start},
		"PostgreSQL": {server.kill, server.start},
	}
	began := time.Now()
	for n, round := range plan(random) {
		wait(ctx, time.Duration(random.Int64N(int64(longestWait))))
		for _, name := range round {
			parts[name].kill()
		}
		before := load.batches.Load()
		for _, name := range round {
			parts[name].start()
		}
		if random.IntN(5) == 0 {
			continue // the next one is killed while this one may still start
		}
		kit.Eventually(t, patience, func() error {
			require.NoError(t, load.failed())
			if load.batches.Load() <= before+writers+orchestrators {
				return fmt.Errorf("round %d, %v: nothing more is acknowledged", n, round)
			}
			return nil
		})
		if records := load.records(); len(records) > 0 {
			s.holds(records[len(records)-1-random.IntN(min(len(records), 2*writers))])
		}
		if told := load.executions.list(); len(told) > 0 {
			s.shows(told[len(told)-1-random.IntN(min(len(told), 2*orchestrators))])
		}
	}
	killed := time.Since(began)
	require.NoError(t, load.finish())
	t.Logf("%d rounds in %v; %d batches acknowledged, %d requests repeated", 3*roundsEach+roundsTwice,
		killed.Round(time.Millisecond), load.batches.Load(), load.repeated.Load())
	s.verify(load.records(), load.executions.list())
}

// plan returns what each round kills, in random order.
func plan(random *rand.Rand) [][]string {
	names := []string{"PostgreSQL", "auditview", "ingest"}
	var rounds [][]string
	for range roundsEach {
		for _, name := range names {
			rounds = append(rounds, []string{name})
		}
	}
	for n := range roundsTwice {
		round := slices.Clone(names)
		rounds = append(rounds, slices.Delete(round, n%3, n%3+1))
	}
	random.Shuffle(len(rounds), func(i, j int) { rounds[i], rounds[j] = rounds[j], rounds[i] })
	return rounds
}

// wait waits for a random moment, which is no condition.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
