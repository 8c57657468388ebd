package transport

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/httpserver"
)

// route is the handler's path as access logs show it.
const route = relayPath + "{topic}"

// httpHandler puts a Local behind HTTP.
type httpHandler struct {
	local   *Local
	digest  [sha256.Size]byte
	open    bool // false when there is no token, which then nobody has
	maxBody int64
	known   func(topic string) bool
}

// NewHTTPHandler serves POST /internal/relay/{topic}: it publishes the body to local and
// answers after the subscriber has.
//
//	200  {"acked": id}                  the subscriber acknowledged it; id is the request's X-Request-Id
//	401                                 the bearer is not token (compared in constant time)
//	404                                 the topic is not one of Topics, or another path
//	405                                 another method than POST
//	409  {"error":"stream_gap", …}      refused with a GapError
//	413                                 the body is larger than maxBody bytes
//	415                                 the body is not application/cloudevents-batch+json
//	503                                 refused otherwise, no subscriber, or closed; may be sent again
//
// The body is read only after the bearer was checked. An empty token refuses everyone.
// The message's context is the request's, so a publisher that goes away ends its
// delivery.
func NewHTTPHandler(local *Local, token config.Secret, maxBody int64) http.Handler {
	known := func(topic string) bool {
		_, ok := PartitionOf(topic)
		return ok
	}
	return newHTTPHandler(local, token, maxBody, known)
}

func newHTTPHandler(local *Local, token config.Secret, maxBody int64, known func(topic string) bool) *httpHandler {
	return &httpHandler{
		local: local, digest: sha256.Sum256([]byte(token.Reveal())), open: token != "", maxBody: maxBody, known: known,
	}
}

// ServeHTTP answers one message.
func (h *httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	topic, ok := strings.CutPrefix(r.URL.Path, relayPath)
	if ok {
		httpserver.SetRoute(r.Context(), route)
	}
	switch {
	case !h.authorized(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		httpserver.WriteError(w, http.StatusUnauthorized, "unauthorized", "the relay's bearer token is missing or wrong")
		return
	case !ok || !h.known(topic):
		httpserver.WriteError(w, http.StatusNotFound, "not_found", "there is no such relay topic")
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		httpserver.WriteError(w, http.StatusMethodNotAllowed, "method_not_allowed", "relay messages are sent with POST")
		return
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != ContentType {
		httpserver.WriteError(w, http.StatusUnsupportedMediaType, "unsupported_media_type", "a relay message is "+ContentType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.maxBody))
	if err != nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			httpserver.WriteError(w, http.StatusRequestEntityTooLarge, "payload_too_large", "a relay message has at most "+strconv.FormatInt(h.maxBody, 10)+" bytes")
			return
		}
		httpserver.WriteError(w, http.StatusBadRequest, "invalid_request", "the body ended early")
		return
	}
	h.publish(w, r, topic, body)
}

func (h *httpHandler) authorized(r *http.Request) bool {
	scheme, bearer, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	// Digests have one length, so that the time tells nothing about the token's either.
	digest := sha256.Sum256([]byte(bearer))
	same := subtle.ConstantTimeCompare(digest[:], h.digest[:]) == 1
	return same && ok && h.open && strings.EqualFold(scheme, "Bearer")
}

func (h *httpHandler) publish(w http.ResponseWriter, r *http.Request, topic string, body []byte) {
	id := r.Header.Get(requestIDHeader)
	if !httpserver.ValidRequestID(id) {
		id = uuid.NewString()
	}
	msg := message.NewMessageWithContext(r.Context(), id, body)
	msg.Metadata.Set(MetadataContentType, ContentType)
	if partition, ok := PartitionOf(topic); ok {
		msg.Metadata.Set(MetadataPartition, strconv.Itoa(partition))
	}
	if traceparent := r.Header.Get("Traceparent"); traceparent != "" {
		msg.Metadata.Set(MetadataTraceparent, traceparent)
	}
	err := h.local.Publish(topic, msg) //nolint:contextcheck // the message carries the request's context
	var gap *GapError
	switch {
	case err == nil:
		writeJSON(w, http.StatusOK, answer{Acked: id})
	case errors.As(err, &gap):
		writeJSON(w, http.StatusConflict, answer{Error: codeGap, Message: "messages are missing before this one", Streams: gap.Streams})
	default:
		// Why is on this side's log; another process learns that it may send again.
		w.Header().Set("Retry-After", "1")
		httpserver.WriteError(w, http.StatusServiceUnavailable, "unavailable", "the message was not acknowledged")
	}
}

func writeJSON(w http.ResponseWriter, status int, body answer) {
	// An answer of strings and numbers always marshals.
	raw, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A publisher that is gone gets no answer and sends again.
	_, _ = w.Write(append(raw, '\n'))
}
