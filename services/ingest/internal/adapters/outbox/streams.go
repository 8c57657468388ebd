package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/contracts/headsv1"
	"verbatim.internal/pkg/platform/transport"
)

// Streams is what ingest has stored, for a comparison with auditview. Safe for
// concurrent use.
type Streams struct{ pool *pgxpool.Pool }

// NewStreams returns the streams of a pool's database.
func NewStreams(pool *pgxpool.Pool) *Streams { return &Streams{pool} }

// Each calls visit with the heads of all streams, in pages of at most 500.
func (s *Streams) Each(ctx context.Context, visit func(page []headsv1.Head) error) error {
	return eachHead(ctx, s.pool, visit)
}

const (
	waitingStreams = `
		select distinct o.stream_kind, o.stream_id
		from unnest($1::int[], $2::text[], $3::text[]) as q (partition, kind, id)
		join outbox o on o.partition = q.partition and o.stream_kind = q.kind and o.stream_id = q.id`
	storedStreams = `select %s::text, %s from %s where %[1]s = any($1::uuid[])`
)

// Waiting returns those of the streams of which something is still to be sent.
func (s *Streams) Waiting(ctx context.Context, heads []headsv1.Head) (map[headsv1.Head]bool, error) {
	partitions, kinds, ids := columnsOf(heads)
	rows, err := s.pool.Query(ctx, waitingStreams, partitions, kinds, ids)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	waiting := map[headsv1.Head]bool{}
	var h headsv1.Head
	if _, err := pgx.ForEachRow(rows, []any{&h.Kind, &h.ID}, func() error {
		waiting[h] = true
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return waiting, nil
}

// Kinds returns the kinds of streams that there are.
func (s *Streams) Kinds(ctx context.Context) ([]string, error) {
	kinds, err := storedKinds(ctx, s.pool)
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names, err
}

// Stored returns the versions of those streams of a kind that are stored, by id.
func (s *Streams) Stored(ctx context.Context, kindName string, ids []string) (map[string]int64, error) {
	kinds, err := storedKinds(ctx, s.pool)
	if err != nil {
		return nil, err
	}
	versions := map[string]int64{}
	for _, k := range kinds {
		if k.name != kindName {
			continue
		}
		rows, err := s.pool.Query(ctx, k.query(storedStreams), ids)
		if err != nil {
			return nil, fmt.Errorf("look for the streams: %w", err)
		}
		var id string
		var version int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &version}, func() error {
			versions[id] = version
			return nil
		}); err != nil {
			return nil, fmt.Errorf("look for the streams: %w", err)
		}
	}
	return versions, nil
}

// Rebuild asks the relay to send streams whole, as [Rebuild] does.
func (s *Streams) Rebuild(ctx context.Context, heads []headsv1.Head) error {
	for name, ofKind := range byKind(heads) {
		partitions, _, ids := columnsOf(ofKind)
		versions := make([]int64, len(ofKind))
		for i, h := range ofKind {
			versions[i] = h.Version
		}
		if _, err := s.pool.Exec(ctx, insertRequests, name, snapshotType(name), partitions, ids, versions); err != nil {
			return fmt.Errorf("ask for the streams: %w", err)
		}
	}
	return nil
}

func byKind(heads []headsv1.Head) map[string][]headsv1.Head {
	kinds := map[string][]headsv1.Head{}
	for _, h := range heads {
		kinds[h.Kind] = append(kinds[h.Kind], h)
	}
	return kinds
}

func columnsOf(heads []headsv1.Head) (partitions []int, kinds, ids []string) {
	for _, h := range heads {
		partitions, kinds, ids = append(partitions, transport.Partition(h.ID)), append(kinds, h.Kind), append(ids, h.ID)
	}
	return partitions, kinds, ids
}
