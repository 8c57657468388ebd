package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// answerTimeout bounds one exchange; nothing here may take this long.
const answerTimeout = 30 * time.Second

// Request is one exchange to make.
type Request struct {
	Method string
	Path   string
	Bearer string // empty: no Authorization header
	Body   []byte // nil: no body
	Header http.Header
}

// Response is what came back, whole.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON decodes the body; numbers keep their digits.
func (r Response) JSON() (any, error) {
	var value any
	dec := json.NewDecoder(bytes.NewReader(r.Body))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		return nil, fmt.Errorf("status %d, body is not JSON: %w", r.Status, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("status %d, body is more than one JSON value", r.Status)
	}
	return value, nil
}

// Code returns the error code of the body, or "" when it has none.
func (r Response) Code() string {
	var body struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return ""
	}
	return body.Error
}

// Decode reads the body into v and fails the test when the status differs.
func (r Response) Decode(t *testing.T, status int, v any) {
	t.Helper()
	require.Equal(t, status, r.Status, "body: %s", r.Body)
	require.NoError(t, json.Unmarshal(r.Body, v))
}

// Endpoint is one service's address with its contract. It is safe for concurrent
// use: breaches of the contract are reported with Errorf.
type Endpoint struct {
	URL      string
	Client   *http.Client
	contract *Contract
	t        *testing.T
}

// NewEndpoint returns a client of the service at url, held to the contract.
// The contract's constructor comes as it is: IngestContract, ControlContract or
// AuditviewContract.
func NewEndpoint(t *testing.T, url string, contract func() (*Contract, error)) *Endpoint {
	t.Helper()
	c, err := contract()
	require.NoError(t, err)
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	t.Cleanup(transport.CloseIdleConnections)
	return &Endpoint{
		URL:      url,
		Client:   &http.Client{Transport: transport, Timeout: answerTimeout},
		contract: c,
		t:        t,
	}
}

// Do makes the exchange and holds it against the contract. An error means that no
// complete answer came: the service was gone, or is too slow.
func (e *Endpoint) Do(ctx context.Context, r Request) (Response, error) {
	e.t.Helper()
	request, answer, err := e.exchange(ctx, r)
	if err != nil {
		return Response{}, err
	}
	if err := e.contract.Check(ctx, request, r.Body, answer); err != nil {
		e.t.Errorf("%s %s, answered %d: %v", r.Method, r.Path, answer.Status, err)
	}
	return answer, nil
}

// Must is Do for the test's own goroutine: no answer fails the test at once.
func (e *Endpoint) Must(r Request) Response {
	e.t.Helper()
	answer, err := e.Do(e.t.Context(), r)
	require.NoError(e.t, err)
	return answer
}

func (e *Endpoint) exchange(ctx context.Context, r Request) (_ *http.Request, _ Response, err error) {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, e.URL+r.Path, body)
	if err != nil {
		return nil, Response{}, err
	}
	if r.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.Bearer != "" {
		request.Header.Set("Authorization", "Bearer "+r.Bearer)
	}
	for name, values := range r.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	response, err := e.Client.Do(request)
	if err != nil {
		return nil, Response{}, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, Response{}, err
	}
	return request, Response{Status: response.StatusCode, Header: response.Header, Body: content}, nil
}

// JSON encodes v as agents do: without HTML escapes. It panics for what no test
// sends, such as a channel.
func JSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
