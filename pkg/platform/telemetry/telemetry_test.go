package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"verbatim.internal/pkg/platform/telemetry"
)

const (
	said   = "what-the-user-said"
	parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

func lastLine(t *testing.T, out *bytes.Buffer) map[string]any {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	var line map[string]any
	require.NoError(t, json.Unmarshal(lines[len(lines)-1], &line))
	return line
}

func TestLoggerWritesJSONWithTheSpan(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.NewLogger(&out, slog.LevelWarn, "ingest")
	log.Info("hidden")
	require.Empty(t, out.String())

	log.With("stream", "s").WarnContext(telemetry.ExtractTrace(t.Context(), parent), "shown")
	line := lastLine(t, &out)
	require.Equal(t, "ingest", line["service"])
	require.Equal(t, "s", line["stream"])
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", line["trace_id"])
	require.Equal(t, "b7ad6b7169203331", line["span_id"])

	log.Warn("without a span")
	require.NotContains(t, lastLine(t, &out), "trace_id")
	telemetry.NewLogger(&out, nil, "ingest").Info("at the default level")
	require.Equal(t, "at the default level", lastLine(t, &out)["msg"])
}

func TestTraceTravelsAsText(t *testing.T) {
	t.Parallel()
	ctx := telemetry.ExtractTrace(t.Context(), parent)
	require.True(t, trace.SpanContextFromContext(ctx).IsRemote())
	require.Equal(t, parent, telemetry.InjectTrace(ctx))
	require.Empty(t, telemetry.InjectTrace(t.Context()))
	for _, malformed := range []string{"", "x", "00-" + parent, said} {
		require.False(t, trace.SpanContextFromContext(telemetry.ExtractTrace(t.Context(), malformed)).IsValid())
	}
}

func TestWatermillLoggerDropsMessages(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.NewWatermillLogger(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	msg := message.NewMessage("id", []byte(said))
	fields := watermill.LogFields{
		"topic": "t", "message_uuid": "id", "count": 3, "wait": time.Second, "cause": errors.New("c"),
		"payload": said, "metadata": map[string]string{"k": said}, "message": msg, "raw": []byte(said), "any": struct{ Text string }{said},
	}
	log = log.With(fields)
	log.Error("failed", errors.New("e"), fields)
	line := lastLine(t, &out)
	require.Equal(t, "ERROR", line["level"])
	require.Equal(t, "t", line["topic"])
	require.EqualValues(t, 3, line["count"])
	require.Equal(t, "e", line["error"])
	log.Info("i", fields)
	log.Debug("d", fields)
	log.Trace("t", fields)
	require.Equal(t, "DEBUG", lastLine(t, &out)["level"])
	require.NotContains(t, out.String(), said)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	telemetry.MetricsHandler(telemetry.NewRegistry()).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, rec.Code)
	require.Contains(t, rec.Body.String(), "go_goroutines")
	require.Contains(t, rec.Body.String(), "process_open_fds")
}

// It sets the process's environment and tracer provider.
func TestStartTracing(t *testing.T) {
	before := otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")

	shutdown, err := telemetry.StartTracing(t.Context(), "ingest")
	require.NoError(t, err)
	require.NoError(t, shutdown(t.Context()))
	require.Equal(t, []string{"traceparent", "tracestate"}, otel.GetTextMapPropagator().Fields())
	_, span := otel.Tracer("test").Start(t.Context(), "unseen")
	require.False(t, span.IsRecording())

	received := make(chan []byte, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- append([]byte(r.URL.Path+"\n"), body...)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_SERVICE_NAME", "")
	shutdown, err = telemetry.StartTracing(t.Context(), "ingest")
	require.NoError(t, err)
	_, span = otel.Tracer("test").Start(t.Context(), "append")
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, shutdown(ctx))
	sent := string(<-received)
	require.Contains(t, sent, "/v1/traces\n")
	require.Contains(t, sent, "append")
	require.Contains(t, sent, "ingest")
}
