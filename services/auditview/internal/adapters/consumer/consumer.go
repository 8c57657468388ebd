package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/headsv1"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// Projector applies batches.
type Projector interface {
	Apply(ctx context.Context, messages []readmodel.Message) (app.Result, error)
	Lost(ctx context.Context, sent map[readmodel.Stream]int64) ([]readmodel.Gap, error)
}

// Consumer is the router of all partitions.
type Consumer struct {
	projector Projector
	metrics   *Metrics
	log       *slog.Logger
	router    *message.Router

	mu       sync.Mutex
	stopping bool
	running  sync.WaitGroup
	done     chan error
}

// New returns a consumer of every partition of the subscriber, which it does not close.
// drain bounds how long Stop waits for batches.
func New(subscriber message.Subscriber, projector Projector, metrics *Metrics, log *slog.Logger, drain time.Duration) (*Consumer, error) {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: drain}, telemetry.NewWatermillLogger(log))
	if err != nil {
		return nil, fmt.Errorf("make the router: %w", err)
	}
	c := &Consumer{projector: projector, metrics: metrics, log: log, router: router, done: make(chan error, 1)}
	// Outermost first: what stops admits nothing; a panic below is an error above.
	router.AddMiddleware(c.admit, c.trace, c.recoverPanics)
	for partition := range transport.Partitions {
		topic := transport.Topic(partition)
		router.AddConsumerHandler("project "+topic, topic, keepOpen{subscriber}, c.handle)
	}
	return c, nil
}

// keepOpen leaves the subscriber open for whoever owns it; a router would close it.
type keepOpen struct{ message.Subscriber }

// Close does nothing.
func (keepOpen) Close() error { return nil }

// Refuse refuses new batches from now on. Those in flight go on, and nothing of them is
// parked any more.
func (c *Consumer) Refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
}

// Stopping reports whether Refuse or Stop was called: from then on nothing is parked.
func (c *Consumer) Stopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping
}

// Start subscribes to all partitions and returns once they are. ctx bounds only that.
func (c *Consumer) Start(ctx context.Context) error {
	go func() {
		c.done <- c.router.Run(context.WithoutCancel(ctx))
	}()
	select {
	case <-c.router.Running():
		return nil
	case err := <-c.done:
		return fmt.Errorf("start the router: %w", errors.Join(err, ctx.Err()))
	case <-ctx.Done():
		return fmt.Errorf("start the router: %w", ctx.Err())
	}
}

// Stop refuses new batches at once, waits until each batch in flight is acknowledged or
// refused, as long as ctx lasts, and ends the subscriptions. Batches that are then still
// in flight are cut off, which refuses them.
func (c *Consumer) Stop(ctx context.Context) error {
	c.Refuse()
	idle := make(chan struct{})
	go func() {
		c.running.Wait()
		close(idle)
	}()
	var late error
	select {
	case <-idle:
	case <-ctx.Done():
		late = ctx.Err()
	}
	if err := c.router.Close(); err != nil {
		return fmt.Errorf("stop the router: %w", err)
	}
	if late != nil {
		return fmt.Errorf("stop the router: batches were cut off: %w", late)
	}
	return nil
}

// handle projects one batch. Its error refuses the batch; watermill logs it.
func (c *Consumer) handle(msg *message.Message) error {
	events, err := cloudevent.DecodeBatch(msg.Payload)
	if err != nil {
		// Nothing in it has a place in a stream, so nothing can be parked: it was damaged
		// on its way, or its sender is none of ours.
		c.metrics.refuse("malformed")
		return refuse(msg, fmt.Errorf("read a batch: %w", err))
	}
	if len(events) == 1 && events[0].Type == headsv1.Type {
		return c.compare(msg, events[0])
	}
	messages := make([]readmodel.Message, len(events))
	for i, e := range events {
		messages[i] = readmodel.Decode(e)
	}
	ended := traceEvents(msg.Context(), events)
	result, err := c.projector.Apply(msg.Context(), messages)
	ended(err)
	c.metrics.count(result.Summary)
	if err != nil {
		c.metrics.refuse("failed")
		return refuse(msg, err)
	}
	if result.Summary.Parked > 0 {
		c.log.LogAttrs(msg.Context(), slog.LevelError, "messages were parked", slog.Int("messages", result.Summary.Parked))
	}
	if len(result.Gaps) > 0 {
		c.metrics.refuse("gap")
		return refuse(msg, gapError(result.Gaps))
	}
	return nil
}

// compare answers a question of the relay's: whether all that it sent has come. What was
// lost on the way is a gap, as if the next message of the stream had come.
func (c *Consumer) compare(msg *message.Message, e cloudevent.Event) error {
	heads, err := headsv1.Unmarshal(e.Data)
	if err != nil {
		c.metrics.refuse("malformed")
		return refuse(msg, err)
	}
	sent := make(map[readmodel.Stream]int64, len(heads.Heads))
	for _, h := range heads.Heads {
		sent[readmodel.Stream{Kind: h.Kind, ID: h.ID}] = h.Version
	}
	lost, err := c.projector.Lost(msg.Context(), sent)
	switch {
	case err != nil:
		c.metrics.refuse("failed")
		return refuse(msg, err)
	case len(lost) > 0:
		c.metrics.refuse("gap")
		return refuse(msg, gapError(lost))
	}
	return nil
}

func refuse(msg *message.Message, err error) error {
	transport.Refuse(msg, err)
	return err
}

func gapError(gaps []readmodel.Gap) *transport.GapError {
	err := &transport.GapError{Streams: make([]transport.StreamGap, len(gaps))}
	for i, g := range gaps {
		err.Streams[i] = transport.StreamGap{Kind: g.Stream.Kind, ID: g.Stream.ID, Applied: g.Applied}
	}
	return err
}
