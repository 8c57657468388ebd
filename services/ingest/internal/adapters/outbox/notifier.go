package outbox

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Notifier tells other replicas about new rows in their partitions: one NOTIFY
// at a time for all that came meanwhile, and never in a writing transaction,
// where it would serialize the commits of the whole database.
type Notifier struct {
	pool  *pgxpool.Pool
	waker *Waker
	log   *slog.Logger
}

// NewNotifier returns a notifier over the relay's pool.
func NewNotifier(pool *pgxpool.Pool, waker *Waker, log *slog.Logger) *Notifier {
	return &Notifier{pool: pool, waker: waker, log: log}
}

// Run sends notices until ctx ends. A notice that fails is not repeated: the
// other replica's safety net finds the rows within a second.
func (n *Notifier) Run(ctx context.Context) {
	for {
		select {
		case <-n.waker.notify:
		case <-ctx.Done():
			return
		}
		if err := n.Flush(ctx); err != nil && ctx.Err() == nil {
			n.log.WarnContext(ctx, "a notice to the other replicas failed", slog.String("error", reason(err)))
		}
	}
}

// Flush sends one notice for all partitions that were woken and are not read here.
func (n *Notifier) Flush(ctx context.Context) error {
	var payload []string
	for _, p := range n.waker.takeForeign() {
		payload = append(payload, strconv.Itoa(p))
	}
	if len(payload) == 0 {
		return nil
	}
	_, err := n.pool.Exec(ctx, notifyRows, channel, strings.Join(payload, ","))
	return err
}
