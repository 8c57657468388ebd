package telemetry

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns a logger that writes one JSON object a line to w, from level on,
// each with the service's name and, inside a span, its trace_id and span_id. Nil as
// level means Info.
func NewLogger(w io.Writer, level slog.Leveler, service string) *slog.Logger {
	if level == nil {
		level = slog.LevelInfo
	}
	handler := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
	return slog.New(traceHandler{handler}).With(slog.String("service", service))
}

// traceHandler adds the ids of the context's span, so that lines and traces find each other.
type traceHandler struct{ slog.Handler }

func (h traceHandler) Handle(ctx context.Context, record slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		record = record.Clone()
		record.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, record)
}

func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}

// watermillLogger passes watermill's lines to slog.
type watermillLogger struct{ log *slog.Logger }

// NewWatermillLogger adapts a logger for watermill. Of a line's fields it keeps plain
// values (strings, numbers, durations, errors) and drops payloads, metadata and whatever
// else could hold a message. Watermill's Info and Trace become Debug: they tell of each
// subscription and message.
func NewWatermillLogger(log *slog.Logger) watermill.LoggerAdapter {
	return watermillLogger{log}
}

func (l watermillLogger) Error(msg string, err error, fields watermill.LogFields) {
	attrs := plain(fields)
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	l.write(slog.LevelError, msg, attrs)
}

func (l watermillLogger) Info(msg string, fields watermill.LogFields) {
	l.write(slog.LevelDebug, msg, plain(fields))
}

func (l watermillLogger) Debug(msg string, fields watermill.LogFields) {
	l.write(slog.LevelDebug, msg, plain(fields))
}

func (l watermillLogger) Trace(msg string, fields watermill.LogFields) {
	l.write(slog.LevelDebug, msg, plain(fields))
}

func (l watermillLogger) With(fields watermill.LogFields) watermill.LoggerAdapter {
	attrs := plain(fields)
	args := make([]any, len(attrs))
	for i, attr := range attrs {
		args[i] = attr
	}
	return watermillLogger{l.log.With(args...)}
}

func (l watermillLogger) write(level slog.Level, msg string, attrs []slog.Attr) {
	// watermill's logger has no context.
	l.log.LogAttrs(context.Background(), level, msg, attrs...) //nolint:sloglint // watermill words its own lines
}

func plain(fields watermill.LogFields) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value := fields[key]
		switch key {
		case "payload", "metadata", "message", "msg", "data", "body":
			continue
		}
		switch value := value.(type) {
		case string, bool, int, int32, int64, uint, uint32, uint64, float64, time.Duration, time.Time, error:
			attrs = append(attrs, slog.Any(key, value))
		}
	}
	return attrs
}
