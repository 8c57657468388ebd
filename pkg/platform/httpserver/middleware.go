package httpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"
)

// unmatched stands for the route of a request that no route took.
const unmatched = "unmatched"

// AccessLog writes one line for each request, after its end: method, route pattern,
// status (0 when the connection was cut before one), duration, size of the answer in
// bytes and request id. It never writes a path, a query, a header or a body. The route
// is what [SetRoute] said, else net/http's own pattern.
func AccessLog(log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begin := time.Now() //nolint:forbidigo // measures, and decides nothing
			var route atomic.Value
			r = r.WithContext(context.WithValue(r.Context(), routeKey, &route))
			rec := &recorder{ResponseWriter: w}
			defer logRequest(log, r, rec, &route, begin)
			next.ServeHTTP(rec, r)
			rec.complete()
		})
	}
}

func logRequest(log *slog.Logger, r *http.Request, rec *recorder, route *atomic.Value, begin time.Time) {
	log.LogAttrs(r.Context(), slog.LevelInfo, "request",
		slog.String("method", method(r.Method)),
		slog.String("route", routeOf(route, r)),
		slog.Int("status", rec.status),
		slog.Duration("duration", time.Since(begin)),
		slog.Int64("bytes", rec.bytes),
		slog.String("request_id", RequestIDFrom(r.Context())))
}

func routeOf(route *atomic.Value, r *http.Request) string {
	if set, ok := route.Load().(string); ok && set != "" {
		return set
	}
	if r.Pattern != "" {
		// A pattern may begin with the method, which has its own field.
		if _, path, ok := strings.Cut(r.Pattern, " "); ok {
			return path
		}
		return r.Pattern
	}
	return unmatched
}

// method returns known methods only: the others are text of the client's choice.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return m
	default:
		return "other"
	}
}

// Recover turns a panic into a 500, so that it ends one request and not the service. It
// logs where the panic happened; of its value only the type, or a runtime error's
// text, since a value can hold a conversation's text. respond writes the answer; nil
// means the service's usual error body with the code conversation_audit_internal_error.
// When the answer has begun, the connection is cut instead: a client must not take half
// an answer for a whole one. http.ErrAbortHandler passes through.
func Recover(log *slog.Logger, respond http.Handler) func(http.Handler) http.Handler {
	if respond == nil {
		respond = http.HandlerFunc(internalError)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := &recorder{ResponseWriter: w}
			defer recovered(log, rec, r, respond)
			next.ServeHTTP(rec, r)
		})
	}
}

// recovered is deferred itself: recover works nowhere deeper.
func recovered(log *slog.Logger, rec *recorder, r *http.Request, respond http.Handler) {
	value := recover()
	if value == nil {
		return
	}
	if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(value)
	}
	log.LogAttrs(r.Context(), slog.LevelError, "a handler panicked",
		slog.String("panic", describePanic(value)),
		slog.String("request_id", RequestIDFrom(r.Context())),
		slog.String("stack", string(debug.Stack())))
	if rec.wrote {
		panic(http.ErrAbortHandler)
	}
	respond.ServeHTTP(rec, r)
}

func describePanic(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", value)
}

func internalError(w http.ResponseWriter, _ *http.Request) {
	WriteError(w, http.StatusInternalServerError, "conversation_audit_internal_error", "internal error")
}

// WriteError answers with a status and the error body that all of Verbatim uses:
// {"error": code, "message": text}.
func WriteError(w http.ResponseWriter, status int, code, message string) {
	// Two strings always marshal.
	body, _ := json.Marshal(struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}{code, message})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// A client that is gone cannot be told.
	_, _ = w.Write(append(body, '\n'))
}

// recorder notes what was answered. Unwrap lets http.ResponseController reach through.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	wrote  bool
}

// WriteHeader notes the final status; informational ones (1xx) may come before it.
func (r *recorder) WriteHeader(status int) {
	if !r.wrote && status >= http.StatusOK {
		r.wrote, r.status = true, status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write counts the answer's bytes.
func (r *recorder) Write(b []byte) (int, error) {
	if !r.wrote {
		r.wrote, r.status = true, http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Flush sends what was written so far, where the writer below can.
func (r *recorder) Flush() {
	if !r.wrote {
		r.wrote, r.status = true, http.StatusOK
	}
	// The only failure is that flushing is not supported, which http.Flusher cannot tell.
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}

// Unwrap returns the writer below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// complete notes net/http's answer for a handler that wrote nothing. A handler that
// panicked leaves the status 0: its client saw the connection close.
func (r *recorder) complete() {
	if !r.wrote {
		r.status = http.StatusOK
	}
}
