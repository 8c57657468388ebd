package transport_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
)

const (
	token       = "geheimes-token"
	body        = "what-the-user-said"
	maxBody     = 64
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

var topic = transport.Topic(7)

type testBundle struct {
	local     *transport.Local
	messages  <-chan *message.Message
	server    *httptest.Server
	publisher *transport.HTTPPublisher
	log       *bytes.Buffer // read it after the publisher's work has ended
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{local: transport.NewLocal(nil), log: new(bytes.Buffer)}
	messages, err := b.local.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	b.messages = messages
	b.server = httptest.NewServer(transport.NewHTTPHandler(b.local, token, maxBody))
	t.Cleanup(b.server.Close)
	t.Cleanup(func() { require.NoError(t, b.local.Close()) })
	b.publisher = newPublisher(t, b.server.URL, b.log)
	return b
}

func newPublisher(t *testing.T, url string, log io.Writer) *transport.HTTPPublisher {
	t.Helper()
	adapter := telemetry.NewWatermillLogger(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	publisher, err := transport.NewHTTPPublisher(transport.HTTPPublisherConfig{URL: url, Token: token}, adapter)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, publisher.Close()) })
	return publisher
}

func TestHTTPCarriesTheMessage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	msg := newMessage(t.Context(), body)
	msg.Metadata.Set(transport.MetadataTraceparent, traceparent)
	result := start(b.publisher, topic, msg)

	got := <-b.messages
	require.Equal(t, body, string(got.Payload))
	require.Equal(t, message.Metadata{
		"content-type": "application/cloudevents-batch+json", "partition": "7", "traceparent": traceparent,
	}, got.Metadata)
	select {
	case err := <-result:
		t.Fatalf("Publish returned before the ack: %v", err)
	default:
	}
	got.Ack()
	require.NoError(t, <-result)
	require.Contains(t, b.log.String(), `"status":200`)
	require.NotContains(t, b.log.String(), body)
	require.NotContains(t, b.log.String(), token)
}

func TestHTTPCarriesAGap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := &transport.GapError{Streams: []transport.StreamGap{{Kind: "archive", ID: "a", Applied: 0}, {Kind: "run", ID: "b", Applied: 1 << 53}}}
	result := start(b.publisher, topic, newMessage(t.Context(), body))
	got := <-b.messages
	transport.Refuse(got, fmt.Errorf("apply: %w", want))
	got.Nack()

	err := <-result
	var gap *transport.GapError
	require.ErrorAs(t, err, &gap)
	require.Equal(t, want, gap)
	require.ErrorIs(t, err, transport.ErrNacked)
}

func TestHTTPKeepsOtherReasonsOnItsSide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	result := start(b.publisher, topic, newMessage(t.Context(), body))
	got := <-b.messages
	transport.Refuse(got, fmt.Errorf("secret table %s", body))
	got.Nack()
	err := <-result
	require.ErrorIs(t, err, transport.ErrNacked)
	require.NotContains(t, err.Error(), body)

	require.ErrorIs(t, b.publisher.Publish(transport.Topic(1), newMessage(t.Context(), body)), transport.ErrNacked, "nobody subscribes")
	require.NoError(t, b.local.Close())
	require.ErrorIs(t, b.publisher.Publish(topic, newMessage(t.Context(), body)), transport.ErrNacked, "closed")
}

func TestHTTPCloseNeverAcknowledges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	result := start(b.publisher, topic, newMessage(t.Context(), body))
	got := <-b.messages
	require.NoError(t, b.publisher.Close())
	require.ErrorIs(t, <-result, transport.ErrClosed)
	<-got.Context().Done() // the receiver noticed that nobody waits
	require.ErrorIs(t, b.publisher.Publish(topic, newMessage(t.Context(), body)), transport.ErrClosed)
}

func TestHTTPFollowsTheMessagesContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	result := start(b.publisher, topic, newMessage(ctx, body))
	got := <-b.messages
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	<-got.Context().Done()

	hurried, err := transport.NewHTTPPublisher(transport.HTTPPublisherConfig{URL: b.server.URL, Token: token, Timeout: 20 * time.Millisecond}, nil)
	require.NoError(t, err)
	got.Nack()
	require.ErrorIs(t, hurried.Publish(topic, newMessage(t.Context(), body)), context.DeadlineExceeded)
	require.NoError(t, hurried.Close())
}

func TestHTTPHandlerRefuses(t *testing.T) {
	t.Parallel()
	local := transport.NewLocal(nil)
	handler := transport.NewHTTPHandler(local, token, maxBody)
	const path = "/internal/relay/verbatim.outbox.07"
	for name, tc := range map[string]struct {
		method, path, auth, contentType, body string
		status                                int
		code                                  string
	}{
		"no token":          {"POST", path, "", transport.ContentType, "[]", 401, "unauthorized"},
		"wrong token":       {"POST", path, "Bearer wrong", transport.ContentType, "[]", 401, "unauthorized"},
		"token's beginning": {"POST", path, "Bearer " + token[:5], transport.ContentType, "[]", 401, "unauthorized"},
		"another scheme":    {"POST", path, "Basic " + token, transport.ContentType, "[]", 401, "unauthorized"},
		"foreign topic":     {"POST", "/internal/relay/verbatim.outbox.16", "Bearer " + token, transport.ContentType, "[]", 404, "not_found"},
		"foreign path":      {"POST", "/", "Bearer " + token, transport.ContentType, "[]", 404, "not_found"},
		"another method":    {"GET", path, "Bearer " + token, transport.ContentType, "", 405, "method_not_allowed"},
		"no content type":   {"POST", path, "Bearer " + token, "", "[]", 415, "unsupported_media_type"},
		"JSON":              {"POST", path, "Bearer " + token, "application/json", "[]", 415, "unsupported_media_type"},
		"too large":         {"POST", path, "Bearer " + token, transport.ContentType, strings.Repeat("x", maxBody+1), 413, "payload_too_large"},
		"nobody subscribes": {"POST", path, "bearer " + token, transport.ContentType + "; charset=utf-8", strings.Repeat("x", maxBody), 503, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(tc.body))
			req.Header.Set("Authorization", tc.auth)
			req.Header.Set("Content-Type", tc.contentType)
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, req)
			require.Equal(t, tc.status, rec.Code)
			require.Contains(t, rec.Body.String(), `{"error":"`+tc.code+`","message":"`)
			require.NotContains(t, rec.Body.String(), token)
		})
	}
}

func TestHTTPHandlerWithoutATokenRefusesEveryone(t *testing.T) {
	t.Parallel()
	handler := transport.NewHTTPHandler(transport.NewLocal(nil), "", maxBody)
	for _, auth := range []string{"", "Bearer", "Bearer "} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/internal/relay/verbatim.outbox.07", strings.NewReader("[]"))
		req.Header.Set("Authorization", auth)
		req.Header.Set("Content-Type", transport.ContentType)
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, req)
		require.Equal(t, http.StatusUnauthorized, rec.Code, "%q", auth)
	}
}

// A 200 from something else on the way would lose the batch.
func TestHTTPTakesNoForeignAnswerForAnAck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"a page":                {200, "<html>Welcome</html>", "does not come from a relay receiver"},
		"an empty answer":       {200, "", "does not come from a relay receiver"},
		"another message's":     {200, `{"acked":"id-other"}`, "does not come from a relay receiver"},
		"no content":            {204, "", "answered 204"},
		"accepted":              {202, `{"acked":"` + messageID(body) + `"}`, "answered 202"},
		"a redirect":            {307, "", "answered 307"},
		"a foreign conflict":    {409, `{"error":"another"}`, "answered 409 another"},
		"an unauthorized":       {401, `{"error":"unauthorized"}`, "answered 401 unauthorized"},
		"a code that is a text": {500, `{"error":"` + strings.ToUpper(body) + `"}`, "answered 500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			err := newPublisher(t, server.URL, io.Discard).Publish(topic, newMessage(t.Context(), body))
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), strings.ToUpper(body))
		})
	}
}

func TestHTTPPublisherChecksItsConfiguration(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                              "must be of the form",
		"auditview:8082":                "must be of the form",
		"https://user:pw@auditview":     "must be of the form",
		"https://auditview/?a=b":        "must be of the form",
		"http://auditview:8082":         "must be https, because auditview is not a loopback address",
		"http://10.0.0.1:8082":          "must be https",
		"http://localhost.example:8082": "must be https",
		"ftp://localhost":               "must be https",
	} {
		_, err := transport.NewHTTPPublisher(transport.HTTPPublisherConfig{URL: url, Token: token}, nil)
		require.ErrorContains(t, err, want, url)
	}
	for _, url := range []string{"https://auditview:8082", "http://127.0.0.1:1", "http://[::1]:1/", "http://localhost:1", "http://127.8.8.8"} {
		_, err := transport.NewHTTPPublisher(transport.HTTPPublisherConfig{URL: url, Token: token}, nil)
		require.NoError(t, err, url)
	}
	_, err := transport.NewHTTPPublisher(transport.HTTPPublisherConfig{URL: "https://auditview"}, nil)
	require.ErrorContains(t, err, "token")
	_, err = transport.NewHTTPPublisher(transport.HTTPPublisherConfig{URL: "https://auditview", Token: token, CAFile: "/dev/null"}, nil)
	require.ErrorContains(t, err, "no PEM certificate")
}

func TestHTTPChecksTheCertificate(t *testing.T) {
	t.Parallel()
	local := transport.NewLocal(nil)
	server := httptest.NewUnstartedServer(transport.NewHTTPHandler(local, token, maxBody))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // it tells of the handshakes refused below
	server.StartTLS()
	t.Cleanup(server.Close)
	messages, err := local.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))

	require.ErrorContains(t, newPublisher(t, server.URL, io.Discard).Publish(topic, newMessage(t.Context(), body)), "certificate")

	trusting, err := transport.NewHTTPPublisher(transport.HTTPPublisherConfig{URL: server.URL, Token: token, CAFile: ca}, nil)
	require.NoError(t, err)
	result := start(trusting, topic, newMessage(t.Context(), body))
	(<-messages).Ack()
	require.NoError(t, <-result)
	require.NoError(t, trusting.Close())
	require.NoError(t, local.Close())
}

func TestHTTPPublisherPrintsNoToken(t *testing.T) {
	t.Parallel()
	publisher := newPublisher(t, "http://127.0.0.1:1", io.Discard)
	require.NotContains(t, fmt.Sprintf("%+v %#v", publisher, *publisher), token)
	require.NotContains(t, fmt.Sprintf("%+v", transport.HTTPPublisherConfig{Token: config.Secret(token)}), token)
	err := publisher.Publish(topic, newMessage(t.Context(), body))
	require.Error(t, err)
	require.NotContains(t, err.Error(), body)
}
