// Package httpserver runs a service's HTTP listeners: with time-outs and size limits, so
// that a slow or huge request hurts nobody else, and with a drain, so that a request in
// flight gets its answer.
//
// The middleware here works on net/http, below any framework. A framework that knows
// the route tells it with [SetRoute], since paths hold identifiers and are never logged.
// The order around a handler, outermost first, is [RequestID], [AccessLog], [Recover].
package httpserver
