package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// requestTimeout is when an answer counts as missing.
const requestTimeout = 30 * time.Second

// keptAlive is one HTTP/1.1 connection that is kept. net/http's own client costs two
// goroutines and four hand-offs a request, which on a small machine would be measured as
// the service's. It is for one goroutine.
type keptAlive struct {
	conn   net.Conn
	stop   func() bool // forgets the end of the context
	reader *bufio.Reader
	host   string
	bearer string
	out    []byte
	in     bytes.Buffer
}

// dial connects to a service's URL. The end of ctx closes the connection.
func dial(ctx context.Context, url, bearer string) (*keptAlive, error) {
	host := strings.TrimPrefix(url, "http://")
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &keptAlive{conn: conn, stop: stop, reader: bufio.NewReader(conn), host: host, bearer: bearer}, nil
}

func (k *keptAlive) close() {
	k.stop()
	_ = k.conn.Close()
}

// do sends one request, with a JSON body unless it is nil, and decodes the answer, which must be a success.
func (k *keptAlive) do(method, path string, body []byte, answer any) error {
	if err := k.exchange(method, path, body); err != nil {
		return err
	}
	return json.Unmarshal(k.in.Bytes(), answer)
}

// exchange is do without the decoding: the answer is in k.in until the next request.
func (k *keptAlive) exchange(method, path string, body []byte) error {
	k.out = append(k.out[:0], method+" "+path+" HTTP/1.1\r\nHost: "+k.host+"\r\nAuthorization: Bearer "+k.bearer+"\r\n"...)
	if body != nil {
		k.out = append(k.out, "Content-Type: application/json\r\nContent-Length: "...)
		k.out = append(strconv.AppendInt(k.out, int64(len(body)), 10), "\r\n"...)
	}
	k.out = append(append(k.out, "\r\n"...), body...)
	if err := k.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	if _, err := k.conn.Write(k.out); err != nil {
		return err
	}
	resp, err := http.ReadResponse(k.reader, nil)
	if err != nil {
		return err
	}
	k.in.Reset()
	_, err = k.in.ReadFrom(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return statusError{code: resp.StatusCode, body: k.in.String()}
	}
	if resp.Close {
		return fmt.Errorf("%s closes the connection: %w", method, io.ErrUnexpectedEOF)
	}
	return nil
}

// statusError is an answer that is no success.
type statusError struct {
	code int
	body string
}

// Error tells the service's own error, which holds no text of a conversation.
func (e statusError) Error() string { return fmt.Sprintf("status %d: %s", e.code, e.body) }
