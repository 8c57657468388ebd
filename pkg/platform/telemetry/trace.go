package telemetry

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const traceparent = "traceparent"

// StartTracing sets the process's propagator to W3C trace context and, when
// OTEL_EXPORTER_OTLP_ENDPOINT (or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) is set, sends
// spans there over OTLP/HTTP. Sampling and batching follow OpenTelemetry's own
// variables. A collector that is away costs spans, never requests.
//
// shutdown sends what is left; it is never nil, and after it the process makes no more
// spans. Call StartTracing once, at the start.
func StartTracing(ctx context.Context, service string) (shutdown func(ctx context.Context) error, err error) {
	otel.SetTextMapPropagator(propagation.TraceContext{})
	nothing := func(context.Context) error { return nil }
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return nothing, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nothing, fmt.Errorf("telemetry: start the trace exporter: %w", err)
	}
	// Attributes of the process's command line are left out: arguments can hold secrets.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv())
	if err != nil {
		return nothing, fmt.Errorf("telemetry: describe the service: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}

// InjectTrace returns the traceparent of ctx's span, or "" when there is none.
func InjectTrace(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}

// ExtractTrace returns ctx with the remote span that parent, a W3C traceparent, names.
// What is empty or malformed leaves ctx as it is.
func ExtractTrace(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparent: parent})
}
