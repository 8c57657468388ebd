package auditview_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview"
	auditviewsql "verbatim.internal/sql/auditview"
)

// long is how many events an execution has whose trace does not fit between a server and a
// client that does not read.
const long = 60_000

// setupLong returns a service whose requests have little time, and a long execution.
func setupLong(t *testing.T, requestTimeout, maxConns string) (*bundle, rows) {
	t.Helper()
	b := &bundle{db: pgtest.New(t, database.Auditview, auditviewsql.FS, 0), local: transport.NewLocal(nil), logs: &logs{}}
	_, err := auditview.ApplyAdmins(t.Context(), config.Secret(b.db.ServiceDSN), []byte(admins))
	require.NoError(t, err)
	environ := environment(b.db)
	environ["VERBATIM_AUDITVIEW_REQUEST_TIMEOUT"], environ["VERBATIM_AUDITVIEW_MAX_CONNS"] = requestTimeout, maxConns
	b.start(t, environ, auditview.WithSubscriber(b.local))
	rows := b.rows(t)
	rows.execution(execution{n: 1, swarm: "long"})
	rows.task(1, "t-1", `{"agent_role":"planner"}`)
	rows.many(1, long)
	return b, rows
}

// open begins to read a stream.
func (b *bundle) open(t *testing.T) io.ReadCloser {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.service.URL()+runPath("long", "audit"), http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+metadata)
	req.Header.Set("Accept", oneALine)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return resp.Body
}

// A stream is as of one moment, and takes as long as its reader needs who goes on reading.
func TestStreamIsOfOneMomentAndNotBoundedAsAWhole(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	b, rows := setupLong(t, timeout.String(), "2")
	begin := time.Now()
	reader := bufio.NewReader(b.open(t))
	first, err := reader.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, first, `"audit_id":"aud_000001"`)
	rows.task(1, "t-1", `{"agent_role":"reviewer"}`) // while most of it has not been read
	rows.happen(1, executionEvent{Type: "task.completed"})

	// Half of the connections may stream.
	refused := b.ask(t, runPath("long", "audit"), "Accept", oneALine)
	refused.fails(t, http.StatusServiceUnavailable, "conversation_audit_unavailable")
	require.Equal(t, "1", refused.header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, b.ask(t, runPath("long", "audit")).status, "pages are not refused")

	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	lines := 1
	for ; ; lines++ {
		line, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			break
		}
		require.NoError(t, err)
		require.Contains(t, line, `"agent_role":"planner"`)
		if lines%60 == 0 {
			<-pace.C
		}
	}
	require.Equal(t, long, lines)
	require.Greater(t, time.Since(begin), timeout)
	require.Eventually(t, func() bool { // the place is free again
		r := b.ask(t, runPath("long", "audit?cursor=59999"), "Accept", oneALine)
		return r.status == http.StatusOK && strings.Contains(r.text, `"aud_060000"`) && strings.Contains(r.text, `"reviewer"`) &&
			strings.HasSuffix(r.text, "\n") && strings.Count(r.text, "\n") == 2
	}, patience, time.Millisecond)
}

// A reader who stops keeps neither the connection nor the snapshot, and does not take a
// part for the whole.
func TestStreamWithoutProgressIsCutOff(t *testing.T) {
	t.Parallel()
	b, _ := setupLong(t, "5s", "8")
	body := b.open(t)
	require.Eventually(t, func() bool { return strings.Contains(b.logs.String(), "a stream was cut off") }, 3*patience, 10*time.Millisecond)
	_, err := io.Copy(io.Discard, body)
	require.ErrorContains(t, err, "EOF")
	require.NotContains(t, b.logs.String(), "planner")
	require.Equal(t, http.StatusOK, b.get(t, "", "/healthz").status)
}

// A reader who leaves frees its place.
func TestStreamEndsWithItsReader(t *testing.T) {
	t.Parallel()
	b, _ := setupLong(t, "1m", "2")
	body := b.open(t)
	_, err := bufio.NewReader(body).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, body.Close())
	require.Eventually(t, func() bool {
		return b.ask(t, runPath("long", "audit?cursor=59999"), "Accept", oneALine).status == http.StatusOK
	}, patience, time.Millisecond)
}
