package ingest_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/ingest"
	"verbatim.internal/sql"
)

const (
	runsA = "bha_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" // shop, tenant a
	runsB = "bha_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" // shop, tenant z, all routes
	runsC = "bha_ccccccccccccccccccccccccccccccccccccccccccc" // shop, returns only
	runsD = "bha_ddddddddddddddddddddddddddddddddddddddddddd" // crm

	runsSessionA = "123e4567-e89b-42d3-a456-42661417400a"
	runsSessionB = "123e4567-e89b-42d3-a456-42661417400b"
	runsSessionC = "123e4567-e89b-42d3-a456-42661417400c"
	runsSessionD = "123e4567-e89b-42d3-a456-42661417400d"

	runsInstructions = "Answer in short sentences.\n<b>Never</b> guess."

	runsJob1 = "523e4567-e89b-42d3-a456-426614174001"
	runsJob2 = "523e4567-e89b-42d3-a456-426614174002"
)

const runsRegistry = `
clients:
  - {app_id: shop, name: Shop, allowed_routes: [closed, "off", orders, returns, vip]}
  - {app_id: crm, name: CRM, allowed_routes: ["*"]}
routes:
  - {route_key: orders, name: Orders, agent_access: true, instructions: "Answer in short sentences.\n<b>Never</b> guess."}
  - {route_key: returns, name: Returns, agent_access: true}
  - {route_key: closed, name: Closed, agent_access: false}
  - {route_key: "off", name: "Off", agent_access: true, enabled: false}
  - {route_key: vip, name: VIP, agent_access: true, audience: {enabled: true, tenants: [z]}}
  - {route_key: other, name: Others, agent_access: true}
sessions:
  - {session_id: ` + runsSessionA + `, client_app_id: shop, device_label: a, principal: {id: op, tenant: a}, on_behalf_of: "a:op",
     allowed_routes: [closed, "off", orders, other, vip], access_token: ` + runsA + `, access_expires_at: 2099-01-01T00:00:00Z, refresh_expires_at: "2099-01-01T00:00:00Z"}
  - {session_id: ` + runsSessionB + `, client_app_id: shop, device_label: b, principal: {id: op, tenant: z}, on_behalf_of: "z:op",
     allowed_routes: ["*"], access_token: ` + runsB + `, access_expires_at: 2099-01-01T00:00:00Z, refresh_expires_at: "2099-01-01T00:00:00Z"}
  - {session_id: ` + runsSessionC + `, client_app_id: shop, device_label: c, principal: {id: op}, on_behalf_of: "op",
     allowed_routes: [returns], access_token: ` + runsC + `, access_expires_at: 2099-01-01T00:00:00Z, refresh_expires_at: "2099-01-01T00:00:00Z"}
  - {session_id: ` + runsSessionD + `, client_app_id: crm, device_label: d, principal: {id: op}, on_behalf_of: "op",
     allowed_routes: ["*"], access_token: ` + runsD + `, access_expires_at: 2099-01-01T00:00:00Z, refresh_expires_at: "2099-01-01T00:00:00Z"}
`

// deaf is a transport whose receiver takes nothing: what is sent stays in the outbox.
type deaf struct{}

func (deaf) Publish(string, ...*message.Message) error { return errors.New("nobody listens") }

func (deaf) Close() error { return nil }

// runsBundle is a running service with sessions that may open runs.
type runsBundle struct {
	service *ingest.Service
	db      pgtest.Database
	owner   *pgx.Conn // not for concurrent use
	admin   *pgx.Conn // sees who waits; not for concurrent use
}

// setupRuns starts a service on a database with all migrations and runsRegistry.
func setupRuns(t *testing.T) *runsBundle {
	t.Helper()
	return setupRunsWith(t, 0, runsRegistry, deaf{})
}

// setupRunsWith starts a service on a database with migrations up to version to, 0 for all.
func setupRunsWith(t *testing.T, to int64, registry string, publisher message.Publisher) *runsBundle {
	t.Helper()
	b := &runsBundle{db: pgtest.New(t, database.Ingest, sql.FS, to)}
	b.apply(t, registry)
	cfg, err := ingest.LoadConfig(map[string]string{
		"VERBATIM_INGEST_DSN": b.db.ServiceDSN, "VERBATIM_INGEST_ADDR": "127.0.0.1:0", "VERBATIM_INGEST_METRICS_ADDR": "",
	})
	require.NoError(t, err)
	b.service, err = ingest.New(cfg, slog.New(slog.DiscardHandler), ingest.WithPublisher(publisher))
	require.NoError(t, err)
	require.NoError(t, b.service.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, b.service.Stop(context.Background())) })
	for dsn, conn := range map[string]**pgx.Conn{b.db.OwnerDSN: &b.owner, b.db.AdminDSN: &b.admin} {
		opened, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		t.Cleanup(func() { _ = opened.Close(context.Background()) })
		*conn = opened
	}
	return b
}

func (b *runsBundle) apply(t *testing.T, registry string) {
	t.Helper()
	_, err := ingest.Apply(t.Context(), config.Secret(b.db.ServiceDSN), []byte(registry))
	require.NoError(t, err)
}

// runsReply is an answer of the service.
type runsReply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (r runsReply) text(field string) string {
	s, _ := r.body[field].(string)
	return s
}

func (r runsReply) thread() int {
	n, _ := r.body["thread_id"].(float64)
	return int(n)
}

// send sends a request below /agent-api/v1. header holds names and values in turn. It is
// safe for concurrent use.
func (b *runsBundle) send(ctx context.Context, method, path, token, body string, header ...string) (runsReply, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.service.URL()+"/agent-api/v1"+path, strings.NewReader(body))
	if err != nil {
		return runsReply{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return runsReply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return runsReply{}, err
	}
	r := runsReply{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	if len(raw) == 0 {
		return r, nil
	}
	return r, json.Unmarshal(raw, &r.body)
}

func (b *runsBundle) call(t *testing.T, method, path, token, body string, header ...string) runsReply {
	t.Helper()
	r, err := b.send(t.Context(), method, path, token, body, header...)
	require.NoError(t, err)
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))
	return r
}

func (b *runsBundle) get(t *testing.T, path, token string, header ...string) runsReply {
	t.Helper()
	return b.call(t, http.MethodGet, path, token, "", header...)
}

func (b *runsBundle) post(t *testing.T, path, token, body string) runsReply {
	t.Helper()
	return b.call(t, http.MethodPost, path, token, body)
}

// wantRuns checks an answer that is a success.
func wantRuns(t *testing.T, r runsReply) runsReply {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, r.raw)
	return r
}

// refusedRuns checks an answer that is none.
func refusedRuns(t *testing.T, r runsReply, status int, code string) {
	t.Helper()
	require.Equal(t, status, r.status, r.raw)
	require.Equal(t, code, r.text("error"))
	require.NotEmpty(t, r.text("message"))
	if status == http.StatusUnauthorized {
		require.Equal(t, "Bearer", r.header.Get("WWW-Authenticate"))
	}
}

// parallel sends n requests at once, which next describes, and returns their answers. Like
// every caller it repeats what an overloaded database could not do.
func (b *runsBundle) parallel(t *testing.T, n int, next func(i int) (path, token, body string)) []runsReply {
	t.Helper()
	replies, errs := make([]runsReply, n), make(chan error, n)
	for i := range n {
		go func() {
			path, token, body := next(i)
			var err error
			for again := true; again && err == nil; again = replies[i].header.Get("Retry-After") != "" {
				replies[i], err = b.send(t.Context(), http.MethodPost, path, token, body)
			}
			errs <- err
		}()
	}
	for range n {
		require.NoError(t, <-errs)
	}
	return replies
}

// exec changes rows as their owner.
func (b *runsBundle) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := b.owner.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

// rows returns the one text column of a query, row by row.
func (b *runsBundle) rows(t *testing.T, query string, args ...any) []string {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), query, args...)
	require.NoError(t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return out
}

// outbox returns what is to be sent of a run: type, version, payload.
func (b *runsBundle) outbox(t *testing.T, run string) []string {
	t.Helper()
	return b.rows(t, `select type || ' ' || version || ' ' || payload::text from outbox where stream_kind = 'run' and stream_id = $1 order by id`, run)
}

// turnBody is a turn of a conversation.
func turnBody(conversation, turn string) string {
	return `{"client_conversation_id":"` + conversation + `","client_turn_id":"` + turn + `","user_message_id":"m-` + turn + `","user_input":"Which are late?"}`
}

// open opens the run of a turn and returns it.
func (b *runsBundle) open(t *testing.T, token, conversation, turn string) string {
	t.Helper()
	route := "orders"
	if token == runsC {
		route = "returns"
	}
	return wantRuns(t, b.post(t, "/workspaces/"+route+"/turns", token, turnBody(conversation, turn))).text("run_id")
}

// whileRevoking sends a request while the session is being revoked: the request has been
// authenticated, and waits for the lock when the revocation is committed.
func (b *runsBundle) whileRevoking(t *testing.T, session, path, token, body string) runsReply {
	t.Helper()
	tx, err := b.owner.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `update bz_agent_sessions set revoked_at = now() where session_id = $1`, session)
	require.NoError(t, err)
	replies, errs := make(chan runsReply, 1), make(chan error, 1)
	go func() {
		r, err := b.send(t.Context(), http.MethodPost, path, token, body)
		replies <- r
		errs <- err
	}()
	b.awaitLocks(t, 1)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-errs)
	return <-replies
}

// awaitLocks waits until n sessions wait for locks of the database.
func (b *runsBundle) awaitLocks(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		var waiting int
		err := b.admin.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`, b.db.Name).Scan(&waiting)
		return err == nil && waiting == n
	}, 20*time.Second, 5*time.Millisecond)
}
