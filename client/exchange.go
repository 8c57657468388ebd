package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	maxAnswerBytes = 4 << 20
	maxRetryAfter  = time.Hour
)

// request is one request; it may be sent more than once, unchanged.
type request struct {
	method, path string
	body         []byte // nil: none
	ifNoneMatch  string // a revision, empty: none
}

func post(path string, body []byte) request {
	return request{method: http.MethodPost, path: path, body: body}
}

func get(path string) request { return request{method: http.MethodGet, path: path} }

// answer is what came back, whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send makes one attempt. An error is an *unavailableError: no whole answer came.
func (h *Hub) send(ctx context.Context, r request, bearer Token) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	out, err := http.NewRequestWithContext(ctx, r.method, h.base+r.path, body)
	if err != nil {
		return answer{}, invalid("the request cannot be formed")
	}
	out.Header.Set("User-Agent", h.userAgent)
	out.Header.Set("Accept", "application/json")
	if r.body != nil {
		out.Header.Set("Content-Type", "application/json")
	}
	if bearer.value != "" {
		out.Header.Set("Authorization", "Bearer "+bearer.value)
	}
	if r.ifNoneMatch != "" {
		out.Header.Set("If-None-Match", strconv.Quote(r.ifNoneMatch))
	}
	in, err := h.client.Do(out)
	if err != nil {
		return answer{}, &unavailableError{reason: "no answer", cause: err, unsent: isUnsent(err)}
	}
	defer func() { _ = in.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(in.Body, maxAnswerBytes+1))
	if err != nil {
		return answer{}, &unavailableError{reason: "the answer broke off", cause: err}
	}
	if len(content) > maxAnswerBytes {
		return answer{}, &unavailableError{reason: "the answer is too large"}
	}
	return answer{status: in.StatusCode, header: in.Header, body: content}, nil
}

// isUnsent reports whether no connection was made, so that nothing can have been sent.
func isUnsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// decode reads a successful answer of the schema into v; "" asks for none. Any other
// answer is the error that it stands for.
func (a answer) decode(schema string, v any) error {
	if a.status/100 != 2 {
		return a.failure()
	}
	var named struct {
		Schema string `json:"schema"`
	}
	if json.Unmarshal(a.body, v) != nil || json.Unmarshal(a.body, &named) != nil || schema != "" && named.Schema != schema {
		return a.unintelligible()
	}
	return nil
}

// notFoundCodes are the codes of a 404 that speak of the thing asked for, not of a hub
// that lacks the endpoint.
var notFoundCodes = map[string]bool{
	"conversation_audit_not_found": true,
	"run_not_found":                true,
	"authorization_not_found":      true,
	"session_not_found":            true,
}

// codeCrossBinding is a 503 that does not pass by waiting: a migration is missing.
const codeCrossBinding = "conversation_audit_cross_binding_unavailable"

// failure is the error that an answer without success stands for:
//
//   - RefusedError for a 4xx with a code of the hub's,
//   - ErrUnsupported for a 404 without one that speaks of the thing asked for,
//   - ErrUnavailable for everything that may pass, and for what no hub says (a proxy, a
//     portal): nothing is given up because somebody in between answered.
func (a answer) failure() error {
	code, message := a.describe()
	switch {
	case a.status == http.StatusNotFound && !notFoundCodes[code], code == codeCrossBinding:
		return ErrUnsupported
	case a.status == http.StatusTooManyRequests, a.status == http.StatusRequestTimeout, a.status == http.StatusTooEarly, a.status >= 500:
		reason := "status " + strconv.Itoa(a.status)
		if code != "" {
			reason += ": " + code
		}
		return &unavailableError{reason: reason, status: a.status, retryAfter: a.retryAfter()}
	case a.status/100 == 4 && code != "":
		return &RefusedError{Status: a.status, Code: code, Message: message}
	}
	return a.unintelligible()
}

func (a answer) unintelligible() error {
	return &unavailableError{reason: "an answer that is no hub's, status " + strconv.Itoa(a.status), status: a.status, retryAfter: a.retryAfter()}
}

// describe returns the code and the message of an error's body, or "".
func (a answer) describe() (code, message string) {
	var body struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	if json.Unmarshal(a.body, &body) != nil || !matches(body.Error, 1, 64, isLowerAlphanumeric, "_") {
		return "", ""
	}
	if !isText(body.Message, 512) {
		body.Message = "no message"
	}
	return body.Error, body.Message
}

// retryAfter is what the hub asks to wait: seconds or a date; 0 when it does not say.
func (a answer) retryAfter() time.Duration {
	value := a.header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(systemTime())
	}
	return min(max(wait, 0), maxRetryAfter)
}

// encode gives v as JSON without HTML escapes: text goes out as it came in.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, invalid("a value cannot be written as JSON")
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
