package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
)

// closeTimeout bounds how long a batch that is on its way is waited for at the end.
const closeTimeout = 10 * time.Second

// Relay moves the outbox's batches to the transport, a handler a partition.
type Relay struct {
	router    *message.Router
	reader    *Reader
	publisher message.Publisher
	metrics   *Metrics
	log       *slog.Logger
}

// NewRelay returns a relay from reader to publisher. The publisher must return
// nil only for a batch that the receiver has committed or parked.
func NewRelay(reader *Reader, publisher message.Publisher, metrics *Metrics, log *slog.Logger) (*Relay, error) {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: closeTimeout}, telemetry.NewWatermillLogger(log))
	if err != nil {
		return nil, fmt.Errorf("make the relay's router: %w", err)
	}
	r := &Relay{router: router, reader: reader, publisher: publisher, metrics: metrics, log: log}
	router.AddMiddleware(middleware.Recoverer)
	for p := range transport.Partitions {
		topic := transport.Topic(p)
		router.AddConsumerHandler(fmt.Sprintf("relay_%02d", p), topic, reader, r.deliver(topic))
	}
	return r, nil
}

// Run relays until ctx ends or Close is called.
func (r *Relay) Run(ctx context.Context) error { return r.router.Run(ctx) }

// Close stops reading, waits for the batches that are on their way, and returns.
// Run must have been called: a router waits for its handlers to begin before it ends them.
func (r *Relay) Close() error {
	<-r.router.Running()
	return r.router.Close()
}

// deliver publishes one batch. When the receiver misses earlier versions of a
// stream (it was restored, say), their rows are long gone: the stream is sent
// whole, and then the batch again.
func (r *Relay) deliver(topic string) message.NoPublishHandlerFunc {
	return func(msg *message.Message) error {
		done := r.metrics.start()
		err := r.publish(msg.Context(), topic, msg)
		var gap *transport.GapError
		if errors.As(err, &gap) {
			if err = r.heal(msg, topic, gap); err == nil {
				err = r.publish(msg.Context(), topic, msg)
			}
		}
		done(err)
		if err != nil && msg.Context().Err() == nil {
			r.log.WarnContext(msg.Context(), "a batch was not delivered and is sent again",
				slog.String("topic", topic), slog.String("error", err.Error()))
		}
		return err
	}
}

// publish sends a copy: a message's answer can be given once only.
func (r *Relay) publish(ctx context.Context, topic string, msg *message.Message) error {
	out := msg.Copy()
	out.SetContext(telemetry.ExtractTrace(ctx, msg.Metadata.Get("traceparent")))
	return r.publisher.Publish(topic, out)
}

// heal sends the streams whole. One that is not stored, or whose parts do not fit
// together, cannot be sent: an empty snapshot goes in its place, which the
// receiver parks, and with it the stream's messages of this batch.
func (r *Relay) heal(msg *message.Message, topic string, gap *transport.GapError) error {
	ctx := msg.Context()
	for _, s := range gap.Streams {
		r.log.WarnContext(ctx, "the receiver misses versions of a stream; it is sent whole",
			slog.String("stream_kind", s.Kind), slog.String("stream_id", s.ID), slog.Int64("applied", s.Applied))
		send := func(events []cloudevent.Event) error {
			part, err := newMessage(transport.Partition(s.ID), events)
			if err != nil {
				return err
			}
			return r.publish(ctx, topic, part)
		}
		err := r.reader.store.snapshot(ctx, s.Kind, s.ID, false, "", send)
		if errors.Is(err, ErrNoStream) || errors.Is(err, errBroken) {
			r.log.ErrorContext(ctx, "a stream cannot be sent whole; it is left to be parked",
				slog.String("stream_kind", s.Kind), slog.String("stream_id", s.ID), slog.String("error", err.Error()))
			err = sendEmpty(msg, s, send)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendEmpty sends a snapshot without content, at the stream's last version in the batch.
func sendEmpty(msg *message.Message, s transport.StreamGap, send func([]cloudevent.Event) error) error {
	batch, err := cloudevent.DecodeBatch(msg.Payload)
	if err != nil {
		return err
	}
	for i := len(batch) - 1; i >= 0; i-- {
		if e := batch[i]; e.StreamKind == s.Kind && e.StreamID == s.ID {
			return send([]cloudevent.Event{cloudevent.New(s.Kind, s.ID, e.StreamVersion, 1, snapshotType(s.Kind), e.Time, jsontext.Value("{}"))})
		}
	}
	return nil
}
