package consumer

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/ThreeDotsLabs/watermill/message"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// admit refuses batches once the consumer stops, and counts those in flight.
func (c *Consumer) admit(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		c.mu.Lock()
		if c.stopping {
			c.mu.Unlock()
			return nil, refuse(msg, app.ErrShuttingDown)
		}
		c.running.Add(1)
		c.mu.Unlock()
		defer c.running.Done()
		produced, err := next(msg)
		// The router would do this a moment later, when Stop may have cut the message off.
		if err == nil {
			msg.Ack()
		} else {
			msg.Nack()
		}
		return produced, err
	}
}

// tracerName names this package's spans.
const tracerName = "verbatim.internal/services/auditview/consumer"

// trace measures each batch and makes a span of it, below the relay's.
func (c *Consumer) trace(next message.HandlerFunc) message.HandlerFunc {
	tracer := otel.Tracer(tracerName)
	return func(msg *message.Message) ([]*message.Message, error) {
		ctx := telemetry.ExtractTrace(msg.Context(), msg.Metadata.Get(transport.MetadataTraceparent))
		ctx, span := tracer.Start(ctx, "project batch", trace.WithSpanKind(trace.SpanKindConsumer))
		defer span.End()
		msg.SetContext(ctx)
		begin := c.metrics.now()
		produced, err := next(msg)
		c.metrics.duration.Observe(c.metrics.now().Sub(begin).Seconds())
		if err != nil {
			span.RecordError(err)
		}
		return produced, err
	}
}

// traceEvents makes a span in the trace of each request whose commit the batch carries, so
// that one trace shows agent, commit, relay and projection. The function that it returns
// ends them.
func traceEvents(ctx context.Context, events []cloudevent.Event) (ended func(err error)) {
	var spans []trace.Span
	seen := make(map[string]bool)
	batch := trace.LinkFromContext(ctx)
	for _, e := range events {
		if e.TraceParent == "" || seen[e.TraceParent] {
			continue
		}
		seen[e.TraceParent] = true
		_, span := otel.Tracer(tracerName).Start(telemetry.ExtractTrace(ctx, e.TraceParent), "project",
			trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(batch))
		spans = append(spans, span)
	}
	return func(err error) {
		for _, span := range spans {
			if err != nil {
				span.RecordError(err)
			}
			span.End()
		}
	}
}

// recoverPanics turns a panic into an error that shows no value, and logs where it was.
func (c *Consumer) recoverPanics(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) (produced []*message.Message, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = refuse(msg, readmodel.Recovered(v))
				c.log.LogAttrs(msg.Context(), slog.LevelError, "a handler panicked",
					slog.Any("error", err), slog.String("stack", string(debug.Stack())))
			}
		}()
		return next(msg)
	}
}
