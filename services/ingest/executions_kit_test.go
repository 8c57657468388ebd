package ingest_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/ingest"
	"verbatim.internal/sql"
)

const (
	execShop   = "bhk_sssssssssssssssssssssssssssssssssssssssssss"
	execCRM    = "bhk_ccccccccccccccccccccccccccccccccccccccccccc"
	execClosed = "bhk_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

	execRunShop = "223e4567-e89b-42d3-a456-4266141740a1"
	execRunCRM  = "223e4567-e89b-42d3-a456-4266141740a2"

	execVaultRef = "azkv://vault/orders-db"

	execPatience = 20 * time.Second
	execTick     = 5 * time.Millisecond
)

var execRegistry = strings.NewReplacer("{shop}", execShop, "{crm}", execCRM, "{closed}", execClosed, "{run}", execRunShop, "{other}", execRunCRM).Replace(`
clients:
  - {app_id: shop, name: Shop, allowed_routes: [orders], token: {shop}}
  - {app_id: crm, name: CRM, allowed_routes: [orders], token: {crm}}
  - {app_id: closed, name: Closed, allowed_routes: [orders], enabled: false, token: {closed}}
routes:
  - {route_key: orders, name: Orders, agent_access: true}
sessions:
  - {session_id: 123e4567-e89b-42d3-a456-4266141740b1, client_app_id: shop, device_label: one, principal: {id: op, tenant: a}, on_behalf_of: "a:op",
     allowed_routes: [orders], access_expires_at: "2099-01-01T00:00:00Z", refresh_expires_at: "2099-01-01T00:00:00Z", access_token: bha_eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee}
  - {session_id: 123e4567-e89b-42d3-a456-4266141740b2, client_app_id: crm, device_label: two, principal: {id: op, tenant: a}, on_behalf_of: "a:op",
     allowed_routes: [orders], access_expires_at: "2099-01-01T00:00:00Z", refresh_expires_at: "2099-01-01T00:00:00Z", access_token: bha_fffffffffffffffffffffffffffffffffffffffffff}
runs:
  - {run_id: {run}, session_id: 123e4567-e89b-42d3-a456-4266141740b1, client_app_id: shop, route_key: orders, thread_id: 201, client_conversation_id: c, client_turn_id: t}
  - {run_id: {other}, session_id: 123e4567-e89b-42d3-a456-4266141740b2, client_app_id: crm, route_key: orders, thread_id: 202, client_conversation_id: c, client_turn_id: t}
`)

// execHeld takes nothing, so that the outbox keeps what was written to it.
type execHeld struct{}

func (execHeld) Publish(string, ...*message.Message) error { return errors.New("held") }

func (execHeld) Close() error { return nil }

// execLog collects what a service logs, for concurrent use.
type execLog struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *execLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *execLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// execBundle is a service that takes executions, and its database as the owner sees it.
type execBundle struct {
	url   string
	token string
	owner *pgxpool.Pool
	log   *execLog
}

// execSetup starts a service on a database with migrations up to version to, 0 for all.
func execSetup(t *testing.T, to int64) *execBundle {
	t.Helper()
	db := pgtest.New(t, database.Ingest, sql.FS, to)
	_, err := ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(execRegistry))
	require.NoError(t, err)
	cfg, err := ingest.LoadConfig(map[string]string{
		"VERBATIM_INGEST_DSN": db.ServiceDSN, "VERBATIM_INGEST_ADDR": "127.0.0.1:0", "VERBATIM_INGEST_METRICS_ADDR": "",
	})
	require.NoError(t, err)
	b := &execBundle{token: execShop, log: &execLog{}}
	svc, err := ingest.New(cfg, slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})), ingest.WithPublisher(execHeld{}))
	require.NoError(t, err)
	require.NoError(t, svc.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, svc.Stop(context.Background())) })
	b.url = svc.URL()
	b.owner, err = pgxpool.New(t.Context(), db.OwnerDSN)
	require.NoError(t, err)
	t.Cleanup(b.owner.Close)
	return b
}

// as returns the bundle with another client's token.
func (b *execBundle) as(token string) *execBundle {
	other := *b
	other.token = token
	return &other
}

// execReply is an answer of the service.
type execReply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// send sends a request; headers are names and values in turn. It may be called from any goroutine.
func (b *execBundle) send(ctx context.Context, method, path, body string, headers ...string) (execReply, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.url+path, strings.NewReader(body))
	if err != nil {
		return execReply{}, err
	}
	if b.token != "" {
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return execReply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return execReply{}, err
	}
	r := execReply{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	return r, json.Unmarshal(raw, &r.body)
}

// call sends a request below /runtime-api/v1/runs.
func (b *execBundle) call(t *testing.T, method, path, body string, headers ...string) execReply {
	t.Helper()
	r, err := b.send(t.Context(), method, "/runtime-api/v1/runs"+path, body, headers...)
	require.NoError(t, err)
	return r
}

func (b *execBundle) put(t *testing.T, path, body string, headers ...string) execReply {
	t.Helper()
	return b.call(t, http.MethodPut, path, body, headers...)
}

func (b *execBundle) post(t *testing.T, path, body string, headers ...string) execReply {
	t.Helper()
	return b.call(t, http.MethodPost, path, body, headers...)
}

// open opens the run "swarm" with a correlation and returns its execution id.
func (b *execBundle) open(t *testing.T) string {
	t.Helper()
	b.put(t, "/swarm", `{"correlation_id":"corr-1"}`).is(t, http.StatusCreated)
	return b.text(t, `select execution_id::text from bz_executions where swarm_id = 'swarm'`)
}

// is requires a status, and of an error its code.
func (r execReply) is(t *testing.T, status int, code ...string) execReply {
	t.Helper()
	require.Equal(t, status, r.status, r.raw)
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))
	if len(code) > 0 {
		require.Equal(t, code[0], r.body["error"], r.raw)
		require.Len(t, r.body, 2)
	}
	return r
}

// has requires members of the answer, names and values in turn.
func (r execReply) has(t *testing.T, members ...any) {
	t.Helper()
	for i := 0; i < len(members); i += 2 {
		name, _ := members[i].(string)
		want := members[i+1]
		if n, ok := want.(int); ok {
			want = float64(n)
		}
		require.Contains(t, r.body, name)
		require.Equal(t, want, r.body[name], "%s of %s", name, r.raw)
	}
}

// text returns one text that the owner reads, "" for no row.
func (b *execBundle) text(t *testing.T, query string, args ...any) string {
	t.Helper()
	var s string
	if err := b.owner.QueryRow(t.Context(), query, args...).Scan(&s); !errors.Is(err, pgx.ErrNoRows) {
		require.NoError(t, err)
	}
	return s
}

// texts returns one column that the owner reads.
func (b *execBundle) texts(t *testing.T, query string, args ...any) []string {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), query, args...)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return all
}

func (b *execBundle) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := b.owner.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

// outbox returns the messages of an execution, "version type payload" each, as they will be sent.
func (b *execBundle) outbox(t *testing.T, id string) []string {
	t.Helper()
	return b.texts(t, `select version || ' ' || type || ' ' || payload::text from outbox where stream_kind = 'execution' and stream_id = $1 order by partition, id`, id)
}

// version returns the stream version of an execution.
func (b *execBundle) version(t *testing.T, id string) string {
	t.Helper()
	return b.text(t, `select stream_version::text from bz_executions where execution_id = $1`, id)
}
