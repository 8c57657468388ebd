package ingest_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest"
	"verbatim.internal/sql"
)

const (
	controller = "bvc_CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC" // of the controller "ops"
	onlooker   = "bvc_OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO" // of "dash", which may nothing
	shopToken  = "bhk_KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK"

	controllers = registry + `
controllers:
  - {name: ops, permissions: ["registry:write"], token: ` + controller + `}
  - {name: dash, permissions: ["registry:read"], token: ` + onlooker + `}
`
)

// logBuffer keeps what a service logs.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// controlled is a service with the control API, and the database that it stands on.
type controlled struct {
	bundle
	logs  *logBuffer
	admin *pgx.Conn
}

// control starts a service on a database with the migrations up to version to, 0 for all.
func control(t *testing.T, to int64) controlled {
	t.Helper()
	db := pgtest.New(t, database.Ingest, sql.FS, to)
	file := controllers
	if to != 0 && to < 59 {
		file = registry
	}
	_, err := ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(file))
	require.NoError(t, err)
	cfg, err := ingest.LoadConfig(map[string]string{
		"VERBATIM_INGEST_DSN": db.ServiceDSN, "VERBATIM_INGEST_ADDR": "127.0.0.1:0", "VERBATIM_INGEST_METRICS_ADDR": "",
		"VERBATIM_INGEST_CONTROL_ADDR": "127.0.0.1:0",
	})
	require.NoError(t, err)
	logs := &logBuffer{}
	local := transport.NewLocal(nil)
	r := receive(context.Background(), t, local)
	svc, err := ingest.New(cfg, slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})), ingest.WithPublisher(local))
	require.NoError(t, err)
	require.NoError(t, svc.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, svc.Stop(context.Background())) })
	return controlled{bundle{service: svc, receiver: r, db: db}, logs, connect(t, db.AdminDSN)}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// reply is an answer over HTTP.
type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// ask sends a request to a URL; token "" means none.
func ask(ctx context.Context, method, url, token, body string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	r := reply{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, &r.body)
	}
	return r, err
}

// as asks the control API with a token.
func (c controlled) as(t *testing.T, token, method, path, body string) reply {
	t.Helper()
	r, err := ask(t.Context(), method, c.service.ControlURL()+"/control-api/v1"+path, token, body)
	require.NoError(t, err)
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))
	return r
}

// do asks as the controller that may, and requires a status.
func (c controlled) do(t *testing.T, status int, method, path, body string) reply {
	t.Helper()
	r := c.as(t, controller, method, path, body)
	require.Equal(t, status, r.status, "%s %s: %s", method, path, r.raw)
	return r
}

// refused asks as the controller that may, and requires a refusal with a code.
func (c controlled) refused(t *testing.T, status int, code, method, path, body string) string {
	t.Helper()
	r := c.do(t, status, method, path, body)
	require.Equal(t, code, r.body["error"], r.raw)
	require.Empty(t, r.header.Get("Retry-After"), "to wait does not help")
	message, _ := r.body["message"].(string)
	return message
}

// at returns the value that keys lead to, in objects.
func at(t *testing.T, v any, keys ...string) any {
	t.Helper()
	for _, key := range keys {
		object, ok := v.(map[string]any)
		require.True(t, ok, "%v has no %s", v, key)
		v = object[key]
	}
	return v
}

// text is at for a text.
func (r reply) text(t *testing.T, keys ...string) string {
	t.Helper()
	s, ok := at(t, r.body, keys...).(string)
	require.True(t, ok, "%v in %s", keys, r.raw)
	return s
}

// recorded is a row of bz_registry_changes.
type recorded struct {
	ID, Kind, Name, Action, Changes, ActorKind, ActorName string
	Number                                                int64
	Fields                                                []string
}

// changes returns what was recorded after a number.
func changes(t *testing.T, conn *pgx.Conn, after int64) []recorded {
	t.Helper()
	rows, err := conn.Query(t.Context(), `select change_id as id, kind, name, action, changes::text, actor_kind, actor_name, number, fields
		from bz_registry_changes where number > $1 order by number`, after)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[recorded])
	require.NoError(t, err)
	return found
}

func last(t *testing.T, conn *pgx.Conn) int64 {
	t.Helper()
	return count(t, conn, `select coalesce(max(number), 0) from bz_registry_changes`)
}

func count(t *testing.T, conn *pgx.Conn, query string, args ...any) (n int64) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}
