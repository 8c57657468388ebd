package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/headsv1"
	"verbatim.internal/pkg/platform/transport"
)

const (
	// headsPause is how long a check rests after each full page, so that checking a million
	// streams takes half an hour and costs both services half a percent of a core.
	headsPause = time.Second
	// headsPatience bounds how long a page waits for a partition that has something to send;
	// what a busy partition is not asked about now, it is in the next check.
	headsPatience = 5 * time.Second
)

// Checker has the reader ask, every now and then, whether auditview has all that was
// sent: a broker may lose what it took, and a database may be restored. It walks over all
// streams of the partitions that this replica reads. What is missing comes back as a
// gap, and the relay sends those streams whole.
//
// A head is read before its partition is found empty, and rows leave the outbox when they
// are acknowledged, so whatever made that head has been acknowledged by then.
type Checker struct {
	pool     *pgxpool.Pool
	reader   *Reader
	leases   *Leases
	interval time.Duration
	now      func() time.Time
	log      *slog.Logger
}

// question is what a partition is to ask, and when that was found out.
type question struct {
	heads []headsv1.Head
	at    time.Time
}

// NewChecker returns a checker that begins a check every interval; 0 means never.
func NewChecker(pool *pgxpool.Pool, reader *Reader, leases *Leases, interval time.Duration, now func() time.Time, log *slog.Logger) *Checker {
	return &Checker{pool: pool, reader: reader, leases: leases, interval: interval, now: now, log: log}
}

// Run checks until ctx ends.
func (c *Checker) Run(ctx context.Context) {
	if c.interval <= 0 {
		return
	}
	due := time.NewTicker(c.interval)
	defer due.Stop()
	for {
		select {
		case <-due.C:
		case <-ctx.Done():
			return
		}
		if err := c.check(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "what was sent could not be compared; it is tried again", slog.String("error", reason(err)))
		}
	}
}

// check walks over all streams once.
func (c *Checker) check(ctx context.Context) error {
	if len(c.leases.Held()) == 0 {
		return nil
	}
	return eachHead(ctx, c.pool, func(page []headsv1.Head) error {
		at := c.now()
		var byPartition [transport.Partitions][]headsv1.Head
		for _, h := range page {
			p := transport.Partition(h.ID)
			byPartition[p] = append(byPartition[p], h)
		}
		wait := time.NewTimer(headsPatience)
		defer wait.Stop()
		for _, p := range c.leases.Held() {
			if len(byPartition[p]) == 0 {
				continue
			}
			select {
			case c.reader.questions[p] <- question{byPartition[p], at}:
			case <-wait.C:
				wait.Reset(0) // the others are given what they take at once
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if len(page) == rebuildPage {
			pause(ctx, headsPause)
		}
		return ctx.Err()
	})
}

// eachHead calls visit with the heads of all stored streams, page by page.
func eachHead(ctx context.Context, pool *pgxpool.Pool, visit func(page []headsv1.Head) error) error {
	kinds, err := storedKinds(ctx, pool)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		for after := nilUUID; ; {
			page, err := headsAfter(ctx, pool, k, after)
			if err != nil {
				return err
			}
			if len(page) > 0 {
				after = page[len(page)-1].ID
				if err := visit(page); err != nil {
					return err
				}
			}
			if len(page) < rebuildPage {
				break
			}
		}
	}
	return nil
}

func headsAfter(ctx context.Context, pool *pgxpool.Pool, k kind, after string) ([]headsv1.Head, error) {
	rows, err := pool.Query(ctx, k.query(streamsAfter), after, rebuildPage)
	if err != nil {
		return nil, fmt.Errorf("list the streams: %w", err)
	}
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (headsv1.Head, error) {
		h := headsv1.Head{Kind: k.name}
		err := row.Scan(&h.ID, &h.Version)
		return h, err
	})
	if err != nil {
		return nil, fmt.Errorf("list the streams: %w", err)
	}
	return page, nil
}

// ask hands out one message of heads and waits for its answer. Whatever that is, the
// partition goes on: what could not be mended is found again by the next check.
func (r *Reader) ask(ctx context.Context, partition int, q question, out chan<- *message.Message) {
	data, err := headsv1.Marshal(headsv1.Heads{Heads: q.heads})
	if err == nil {
		err = r.hand(ctx, partition, []cloudevent.Event{
			cloudevent.New(headsv1.StreamKind, headsv1.StreamID(partition), 1, 0, headsv1.Type, q.at, data),
		}, out)
	}
	if err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "what a partition has sent could not be compared", slog.Int("partition", partition), slog.String("error", reason(err)))
	}
}
