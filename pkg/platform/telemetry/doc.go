// Package telemetry makes a service observable: JSON log lines, Prometheus metrics and
// OpenTelemetry traces, whose context travels in message metadata as a W3C traceparent.
package telemetry
