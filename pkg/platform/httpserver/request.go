package httpserver

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync/atomic"

	"verbatim.internal/pkg/domain/redact"
)

// RequestIDHeader carries a request's id, in both directions.
const RequestIDHeader = "X-Request-Id"

const maxRequestID = 64

type contextKey int

const (
	requestIDKey contextKey = iota
	routeKey
)

// RequestID gives each request an id: the client's X-Request-Id when it has 1 to 64
// characters of A-Z, a-z, 0-9, '.', '_' and '-' and looks like no secret, since it is
// logged; else a random one. The id is in the
// request's context and in the answer's header.
func RequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(RequestIDHeader)
		if !ValidRequestID(id) {
			id = rand.Text()
		}
		w.Header().Set(RequestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey, id)))
	})
}

// RequestIDFrom returns the id that [RequestID] gave, or "" outside of it.
func RequestIDFrom(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// ValidRequestID tells whether a client may choose id.
func ValidRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for _, c := range []byte(id) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return !redact.IsSecret(id)
}

// SetRoute tells [AccessLog] the pattern of the route that was matched, such as
// "/threads/:id". Outside of AccessLog it does nothing. It is safe for concurrent use.
func SetRoute(ctx context.Context, pattern string) {
	if route, ok := ctx.Value(routeKey).(*atomic.Value); ok {
		route.Store(pattern)
	}
}
