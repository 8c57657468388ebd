package consumer_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview/internal/adapters/consumer"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/clock"
	"verbatim.internal/services/auditview/internal/historytest"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// projector is what a projection does in a test.
type projector func(ctx context.Context, messages []readmodel.Message) (app.Result, error)

func (p projector) Apply(ctx context.Context, messages []readmodel.Message) (app.Result, error) {
	return p(ctx, messages)
}

// Lost is asked for in another test only.
func (projector) Lost(context.Context, map[readmodel.Stream]int64) ([]readmodel.Gap, error) {
	return nil, nil
}

// logs collects log lines; the router writes some after a message's answer.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// start runs a consumer with the projector and returns its publisher and its log.
func start(t *testing.T, p projector) (*transport.Local, *logs) {
	t.Helper()
	local, logs := transport.NewLocal(nil), &logs{}
	c, err := consumer.New(local, p, consumer.NewMetrics(prometheus.NewRegistry(), clock.Now), slog.New(slog.NewJSONHandler(logs, nil)), 10*time.Second)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, c.Stop(ctx))
		require.NoError(t, local.Close())
	})
	return local, logs
}

func batch(t *testing.T, events ...cloudevent.Event) *message.Message {
	t.Helper()
	body, err := cloudevent.EncodeBatch(events)
	require.NoError(t, err)
	return message.NewMessage("batch-1", body)
}

func TestPanicRefusesItsBatchAndShowsNoValue(t *testing.T) {
	t.Parallel()
	local, logs := start(t, func(context.Context, []readmodel.Message) (app.Result, error) { panic("a private matter") })
	event := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Messages[0]
	for range 2 { // it goes on
		require.ErrorIs(t, local.Publish(transport.Topic(3), batch(t, event)), transport.ErrNacked)
	}
	require.Contains(t, logs.String(), "a value of type string")
	require.NotContains(t, logs.String(), "private")
}

func TestEachPartitionHasItsOwnHandler(t *testing.T) {
	t.Parallel()
	blocked, release := make(chan struct{}), make(chan struct{})
	local, _ := start(t, func(_ context.Context, messages []readmodel.Message) (app.Result, error) {
		if len(messages) > 0 {
			close(blocked)
			<-release
		}
		return app.Result{}, nil
	})
	slow := make(chan error, 1)
	busy := batch(t, historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Messages[0])
	go func() { slow <- local.Publish(transport.Topic(0), busy) }()
	<-blocked
	for p := 1; p < transport.Partitions; p++ {
		require.NoError(t, local.Publish(transport.Topic(p), batch(t)))
	}
	close(release)
	require.NoError(t, <-slow)
}

// The trace of an agent's request goes on into the projection.
//
//nolint:paralleltest // the tracer provider belongs to the process
func TestTraceOfTheRequestGoesOn(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	local, _ := start(t, func(context.Context, []readmodel.Message) (app.Result, error) { return app.Result{}, nil })

	events := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Append("x").Append("y").Messages
	events[0].TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	events[1].TraceParent = events[0].TraceParent
	events[2].TraceParent = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	msg := batch(t, events...)
	msg.Metadata.Set(transport.MetadataTraceparent, "00-2af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	require.NoError(t, local.Publish(transport.Topic(0), msg))

	var traces []string
	for _, span := range recorder.Ended() {
		traces = append(traces, span.Name()+" "+span.SpanContext().TraceID().String())
	}
	require.ElementsMatch(t, []string{
		"project 0af7651916cd43dd8448eb211c80319c",
		"project 1af7651916cd43dd8448eb211c80319c",
		"project batch 2af7651916cd43dd8448eb211c80319c",
	}, traces)
}
