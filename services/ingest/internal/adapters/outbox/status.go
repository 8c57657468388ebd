package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/contracts/runv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/platform/transport"
)

const waitingByPartition = `select partition, count(*), min(created_at) from outbox group by partition order by partition`

// Waiting is what one partition still has to send.
type Waiting struct {
	Partition int
	Rows      int64
	Oldest    time.Time // when the oldest of them was committed
}

// Status returns the partitions that have something to send.
func Status(ctx context.Context, pool *pgxpool.Pool) ([]Waiting, error) {
	rows, err := pool.Query(ctx, waitingByPartition)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Waiting, error) {
		var w Waiting
		err := row.Scan(&w.Partition, &w.Rows, &w.Oldest)
		w.Oldest = w.Oldest.UTC()
		return w, err
	})
}

// waitingAtMost counts the waiting rows up to a bound, so that asking stays cheap.
const waitingAtMost = `select count(*) from (select from outbox limit $1) as waiting`

// CountWaiting returns how many rows wait, at most limit.
func CountWaiting(ctx context.Context, pool *pgxpool.Pool, limit int64) (n int64, err error) {
	err = pool.QueryRow(ctx, waitingAtMost, limit).Scan(&n)
	return n, err
}

// rebuildPage is how many streams one transaction asks to send.
const rebuildPage = 500

const (
	// The order names the table: a bare name would mean the text that is selected, which no
	// index has.
	streamsAfter   = `select %s::text, %s from %s s where %[1]s > $1::uuid order by s.%[1]s limit $2`
	oneStream      = `select %s::text, %s from %s where %[1]s = $1`
	insertRequests = `
		insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		select p, $1, id, version, $2, '{"replace":true}', 0, now() from unnest($3::int[], $4::text[], $5::bigint[]) as q (p, id, version)`
	nilUUID = "00000000-0000-0000-0000-000000000000"
)

// Rebuild asks the relay to send streams whole: all of them when streamID is
// empty, else the archive, run, registry change or execution of that id. It returns how many it
// asked for. A kind whose table no migration has brought yet has no streams.
//
// The requests are outbox rows of their own; the relay reads each stream under
// its lock when its turn comes, so appends go on meanwhile. Repeating a rebuild,
// after a crash for one, only repeats work. The error is ErrNoStream for an
// unknown stream.
func Rebuild(ctx context.Context, pool *pgxpool.Pool, streamID string) (int, error) {
	kinds, err := storedKinds(ctx, pool)
	if err != nil {
		return 0, err
	}
	if streamID != "" {
		id, ok := identity.ParseUUID(streamID)
		if !ok {
			return 0, ErrNoStream
		}
		for _, k := range kinds {
			n, _, err := request(ctx, pool, k.name, k.eventType, k.query(oneStream), string(id))
			if n > 0 || err != nil {
				return n, err
			}
		}
		return 0, ErrNoStream
	}
	total := 0
	for _, k := range kinds {
		for after := nilUUID; ; {
			n, last, err := request(ctx, pool, k.name, k.eventType, k.query(streamsAfter), after, rebuildPage)
			total += n
			if err != nil {
				return total, err
			}
			if n < rebuildPage {
				break
			}
			after = last
		}
	}
	return total, nil
}

// kind is where the streams of one kind are stored.
type kind struct{ name, eventType, table, key, version string }

// query returns a query of ids and versions.
func (k kind) query(format string) string { return fmt.Sprintf(format, k.key, k.version, k.table) }

// storedKinds returns the kinds whose tables exist.
func storedKinds(ctx context.Context, pool *pgxpool.Pool) ([]kind, error) {
	var stored []kind
	for _, k := range []kind{
		{runv1.StreamKind, runv1.TypeSnapshot, "bz_agent_client_runs", "run_id", "stream_version"},
		{archivev1.StreamKind, archivev1.TypeSnapshot, "bz_agent_conversation_audits", "conversation_id", "stream_version"},
		{registryv1.StreamKind, registryv1.TypeSnapshot, "bz_registry_changes", "change_id", "1::bigint"},
		{executionv1.StreamKind, executionv1.TypeSnapshot, "bz_executions", "execution_id", "stream_version"},
	} {
		var there bool
		if err := pool.QueryRow(ctx, hasTable, k.table).Scan(&there); err != nil {
			return nil, fmt.Errorf("look for the streams: %w", err)
		}
		if there {
			stored = append(stored, k)
		}
	}
	return stored, nil
}

// request writes one outbox row for each stream that the query finds, and returns the last of them.
func request(ctx context.Context, pool *pgxpool.Pool, kind, eventType, query string, args ...any) (n int, last string, err error) {
	rows, err := pool.Query(ctx, query, args...)
	if err != nil {
		return 0, "", fmt.Errorf("list the streams: %w", err)
	}
	var partitions []int
	var ids []string
	var versions []int64
	for rows.Next() {
		var version int64
		if err := rows.Scan(&last, &version); err != nil {
			return 0, "", fmt.Errorf("list the streams: %w", err)
		}
		partitions, ids, versions = append(partitions, transport.Partition(last)), append(ids, last), append(versions, version)
	}
	if err := rows.Err(); err != nil || len(ids) == 0 {
		return 0, "", err
	}
	if _, err := pool.Exec(ctx, insertRequests, kind, eventType, partitions, ids, versions); err != nil {
		return 0, "", fmt.Errorf("ask for the streams: %w", err)
	}
	return len(ids), last, nil
}
