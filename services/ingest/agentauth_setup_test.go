package ingest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest"
	"verbatim.internal/sql"
)

const (
	authShop     = "bhk_SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS"
	authOther    = "bhk_OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO"
	authOff      = "bhk_FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"
	authRedirect = "http://127.0.0.1:4711/callback?x=1"
	askState     = "state of the agent"
)

const authRegistry = `
clients:
  - {app_id: shop, name: Shop, agent_authorize_url: "https://shop.example/agents?a=1#top", allowed_routes: [orders, returns], token: ` + authShop + `}
  - {app_id: other, name: Other, agent_authorize_url: "https://other.example/", allowed_routes: ["*"], token: ` + authOther + `}
  - {app_id: bare, name: Bare, allowed_routes: ["*"]}
  - {app_id: closed, name: Closed, agent_authorize_url: "https://closed.example/", allowed_routes: ["*"], enabled: false, token: ` + authOff + `}
routes:
  - {route_key: orders, name: Orders, agent_access: true}
`

// authLog collects what a service logs, for concurrent use.
type authLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *authLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *authLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// authBundle is a running service whose clients may be asked for authorizations.
type authBundle struct {
	service  *ingest.Service
	receiver *receiver
	owner    *pgx.Conn
	db       pgtest.Database
	log      *authLog
}

// setupAuth starts a service on a database with migrations up to version to, 0 for all.
func setupAuth(t *testing.T, to int64, environ map[string]string) *authBundle {
	t.Helper()
	db := pgtest.New(t, database.Ingest, sql.FS, to)
	_, err := ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(authRegistry))
	require.NoError(t, err)
	env := map[string]string{
		"VERBATIM_INGEST_DSN": db.ServiceDSN, "VERBATIM_INGEST_ADDR": "127.0.0.1:0", "VERBATIM_INGEST_METRICS_ADDR": "",
		"VERBATIM_INGEST_REQUEST_TIMEOUT": "2m", "VERBATIM_INGEST_DRAIN_TIMEOUT": "2m", // many requests wait for each other
	}
	maps.Copy(env, environ)
	cfg, err := ingest.LoadConfig(env)
	require.NoError(t, err)
	b := &authBundle{db: db, log: &authLog{}}
	log := slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	local := transport.NewLocal(nil)
	b.receiver = receive(context.Background(), t, local)
	b.service, err = ingest.New(cfg, log, ingest.WithPublisher(local))
	require.NoError(t, err)
	require.NoError(t, b.service.Start(t.Context()))
	t.Cleanup(func() {
		require.NoError(t, b.service.Stop(context.Background()))
		if t.Failed() {
			t.Log(b.log)
		}
	})
	b.owner, err = pgx.Connect(t.Context(), db.OwnerDSN)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.owner.Close(context.Background()) })
	return b
}

// authReply is an answer of the service.
type authReply struct {
	status int
	header http.Header
	body   map[string]any
}

func (r authReply) code() string { return r.text("error") }

func (r authReply) text(field string) string {
	s, _ := r.body[field].(string)
	return s
}

// call sends a request below /agent-auth/v1 and returns its answer, the zero reply when
// there was none. header holds names and values in turn. It is safe for concurrent use.
func (b *authBundle) call(t *testing.T, method, path, token, body string, header ...string) authReply {
	t.Helper()
	r, err := b.send(t.Context(), method, path, token, body, header...)
	assert.NoError(t, err)
	if err == nil {
		assert.Equal(t, "no-store", r.header.Get("Cache-Control"))
	}
	return r
}

func (b *authBundle) send(ctx context.Context, method, path, token, body string, header ...string) (authReply, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.service.URL()+"/agent-auth/v1"+path, strings.NewReader(body))
	if err != nil {
		return authReply{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return authReply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return authReply{}, err
	}
	r := authReply{status: resp.StatusCode, header: resp.Header}
	return r, json.Unmarshal(raw, &r.body)
}

// parallel makes n calls at once and returns their answers. A call that timed out on a busy
// machine is repeated, as its answer says.
func (b *authBundle) parallel(t *testing.T, n int, call func() authReply) []authReply {
	t.Helper()
	answers := make([]authReply, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			answers[i] = call()
			for answers[i].status == http.StatusServiceUnavailable && answers[i].header.Get("Retry-After") != "" {
				answers[i] = call()
			}
		})
	}
	group.Wait()
	return answers
}

func (b *authBundle) post(t *testing.T, path, token, body string) authReply {
	t.Helper()
	return b.call(t, http.MethodPost, path, token, body)
}

// wantAuthRefused checks an answer that is not a success.
func wantAuthRefused(t *testing.T, r authReply, status int, code string) {
	t.Helper()
	require.Equal(t, status, r.status, "%v", r.body)
	require.Equal(t, code, r.code())
	require.NotEmpty(t, r.text("message"))
}

// exec changes rows as their owner.
func (b *authBundle) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := b.owner.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

func (b *authBundle) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, b.owner.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}

// authBody is a JSON object whose members tests change one at a time.
type authBody map[string]any

func (o authBody) with(name string, value any) authBody {
	out := maps.Clone(o)
	out[name] = value
	return out
}

func (o authBody) without(name string) authBody {
	out := maps.Clone(o)
	delete(out, name)
	return out
}

func (o authBody) json(t *testing.T) string {
	t.Helper()
	b, err := json.Marshal(o)
	require.NoError(t, err)
	return string(b)
}

// asker is one that asks, with its verifier.
type asker struct {
	client   string
	token    string // the client's
	verifier string
}

func newAsker() asker {
	return asker{client: "shop", token: authShop, verifier: rand.Text() + rand.Text()}
}

// asking is the body with which the agent asks.
func (a asker) asking() authBody {
	sum := sha256.Sum256([]byte(a.verifier))
	return authBody{
		"client_app_id": a.client, "redirect_uri": authRedirect, "state": askState, "requested_routes": []string{"orders", "returns"},
		"device_label": "Laptop", "code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
	}
}

// ask opens an authorization and returns its id. It does not count for the bound on asking.
func (b *authBundle) ask(t *testing.T, a asker) string {
	t.Helper()
	r := b.post(t, "/authorizations", "", a.asking().json(t))
	require.Equal(t, http.StatusCreated, r.status, "%v", r.body)
	b.exec(t, `update bz_agent_authorizations set address = '192.0.2.1'`)
	return r.text("authorization_id")
}

var authApproval = authBody{
	"principal":    authBody{"id": "operator-7", "tenant": "store-a", "roles": []string{"buyer"}, "channel": "desk"},
	"on_behalf_of": "store-a:operator-7", "allowed_routes": []string{"orders"},
}

// approve approves an authorization and returns its code.
func (b *authBundle) approve(t *testing.T, a asker, id string) string {
	t.Helper()
	r := b.post(t, "/authorizations/"+id+"/approve", a.token, authApproval.json(t))
	require.Equal(t, http.StatusOK, r.status, "%v", r.body)
	u, err := url.Parse(r.text("redirect_uri"))
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:4711/callback", u.Scheme+"://"+u.Host+u.Path)
	q := u.Query()
	require.Regexp(t, `^bhc_[A-Za-z0-9_-]{43}$`, q.Get("code"))
	require.Equal(t, url.Values{"x": {"1"}, "code": {q.Get("code")}, "state": {askState}}, q)
	return q.Get("code")
}

func (a asker) exchanging(code string) authBody {
	return authBody{
		"grant_type": "authorization_code", "client_app_id": a.client, "code": code, "redirect_uri": authRedirect, "code_verifier": a.verifier,
	}
}

func (a asker) refreshing(refreshToken string) authBody {
	return authBody{"grant_type": "refresh_token", "client_app_id": a.client, "refresh_token": refreshToken}
}

// authorize gives the agent a session and returns the answer of its exchange.
func (b *authBundle) authorize(t *testing.T, a asker) authReply {
	t.Helper()
	r := b.post(t, "/token", "", a.exchanging(b.approve(t, a, b.ask(t, a))).json(t))
	require.Equal(t, http.StatusOK, r.status, "%v", r.body)
	return r
}

// refresh renews the tokens of an answer.
func (b *authBundle) refresh(t *testing.T, a asker, tokens authReply) authReply {
	t.Helper()
	return b.post(t, "/token", "", a.refreshing(tokens.text("refresh_token")).json(t))
}

// session asks for the session of an answer's access token.
func (b *authBundle) session(t *testing.T, tokens authReply) authReply {
	t.Helper()
	return b.call(t, http.MethodGet, "/session", tokens.text("access_token"), "")
}

// changes returns what was recorded of a session: action and actor.
func (b *authBundle) changes(t *testing.T, session string) (out []string) {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), `select action, actor_kind, actor_name from bz_registry_changes where kind = 'session' and name = $1 order by number`, session)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var action, kind, name string
		require.NoError(t, rows.Scan(&action, &kind, &name))
		out = append(out, fmt.Sprintf("%s by %s %s", action, kind, name))
	}
	require.NoError(t, rows.Err())
	return out
}

// awaitWaiting waits until a session of the service waits for a lock.
func (b *authBundle) awaitWaiting(t *testing.T) {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), b.db.AdminDSN)
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	require.Eventually(t, func() bool {
		var waiting int
		err := admin.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`, b.db.Name).Scan(&waiting)
		return err == nil && waiting > 0
	}, 20*time.Second, 5*time.Millisecond)
}
