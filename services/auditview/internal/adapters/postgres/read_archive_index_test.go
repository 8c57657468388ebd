package postgres_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/services/auditview/internal/adapters/postgres"
)

// manyArchives are rows of many archives, of which the first has 20,000 events and 1,000
// members, and each other one event and one member.
var manyArchives = []string{
	`insert into archives
select ('40000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, ('41000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'conv-' || n,
       '40020000-e89b-42d3-a456-426614174000', 'client-0', 'route-0', 1, 1000, 'ready', 1, case when n = 1 then 20000 else 1 end, 1, 1, null, 1,
       timestamptz '2026-01-01', timestamptz '2026-01-01' + n * interval '1 second'
from generate_series(1, 30000) n`,
	`insert into archive_members (conversation_id, session_id, display_label)
select '40000000-0000-4000-8000-000000000001', ('42000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, '' from generate_series(1, 1000) n
union all
select ('40000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, '42000000-0000-4000-8000-000000000001', '' from generate_series(2, 30000) n`,
	`insert into archive_events
select '40000000-0000-4000-8000-000000000001'::uuid, n, 'ev-' || n, 'turn', 'user_message', 'text', null, null::uuid, null::uuid, null::bigint, now()
from generate_series(1, 20000) n
union all
select ('40000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 1, 'ev-' || n, 'turn', 'user_message', 'text', null, null, null, null, now()
from generate_series(2, 30000) n`,
	`vacuum analyze`,
}

// The list is read from its index at every offset, and the last page of an archive costs
// what the first does.
func TestReadsOfArchivesUseTheirIndexes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fill(t, manyArchives)
	list := func(offset int64) func(context.Context, *postgres.Store) (int, error) {
		return func(ctx context.Context, s *postgres.Store) (int, error) {
			page, err := s.Archives(ctx, 101, offset)
			return len(page), err
		}
	}
	detail := func(id string, after int64) func(context.Context, *postgres.Store) (int, error) {
		return func(ctx context.Context, s *postgres.Store) (int, error) {
			_, members, events, err := s.Detail(ctx, id, after, 200, 1<<20)
			require.NotEmpty(t, members)
			return len(events), err
		}
	}
	const big, small = "40000000-0000-4000-8000-000000000001", "40000000-0000-4000-8000-000000002999"
	b.byIndex(t, []string{"archives", "archive_members", "archive_events"}, []indexedRead{
		{"the list", "archives_newest", 101, 110, list(0)},
		{"a late page of the list", "archives_newest", 101, 20_110, list(20_000)},
		{"the first page of an archive", "archive_events_pkey", 200, 1_250, detail(big, 0)},
		{"the last page of an archive", "archive_events_pkey", 200, 1_250, detail(big, 19_800)},
		{"the members of an archive", "archive_members_pkey", 200, 1_250, detail(big, 0)},
		{"a small archive", "archives_pkey", 1, 10, detail(small, 0)},
	})
}
