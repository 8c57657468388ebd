package auditview_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview"
	auditviewsql "verbatim.internal/sql/auditview"
)

const (
	viewer   = "bva_VVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVV"
	metadata = "bva_MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM"
	nothing  = "bva_NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN"
	agent    = "bha_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	relay    = "the-relay-token"

	admins = `
admins:
  - {name: viewer, token: ` + viewer + `, permissions: ["runs:read"]}
  - {name: metadata, token: ` + metadata + `, permissions: ["runs:metadata"]}
  - {name: nothing, token: ` + nothing + `, permissions: ["runs:write"]}
`
	patience = 20 * time.Second
)

// bundle is a running service with a publisher in process.
type bundle struct {
	db      pgtest.Database
	local   *transport.Local
	service *auditview.Service
	logs    *logs
}

type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func environment(db pgtest.Database) map[string]string {
	return map[string]string{
		"VERBATIM_AUDITVIEW_DSN":          db.ServiceDSN,
		"VERBATIM_AUDITVIEW_ADDR":         "127.0.0.1:0",
		"VERBATIM_AUDITVIEW_METRICS_ADDR": "127.0.0.1:0",
	}
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{db: pgtest.New(t, database.Auditview, auditviewsql.FS, 0), local: transport.NewLocal(nil), logs: &logs{}}
	t.Cleanup(func() { _ = b.local.Close() })
	_, err := auditview.ApplyAdmins(t.Context(), config.Secret(b.db.ServiceDSN), []byte(admins))
	require.NoError(t, err)
	b.start(t, environment(b.db), auditview.WithSubscriber(b.local))
	return b
}

// start runs a service until the test's end.
func (b *bundle) start(t *testing.T, environ map[string]string, options ...auditview.Option) {
	t.Helper()
	cfg, err := auditview.LoadConfig(environ)
	require.NoError(t, err)
	b.service, err = auditview.New(cfg, slog.New(slog.NewJSONHandler(b.logs, nil)), options...)
	require.NoError(t, err)
	require.NoError(t, b.service.Start(t.Context()))
	service := b.service
	t.Cleanup(func() { stop(t, service) })
}

func stop(t *testing.T, service *auditview.Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, service.Stop(ctx))
}

// batches returns a message for each partition that the events fall into.
func batches(t *testing.T, events ...cloudevent.Event) map[string]*message.Message {
	t.Helper()
	byTopic := make(map[string][]cloudevent.Event)
	for _, e := range events {
		topic := transport.Topic(transport.Partition(e.StreamID))
		byTopic[topic] = append(byTopic[topic], e)
	}
	messages := make(map[string]*message.Message)
	for topic, events := range byTopic {
		body, err := cloudevent.EncodeBatch(events)
		require.NoError(t, err)
		messages[topic] = message.NewMessage(uuid.NewString(), body)
		messages[topic].Metadata.Set(transport.MetadataContentType, transport.ContentType)
	}
	return messages
}

// publish delivers events, which must be acknowledged.
func (b *bundle) publish(t *testing.T, events ...cloudevent.Event) {
	t.Helper()
	for topic, msg := range batches(t, events...) {
		require.NoError(t, b.local.Publish(topic, msg))
	}
}

type response struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// get asks as the bearer; "" means without one.
func (b *bundle) get(t *testing.T, bearer, path string) response {
	t.Helper()
	return b.do(t, http.MethodGet, bearer, path)
}

func (b *bundle) do(t *testing.T, method, bearer, path string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.service.URL()+path, http.NoBody)
	require.NoError(t, err)
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	return send(t, req)
}

func send(t *testing.T, req *http.Request) response {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	r := response{status: resp.StatusCode, header: resp.Header, text: string(raw)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		require.NoError(t, json.Unmarshal(raw, &r.body))
	}
	return r
}

// fails checks an error answer of the admin API.
func (r response) fails(t *testing.T, status int, code string) {
	t.Helper()
	require.Equal(t, status, r.status, r.text)
	require.Equal(t, code, r.body["error"])
	require.NotEmpty(t, r.body["message"])
	require.Len(t, r.body, 2)
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))
	require.NotEmpty(t, r.header.Get("X-Request-Id"))
}

func (r response) list(name string) []map[string]any {
	var list []map[string]any
	items, _ := r.body[name].([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		list = append(list, m)
	}
	return list
}

func archivePath(id, query string) string {
	return fmt.Sprintf("/admin/api/conversation-audits/%s%s", id, query)
}

func tracePath(thread int64, run string) string {
	return fmt.Sprintf("/admin/api/threads/%d/agent-runs/%s/trace", thread, run)
}
