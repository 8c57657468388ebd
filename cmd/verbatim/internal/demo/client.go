package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/contracts/httpapi"
)

const (
	archivesPath = "/agent-api/v1/conversation-audits"
	adminPath    = "/admin/api/conversation-audits"

	maxAnswer = 16 << 20
)

// client calls one service as one identity.
type client struct {
	http  *http.Client
	base  string
	token string
}

// answeredError is an answer that is no success. It holds what the service says,
// which is never what was sent.
type answeredError struct {
	Method, Path, Code, Message string
	Status                      int
}

func (e *answeredError) Error() string {
	return fmt.Sprintf("%s %s was answered %d %s: %s", e.Method, e.Path, e.Status, oneLine(e.Code), oneLine(e.Message))
}

func (c client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var payload io.Reader
	if body != nil {
		content, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(content)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, payload)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.token)
	return r, nil
}

// call sends body, where there is one, and decodes a successful answer.
func (c client) call(ctx context.Context, method, path string, body, answer any) error {
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("%s %s got no answer: %w", method, r.URL.Path, err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the answer to %s %s broke off: %w", method, r.URL.Path, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		failure := &answeredError{Method: method, Path: r.URL.Path, Status: response.StatusCode}
		var told httpapi.Error
		if json.Unmarshal(content, &told) == nil {
			failure.Code, failure.Message = told.Code, told.Message
		}
		return failure
	}
	if err := json.Unmarshal(content, answer); err != nil {
		return fmt.Errorf("the answer to %s %s is not what the contract says", method, r.URL.Path)
	}
	return nil
}

// loseAnswer sends a request and breaks the connection when its answer begins
// to arrive, unread: the service has committed, and the caller doesn't know.
func (c client) loseAnswer(ctx context.Context, path string, body any) error {
	r, err := c.request(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	at, err := url.Parse(c.base)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{Timeout: requestTimeout}).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return fmt.Errorf("no connection for the request whose answer is to be lost: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := r.Write(conn); err != nil {
		return errors.Join(fmt.Errorf("the request whose answer is to be lost was not sent: %w", err), conn.Close())
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return errors.Join(fmt.Errorf("the request whose answer is to be lost got none: %w", err), conn.Close())
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // reset, as a vanished client does
	}
	return conn.Close()
}
