package outbox_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest/internal/adapters/outbox"
	"verbatim.internal/sql"
)

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// replica is one ingest's reading side.
type replica struct {
	db     *database.DB
	waker  *outbox.Waker
	leases *outbox.Leases
	reader *outbox.Reader
	stop   context.CancelFunc
}

func newReplica(t *testing.T, dsn string) *replica {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := database.Open(t.Context(), database.Config{DSN: config.Secret(dsn), MaxConns: 4})
	require.NoError(t, err)
	r := &replica{db: db, waker: outbox.NewWaker()}
	r.leases = outbox.NewLeases(config.Secret(dsn), r.waker, log)
	r.reader = outbox.NewReader(db.Pool, r.leases, r.waker, log)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		r.leases.Run(ctx)
		close(ended)
	}()
	r.stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(func() {
		require.NoError(t, r.reader.Close())
		r.stop()
		db.Close()
	})
	return r
}

func (r *replica) subscribe(t *testing.T) <-chan *message.Message {
	t.Helper()
	out, err := r.reader.Subscribe(context.Background(), transport.Topic(partition))
	require.NoError(t, err)
	return out
}

const partition = 3

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// put writes an outbox row of an unknown type, whose payload goes out as it is.
func put(t *testing.T, db execer, stream string, version int) {
	t.Helper()
	_, err := db.Exec(t.Context(), `insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		values ($1, 'test', $2, $3, 'verbatim.test.happened.v1', '{}', 0, now())`, partition, stream, version)
	require.NoError(t, err)
}

func receive(t *testing.T, messages <-chan *message.Message) (*message.Message, []string) {
	t.Helper()
	select {
	case msg, open := <-messages:
		require.True(t, open, "the subscription ended")
		events, err := cloudevent.DecodeBatch(msg.Payload)
		require.NoError(t, err)
		var ids []string
		for _, e := range events {
			ids = append(ids, e.StreamID+"/"+strconv.FormatInt(e.StreamVersion, 10))
		}
		return msg, ids
	case <-time.After(patience):
		t.Fatal("no batch came")
		return nil, nil
	}
}

func waiting(t *testing.T, db *database.DB) int {
	t.Helper()
	var n int
	require.NoError(t, db.Pool.QueryRow(t.Context(), `select count(*) from outbox`).Scan(&n))
	return n
}

func TestAcknowledgedRowsAreDeletedAndRefusedOnesComeAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	messages := r.subscribe(t)
	put(t, r.db.Pool, "a", 1)
	put(t, r.db.Pool, "a", 2)
	r.waker.Wake(partition)
	var seen []string
	for len(seen) < 2 {
		msg, ids := receive(t, messages)
		msg.Nack()
		again, idsAgain := receive(t, messages)
		require.Subset(t, idsAgain, ids, "a refused batch comes again")
		again.Ack()
		seen = append(seen, idsAgain...)
	}
	require.Equal(t, []string{"a/1", "a/2"}, seen)
	require.Eventually(t, func() bool { return waiting(t, r.db) == 0 }, patience, 10*time.Millisecond)
}

func TestARowThatCommitsLateIsDelivered(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	messages := r.subscribe(t)
	late, err := r.db.Pool.Begin(t.Context())
	require.NoError(t, err)
	put(t, late, "late", 1) // draws the lower id
	put(t, r.db.Pool, "early", 1)
	r.waker.Wake(partition)
	msg, ids := receive(t, messages)
	require.Equal(t, []string{"early/1"}, ids, "an open transaction stalls nobody")
	require.NoError(t, late.Commit(t.Context()))
	msg.Ack()
	msg, ids = receive(t, messages)
	require.Equal(t, []string{"late/1"}, ids)
	msg.Ack()
}

func TestRowsThatNobodyAnnouncedAreFound(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	messages := r.subscribe(t)
	put(t, r.db.Pool, "a", 1)
	msg, _ := receive(t, messages)
	msg.Ack()
}

func TestOneReplicaReadsAPartitionAndAnotherGoesOn(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	first := newReplica(t, db.ServiceDSN)
	require.Eventually(t, func() bool { return len(first.leases.Held()) == transport.Partitions }, patience, 5*time.Millisecond)
	second := newReplica(t, db.ServiceDSN)
	fromFirst, fromSecond := first.subscribe(t), second.subscribe(t)
	put(t, first.db.Pool, "a", 1)
	// Written by the second, read by the first: a notice travels.
	second.waker.Wake(partition)
	_, ids := receive(t, fromFirst)
	require.Equal(t, []string{"a/1"}, ids)
	require.Empty(t, second.leases.Held())
	first.stop() // its locks go; its batch was not acknowledged
	msg, again := receive(t, fromSecond)
	require.Equal(t, ids, again)
	msg.Ack()
	require.Eventually(t, func() bool { return waiting(t, second.db) == 0 }, patience, 10*time.Millisecond)
}

func TestALostLockConnectionIsMadeAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	messages := r.subscribe(t)
	require.Eventually(t, func() bool { return len(r.leases.Held()) == transport.Partitions }, patience, 5*time.Millisecond)
	admin, err := database.Open(t.Context(), database.Config{DSN: config.Secret(db.AdminDSN), MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(admin.Close)
	_, err = admin.Pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
		where application_name = 'verbatim-ingest-leases' and datname = (select datname from pg_stat_activity where pid = pg_backend_pid())`)
	require.NoError(t, err)
	put(t, r.db.Pool, "a", 1)
	msg, _ := receive(t, messages)
	msg.Ack()
}

func TestABatchIsBoundedAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	_, err := r.db.Pool.Exec(t.Context(), `insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		select $1, 'test', 'a', v, 'verbatim.test.happened.v1', '{}', 1000000, now() from generate_series(1, 600) v order by v`, partition)
	require.NoError(t, err)
	messages := r.subscribe(t)
	for next := 1; next <= 600; {
		msg, ids := receive(t, messages)
		require.LessOrEqual(t, len(ids), 4, "4 MiB of text at most")
		for _, id := range ids {
			require.Equal(t, "a/"+strconv.Itoa(next), id)
			next++
		}
		msg.Ack()
	}
}

func TestAClosedReaderEndsItsSubscriptions(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	r := newReplica(t, db.ServiceDSN)
	messages := r.subscribe(t)
	require.NoError(t, r.reader.Close())
	_, open := <-messages
	require.False(t, open)
	_, err := r.reader.Subscribe(t.Context(), transport.Topic(partition))
	require.ErrorIs(t, err, outbox.ErrClosed)
	_, err = r.reader.Subscribe(t.Context(), "elsewhere")
	require.Error(t, err)
}
