package outbox

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/transport"
)

const (
	// lockClass is the first key of the partitions' session advisory locks.
	lockClass = 0x76627461 // "vbta"
	channel   = "verbatim_outbox"
	// tick is the safety net: how often all partitions are asked for rows that nobody announced.
	tick = time.Second
	// reconnectPause is how long a lost lock connection rests, plus or minus a half.
	reconnectPause = 500 * time.Millisecond
	// answerTimeout bounds how long the server may take to answer on the lock
	// connection. Without it a connection whose packets are silently dropped would
	// seem to hold its partitions for as long as TCP tries, which is a quarter of an hour.
	answerTimeout = 6 * time.Second
)

const (
	tryLocks = `
		select p from generate_series(0, $1::int - 1) p
		where not p = any($2::int[]) and pg_try_advisory_lock($3::int, p)`
	waitingRows = `
		select p from unnest($1::int[]) p where exists (select from outbox where partition = p)`
	notifyRows = `select pg_notify($1, $2)`
)

// Leases hold this replica's partitions: session advisory locks on one direct
// connection, which also listens for the notices of other replicas. When the
// connection goes, so do all partitions; a vanished host loses them within 15 s
// by TCP keepalive.
type Leases struct {
	dsn   config.Secret
	waker *Waker
	log   *slog.Logger

	mu      sync.Mutex
	held    [transport.Partitions]bool
	lease   context.Context // ends with the connection that holds the partitions
	changed chan struct{}   // closed and replaced when held changes
}

// NewLeases returns leases that Run will take. The DSN must reach the server
// directly, not through a transaction pooler: session locks would be lost.
func NewLeases(directDSN config.Secret, waker *Waker, log *slog.Logger) *Leases {
	return &Leases{dsn: directDSN, waker: waker, log: log, changed: make(chan struct{})}
}

// Run takes partitions and keeps them until ctx ends. It returns only then.
func (l *Leases) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := l.hold(ctx)
		l.release()
		if ctx.Err() != nil {
			return
		}
		l.log.WarnContext(ctx, "the relay lost its partitions and takes them again", slog.String("error", reason(err)))
		pause(ctx, reconnectPause/2+rand.N(reconnectPause)) //nolint:gosec // jitter
	}
}

// Await returns once this replica holds the partition: a context that ends when
// it no longer does, or with ctx.
func (l *Leases) Await(ctx context.Context, partition int) (context.Context, error) {
	for ctx.Err() == nil {
		l.mu.Lock()
		held, lease, changed := l.held[partition], l.lease, l.changed
		l.mu.Unlock()
		if held && lease.Err() == nil {
			return lease, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

// Held returns the partitions this replica reads.
func (l *Leases) Held() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := []int{}
	for p, mine := range l.held {
		if mine {
			held = append(held, p)
		}
	}
	return held
}

// hold keeps one connection until it fails or ctx ends.
func (l *Leases) hold(ctx context.Context) error {
	cfg, err := pgx.ParseConfig(l.dsn.Reveal())
	if err != nil {
		return errors.New("the direct DSN is malformed")
	}
	cfg.ConnectTimeout = 5 * time.Second
	for name, value := range map[string]string{
		"application_name": "verbatim-ingest-leases", "statement_timeout": "5000",
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "3", "tcp_keepalives_count": "3",
	} {
		cfg.RuntimeParams[name] = value
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
		// After a time-out pgx would keep the socket, and so the locks, for another 15 s.
		_ = conn.PgConn().Conn().Close()
	}()
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil {
		return err
	}
	lease, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		if err := l.look(ctx, conn, lease); err != nil {
			return err
		}
		if err := l.listen(ctx, conn); err != nil {
			return err
		}
	}
}

// look takes what nobody holds and wakes the readers of what waits.
func (l *Leases) look(ctx context.Context, conn *pgx.Conn, lease context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := l.take(ctx, conn, lease); err != nil {
		return err
	}
	return l.sweep(ctx, conn)
}

// take tries the partitions that nobody holds.
func (l *Leases) take(ctx context.Context, conn *pgx.Conn, lease context.Context) error {
	held := l.Held()
	if len(held) == transport.Partitions {
		return nil
	}
	rows, err := conn.Query(ctx, tryLocks, transport.Partitions, held, lockClass)
	if err != nil {
		return err
	}
	taken, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil || len(taken) == 0 {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease = lease
	for _, p := range taken {
		l.held[p] = true
		l.waker.owned.Or(1 << p)
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// sweep wakes the readers of held partitions that have rows.
func (l *Leases) sweep(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, waitingRows, l.Held())
	if err != nil {
		return err
	}
	waiting, err := pgx.CollectRows(rows, pgx.RowTo[int])
	for _, p := range waiting {
		signal(l.waker.signals[p])
	}
	return err
}

// listen passes notices on until the next tick.
func (l *Leases) listen(ctx context.Context, conn *pgx.Conn) error {
	until, cancel := context.WithTimeout(ctx, tick)
	defer cancel()
	for {
		n, err := conn.WaitForNotification(until)
		if err != nil {
			if until.Err() != nil && ctx.Err() == nil && !conn.IsClosed() {
				return nil
			}
			return err
		}
		for s := range strings.SplitSeq(n.Payload, ",") {
			if p, err := strconv.Atoi(s); err == nil && p >= 0 && p < transport.Partitions {
				signal(l.waker.signals[p])
			}
		}
	}
}

func (l *Leases) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waker.owned.Store(0)
	l.held = [transport.Partitions]bool{}
}

// pause waits for d or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
