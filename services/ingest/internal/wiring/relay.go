package wiring

import (
	"context"
	"log/slog"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"

	"verbatim.internal/services/ingest/internal/adapters/outbox"
	"verbatim.internal/services/ingest/internal/adapters/system"
	"verbatim.internal/services/ingest/internal/config"
)

// relay is the outbox's machinery as one thing that starts and stops.
type relay struct {
	waker    *outbox.Waker
	leases   *outbox.Leases
	notifier *outbox.Notifier
	relay    *outbox.Relay
	checker  *outbox.Checker
	log      *slog.Logger

	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newRelay(cfg config.Config, db databases, publisher message.Publisher, metrics *outbox.Metrics, log *slog.Logger) (*relay, error) {
	waker := outbox.NewWaker()
	leases := outbox.NewLeases(cfg.Direct(), waker, log)
	reader := outbox.NewReader(db.relay.Pool, leases, waker, log)
	mover, err := outbox.NewRelay(reader, publisher, metrics, log)
	if err != nil {
		return nil, err
	}
	return &relay{
		waker: waker, leases: leases, notifier: outbox.NewNotifier(db.relay.Pool, waker, log), relay: mover,
		checker: outbox.NewChecker(db.relay.Pool, reader, leases, cfg.RelayCheckInterval, system.Clock{}.Now, log), log: log,
	}, nil
}

// start returns at once: the relay works whenever the database lets it.
func (r *relay) start(ctx context.Context) error {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.running.Go(func() { r.leases.Run(ctx) })
	r.running.Go(func() { r.notifier.Run(ctx) })
	r.running.Go(func() { r.checker.Run(ctx) })
	r.running.Go(func() {
		if err := r.relay.Run(ctx); err != nil {
			r.log.ErrorContext(ctx, "the relay's router ended", slog.String("error", err.Error()))
		}
	})
	return nil
}

// stop waits for the batches that are on their way.
func (r *relay) stop(context.Context) error {
	err := r.relay.Close()
	r.cancel()
	r.running.Wait()
	return err
}
