package integration_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// An append in flight gets its answer, and what it stored is served after the
// next start.
func TestADrainAnswersTheAppendInFlight(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{HTTP: true})
	id := d.NewArchive(t, kit.SessionID(1))
	release := kit.Hold(t, d.IngestDB.AdminDSN, `lock table bz_agent_conversation_events in share mode`)
	inFlight := background(func() (kit.Response, error) {
		return d.Append(t.Context(), kit.SessionID(1), id, kit.Turn("turn-1", 1, 10)...)
	})
	kit.AwaitLockWaits(t, d.IngestDB.AdminDSN, 1)
	address := strings.TrimPrefix(d.Ingest.URL, "http://")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		d.StopIngest()
	}()
	kit.Eventually(t, 10*time.Second, func() error {
		if !listens(t, address) {
			return nil // the drain refuses new connections
		}
		return errors.New("still listening")
	})
	release()
	got := <-inFlight
	require.NoError(t, got.err)
	assert.Equal(t, http.StatusOK, got.answer.Status, "body: %s", got.answer.Body)
	<-stopped
	d.StartIngest()
	d.WaitFor(t, id, 10)
}

func listens(t *testing.T, address string) bool {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A client that sends its header or its body slowly, or sends too much, hurts
// nobody else: others are served meanwhile, and it is cut off or refused.
func TestSlowAndHugeRequestsHurtNobody(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	id := d.NewArchive(t, kit.SessionID(1))
	address := strings.TrimPrefix(d.Ingest.URL, "http://")
	const slow = 100
	closed := make(chan struct{}, slow)
	for i := range slow {
		conn := dial(t, address)
		head := "POST /agent-api/v1/conversation-audits HTTP/1.1\r\nHost: x\r\n"
		if i%2 == 0 {
			head += "Authorization: Bearer " + d.Bearer(kit.SessionID(1)) + "\r\nContent-Length: 1000\r\n\r\n{"
		}
		_, err := io.WriteString(conn, head)
		require.NoError(t, err)
		if i%2 == 1 {
			go func() { // never sends the rest of its header
				_, _ = io.Copy(io.Discard, conn) // ends when the server cuts it
				closed <- struct{}{}
			}()
		}
	}
	for n := range 20 {
		d.MustAppend(t, kit.SessionID(1), id, kit.Turn(fmt.Sprintf("turn-%d", n), n*2+1, 2)...)
	}
	for range slow / 2 {
		select {
		case <-closed: // the header's time-out, far below the test's limit
		case <-time.After(30 * time.Second):
			t.Fatal("a client that never ends its header keeps its connection")
		}
	}
	d.WaitFor(t, id, 40)
}

func TestHugeHeadersAndBodiesAreRefused(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	send := func(request string) int {
		conn := dial(t, strings.TrimPrefix(d.Ingest.URL, "http://"))
		go func() { _, _ = io.WriteString(conn, request) }() // may be cut off: that is the point
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		return answer.StatusCode
	}
	const line = "POST /agent-api/v1/conversation-audits HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
	bearer := d.Bearer(kit.SessionID(1))
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, send(line+bearer+"\r\nX-Big: "+strings.Repeat("a", 1<<20)+"\r\n\r\n"))
	// Announced as 1 GiB: refused before a byte of it is read.
	assert.Equal(t, http.StatusRequestEntityTooLarge, send(line+bearer+"\r\nContent-Length: 1073741824\r\n\r\n"))
	// Not announced: refused once the limit is passed.
	chunk := "10000\r\n" + strings.Repeat("a", 0x10000) + "\r\n"
	assert.Equal(t, http.StatusRequestEntityTooLarge, send(line+bearer+"\r\nTransfer-Encoding: chunked\r\n\r\n"+strings.Repeat(chunk, 40)))
	assert.Equal(t, http.StatusUnsupportedMediaType, send(line+bearer+"\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"))
	// Who is not known is told so first, whatever it sends.
	assert.Equal(t, http.StatusUnauthorized, send(line+"nobody\r\nContent-Length: 1073741824\r\n\r\n"))
}
