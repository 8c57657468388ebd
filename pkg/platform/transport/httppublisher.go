package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/telemetry"
)

const (
	relayPath       = "/internal/relay/"
	requestIDHeader = "X-Request-Id"

	defaultPublishTimeout = 30 * time.Second

	// maxAnswer bounds what is read of an answer, in bytes: a gap list of a whole batch fits.
	maxAnswer = 1 << 20
)

// codeGap is the error code of a refusal with a gap.
const codeGap = "stream_gap"

// answer is the body of all the relay's answers.
type answer struct {
	Acked   string      `json:"acked,omitempty"`
	Error   string      `json:"error,omitempty"`
	Message string      `json:"message,omitempty"`
	Streams []StreamGap `json:"streams,omitempty"`
}

// HTTPPublisherConfig says where relay messages go.
type HTTPPublisherConfig struct {
	// URL is the receiver's internal address, such as https://auditview:8082; a path before
	// /internal/relay is kept. It is https unless its host is localhost or a loopback address.
	URL string
	// Token is the bearer that both sides know. Required.
	Token config.Secret
	// CAFile names PEM certificates that the receiver's is checked against, in place of the
	// system's. Empty means the system's.
	CAFile string
	// Timeout bounds one message, from the connection to the acknowledgement. Zero means 30 s.
	Timeout time.Duration
	// Client is used in place of one of its own, for tests; CAFile has then no effect.
	Client *http.Client
}

// StatusError is an answer that neither acknowledges a message nor refuses it with a
// gap: mostly a deployment that is not right (401, 404, 413, 415).
type StatusError struct {
	// Status is the HTTP status.
	Status int
	// Code is the receiver's error code, or "".
	Code string
}

// Error names the status and the code.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("transport: the receiver answered %d", e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	return text
}

// HTTPPublisher sends relay messages to [NewHTTPHandler]. It is safe for concurrent use.
type HTTPPublisher struct {
	base    string
	token   func() string // not printed, unlike an unexported Secret
	timeout time.Duration
	client  *http.Client
	log     watermill.LoggerAdapter
	closing context.Context // ends requests at Close
	close   context.CancelFunc
}

var _ message.Publisher = (*HTTPPublisher)(nil)

// NewHTTPPublisher checks cfg and connects to nothing yet. Nil as log means none. Its
// errors are sentences for an operator, without the token.
//
// It follows no redirect and uses no proxy: the token and the conversations go to the
// configured address and nowhere else.
func NewHTTPPublisher(cfg HTTPPublisherConfig, log watermill.LoggerAdapter) (*HTTPPublisher, error) {
	base, err := checkURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Token == "" {
		return nil, errors.New("transport: the relay needs the token of the receiver's internal listener")
	}
	if log == nil {
		log = watermill.NopLogger{}
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultPublishTimeout
	}
	var client http.Client
	if cfg.Client != nil {
		client = *cfg.Client
	} else {
		client.Transport, err = newRoundTripper(cfg.CAFile)
		if err != nil {
			return nil, err
		}
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	closing, cancel := context.WithCancel(context.Background())
	return &HTTPPublisher{
		base: base, token: cfg.Token.Reveal, timeout: cfg.Timeout, client: &client, log: log,
		closing: closing, close: cancel,
	}, nil
}

// checkURL returns the URL without a slash at its end.
func checkURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("transport: the relay's URL must be of the form https://host:port, without user, query and fragment")
	}
	switch {
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return strings.TrimRight(u.String(), "/"), nil
	case u.Scheme == "http":
		return "", fmt.Errorf("transport: the relay's URL must be https, because %s is not a loopback address and conversations travel over it", u.Hostname())
	default:
		return "", errors.New("transport: the relay's URL must be https")
	}
}

func loopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

func newRoundTripper(caFile string) (http.RoundTripper, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile) //nolint:gosec // the operator names the file
		if err != nil {
			return nil, fmt.Errorf("transport: read the relay's CA file: %w", err)
		}
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("transport: the relay's CA file holds no PEM certificate")
		}
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        2 * Partitions,
		MaxIdleConnsPerHost: 2 * Partitions,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
	}, nil
}

// Publish posts each message in turn and returns nil only when each was acknowledged;
// see the package's guarantee. It stops at the first that was not, with an error that
// wraps a [*GapError], [ErrNacked] (the receiver can take it later), a [*StatusError],
// [ErrClosed], or what went wrong on the way. It follows the messages' contexts.
func (p *HTTPPublisher) Publish(topic string, messages ...*message.Message) error {
	for _, msg := range messages {
		if err := p.publish(topic, msg); err != nil {
			return fmt.Errorf("publish to %s: %w", topic, err)
		}
	}
	return nil
}

func (p *HTTPPublisher) publish(topic string, msg *message.Message) error {
	if p.closing.Err() != nil {
		return ErrClosed
	}
	ctx, cancel := context.WithTimeout(msg.Context(), p.timeout)
	defer cancel()
	defer context.AfterFunc(p.closing, cancel)()

	id := msg.UUID
	if id == "" {
		id = uuid.NewString()
	}
	req, err := p.request(ctx, topic, id, msg)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		if p.closing.Err() != nil {
			return ErrClosed
		}
		return fmt.Errorf("transport: send: %w", withoutURL(err))
	}
	defer func() { _ = resp.Body.Close() }()
	err = readAnswer(resp, id)
	p.log.Trace("Sent", watermill.LogFields{"topic": topic, "message_uuid": id, "status": resp.StatusCode, "bytes": len(msg.Payload)})
	return err
}

func (p *HTTPPublisher) request(ctx context.Context, topic, id string, msg *message.Message) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+relayPath+url.PathEscape(topic), bytes.NewReader(msg.Payload))
	if err != nil {
		return nil, fmt.Errorf("transport: prepare: %w", withoutURL(err))
	}
	contentType := msg.Metadata.Get(MetadataContentType)
	if contentType == "" {
		contentType = ContentType
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Authorization", "Bearer "+p.token())
	req.Header.Set(requestIDHeader, id)
	traceparent := msg.Metadata.Get(MetadataTraceparent)
	if traceparent == "" {
		traceparent = telemetry.InjectTrace(ctx)
	}
	if traceparent != "" {
		req.Header.Set("Traceparent", traceparent)
	}
	return req, nil
}

// readAnswer returns nil only for a 200 that names the message. Anything between the
// two sides that answers 200 on its own, such as a balancer's page, is no acknowledgement.
func readAnswer(resp *http.Response, id string) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("transport: read the answer: %w", err)
	}
	var body answer
	decodeErr := json.Unmarshal(raw, &body)
	switch {
	case resp.StatusCode == http.StatusOK && decodeErr == nil && body.Acked == id:
		return nil
	case resp.StatusCode == http.StatusOK:
		return errors.New("transport: the answer 200 does not come from a relay receiver; check the relay's URL")
	case resp.StatusCode == http.StatusConflict && decodeErr == nil && body.Error == codeGap:
		return nacked(&GapError{Streams: body.Streams})
	case resp.StatusCode == http.StatusServiceUnavailable:
		return ErrNacked
	default:
		return &StatusError{Status: resp.StatusCode, Code: cleanCode(body.Error)}
	}
}

// cleanCode keeps what looks like an error code: the answer is foreign text.
func cleanCode(code string) string {
	const maxCode = 64
	if len(code) > maxCode || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return ""
	}
	return code
}

// withoutURL takes net/http's URL, which is in each line anyway, out of an error.
func withoutURL(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}

// Close ends requests that are under way, whose Publish returns [ErrClosed], and refuses
// what is published from then on. To close twice does nothing.
func (p *HTTPPublisher) Close() error {
	p.close()
	p.client.CloseIdleConnections()
	return nil
}
