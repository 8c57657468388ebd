package auditview_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/openapi"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/auditview/internal/historytest"
	auditviewsql "verbatim.internal/sql/auditview"
)

func TestOperationEndpoints(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, map[string]any{"status": "ok"}, b.get(t, "", "/healthz").body)
	r := b.get(t, "", "/readyz")
	require.Equal(t, http.StatusOK, r.status)
	require.Equal(t, "ready", r.body["status"])
	r = b.get(t, "", "/openapi.yaml")
	require.Equal(t, "application/yaml", r.header.Get("Content-Type"))
	require.Equal(t, string(openapi.Auditview), r.text)

	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Append("a private matter")
	broken := historytest.NewArchive(t, 2, false, historytest.SessionID(0)).Messages
	broken[0] = historytest.Broken(broken[0])
	b.publish(t, append(a.Messages, broken...)...)
	b.get(t, viewer, archivePath(a.ConversationID(), "?limit=5"))

	r = b.get(t, "", "/readyz")
	require.Equal(t, http.StatusOK, r.status, "what is parked does not gate")
	require.Equal(t, map[string]any{"parked_streams": 1.0, "parked_messages": 1.0}, r.body["relay"])

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.service.MetricsURL(), http.NoBody)
	require.NoError(t, err)
	metrics := send(t, req).text
	require.Contains(t, metrics, `verbatim_auditview_projection_messages_total{outcome="applied"} 2`)
	require.Contains(t, metrics, `verbatim_auditview_projection_messages_total{outcome="parked"} 1`)
	require.Contains(t, metrics, `route="/admin/api/conversation-audits/:conversation_id",status="200"`)
	for _, secret := range []string{"private", "secret", "VVVV", a.ConversationID()} {
		require.NotContains(t, metrics, secret)
		if secret != a.ConversationID() {
			require.NotContains(t, b.logs.String(), secret)
		}
	}
}

func TestRelayStatusAndReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dsn := config.Secret(b.db.ServiceDSN)
	run, _ := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 1)
	first := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Link(run)
	second := historytest.NewArchive(t, 2, false, historytest.SessionID(0)).Link(run).Append("after it")
	b.publish(t, first.Messages...)
	b.publish(t, second.Messages...)

	status, err := auditview.RelayStatus(t.Context(), config.Secret(b.db.ReaderDSN))
	require.NoError(t, err)
	require.Equal(t, int64(2), status.Streams)
	require.Len(t, status.Parked, 1)
	p := status.Parked[0]
	require.Equal(t, auditview.ParkedStream{
		Kind: "archive", ID: second.ConversationID(), FromVersion: 2, ToVersion: 3, Count: 2,
		Error: "SQLSTATE 23505, constraint run_links_pkey, table run_links", Since: p.Since,
	}, p)
	require.WithinDuration(t, time.Now(), p.Since, time.Minute)

	replayed, still, err := auditview.ReplayParked(t.Context(), dsn, "")
	require.NoError(t, err)
	require.Equal(t, []int{0, 2}, []int{replayed, still})
	admin, err := pgx.Connect(t.Context(), b.db.AdminDSN)
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	_, err = admin.Exec(t.Context(), `delete from run_links where conversation_id = $1`, first.ConversationID())
	require.NoError(t, err)
	replayed, still, err = auditview.ReplayParked(t.Context(), dsn, second.ConversationID())
	require.NoError(t, err)
	require.Equal(t, []int{2, 0}, []int{replayed, still})
	require.Len(t, b.get(t, viewer, archivePath(second.ConversationID(), "")).list("events"), 6)
}

func TestDatabaseNotMigrated(t *testing.T) {
	t.Parallel()
	b := &bundle{db: pgtest.New(t, database.Auditview, auditviewsql.FS, -1), local: transport.NewLocal(nil), logs: &logs{}}
	b.start(t, environment(b.db), auditview.WithSubscriber(b.local))
	r := b.get(t, "", "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "not_ready", r.body["status"])
	var pending []any
	files, err := fs.Glob(auditviewsql.FS, "*.sql")
	require.NoError(t, err)
	for _, file := range files {
		pending = append(pending, file)
	}
	require.Equal(t, map[string]any{"current": 0.0, "pending": pending}, r.body["migrations"])
	r = b.get(t, viewer, "/admin/api/conversation-audits")
	r.fails(t, http.StatusServiceUnavailable, "conversation_audit_unavailable")
	require.Equal(t, "1", r.header.Get("Retry-After"))

	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0))
	for topic, msg := range batches(t, a.Messages...) {
		require.Error(t, b.local.Publish(topic, msg))
	}
	// Applying the migrations while the service runs is enough.
	applied, err := auditview.MigrateUp(t.Context(), config.Secret(b.db.OwnerDSN), 0)
	require.NoError(t, err)
	require.Len(t, applied, len(files))
	_, err = auditview.ApplyAdmins(t.Context(), config.Secret(b.db.ServiceDSN), []byte(admins))
	require.NoError(t, err)
	b.publish(t, a.Messages...)
	require.Equal(t, http.StatusOK, b.get(t, "", "/readyz").status)
	require.Equal(t, http.StatusOK, b.get(t, viewer, archivePath(a.ConversationID(), "")).status)
	state, err := auditview.MigrateStatus(t.Context(), config.Secret(b.db.ServiceDSN))
	require.NoError(t, err)
	require.Empty(t, state.Pending)
}

// What the third migration brings is not there before it; everything else is, and the
// rest comes while the service runs.
func TestDatabaseWithoutRunsAndRegistry(t *testing.T) {
	t.Parallel()
	b := &bundle{db: pgtest.New(t, database.Auditview, auditviewsql.FS, 2), local: transport.NewLocal(nil), logs: &logs{}}
	_, err := auditview.ApplyAdmins(t.Context(), config.Secret(b.db.ServiceDSN), []byte(admins))
	require.NoError(t, err)
	b.start(t, environment(b.db), auditview.WithSubscriber(b.local))
	run, recorded := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 1)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Link(run)
	b.publish(t, append(a.Messages, recorded)...)
	paths := []string{threadsPath, threadPath(run.ThreadID, ""), tracePath(run.ThreadID, run.RunID), jobPath(jobID(1)), changesPath}
	for _, path := range paths {
		b.get(t, metadata, path).fails(t, http.StatusServiceUnavailable, "conversation_audit_unavailable")
		b.get(t, nothing, path).fails(t, http.StatusForbidden, "forbidden")
	}
	require.Equal(t, http.StatusOK, b.get(t, viewer, archivePath(a.ConversationID(), "")).status)

	_, err = auditview.MigrateUp(t.Context(), config.Secret(b.db.OwnerDSN), 0)
	require.NoError(t, err)
	b.rows(t).events(1, event{name: "tool.called", at: "2026-03-04T05:06:08Z", job: jobID(1)})
	for _, path := range paths {
		r := b.get(t, metadata, path)
		require.Equal(t, http.StatusOK, r.status, r.text)
	}
	require.Len(t, b.get(t, metadata, threadsPath).list("items"), 1)
}

func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close()) // nobody is there now

	b := &bundle{local: transport.NewLocal(nil), logs: &logs{}}
	environ := environment(pgtest.Database{ServiceDSN: "postgres://somebody:hidden-password@" + addr + "/nothing?sslmode=disable"})
	b.start(t, environ, auditview.WithSubscriber(b.local))
	require.Equal(t, http.StatusOK, b.get(t, "", "/healthz").status)
	require.Equal(t, http.StatusServiceUnavailable, b.get(t, "", "/readyz").status)
	r := b.get(t, viewer, "/admin/api/conversation-audits")
	r.fails(t, http.StatusServiceUnavailable, "conversation_audit_unavailable")
	require.NotContains(t, r.text+b.logs.String(), "hidden-password")
	b.get(t, agent, "/admin/api/conversation-audits").fails(t, http.StatusUnauthorized, "unauthorized")
}

func TestInternalListener(t *testing.T) {
	t.Parallel()
	b := setup(t)
	environ := environment(b.db)
	environ["VERBATIM_AUDITVIEW_INTERNAL_ADDR"] = "127.0.0.1:0"
	environ["VERBATIM_AUDITVIEW_INTERNAL_TOKEN"] = relay
	b.start(t, environ)
	publisher := func(token string) message.Publisher {
		p, err := transport.NewHTTPPublisher(transport.HTTPPublisherConfig{URL: b.service.InternalURL(), Token: config.Secret(token)}, nil)
		require.NoError(t, err)
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Append("one").Append("two")
	topic := transport.Topic(transport.Partition(a.ConversationID()))
	send := func(p message.Publisher, from, to int) error {
		return p.Publish(topic, batches(t, a.Messages[from:to]...)[topic])
	}
	require.NoError(t, send(publisher(relay), 0, 1))
	var gap *transport.GapError
	require.ErrorAs(t, send(publisher(relay), 2, 3), &gap)
	require.Equal(t, []transport.StreamGap{{Kind: "archive", ID: a.ConversationID(), Applied: 1}}, gap.Streams)
	require.NoError(t, send(publisher(relay), 1, 3))
	require.Len(t, b.get(t, viewer, archivePath(a.ConversationID(), "")).list("events"), 6)

	var status *transport.StatusError
	require.ErrorAs(t, send(publisher("another token"), 0, 1), &status)
	require.Equal(t, http.StatusUnauthorized, status.Status)
	require.NotContains(t, b.logs.String(), relay)
	for _, path := range []string{"/internal/relay/" + topic, "/metrics"} {
		require.Equal(t, http.StatusNotFound, b.get(t, "", path).status, "%s is not where administrators are", path)
	}
}

func TestMalformedBatchIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.local.Publish(transport.Topic(0), message.NewMessage(uuid.NewString(), []byte(`[{"transcript":"secret words"}]`)))
	require.ErrorIs(t, err, transport.ErrNacked)
	require.NotContains(t, err.Error()+b.logs.String(), "secret")
}

// A batch in flight is finished and acknowledged; one that comes later is refused.
func TestStopFinishesTheBatchInFlight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0))
	b.publish(t, a.Messages...)
	a.Append("in flight")
	topic := transport.Topic(transport.Partition(a.ConversationID()))

	// Somebody holds the stream's lock, so that the batch waits.
	admin, err := pgx.Connect(t.Context(), b.db.AdminDSN)
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	tx, err := admin.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `select from streams for update`)
	require.NoError(t, err)

	acknowledged := make(chan error, 1)
	inFlight := batches(t, a.Messages[1:]...)[topic]
	go func() { acknowledged <- b.local.Publish(topic, inFlight) }()
	waitForLock(t, b.db.AdminDSN)
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		stopped <- b.service.Stop(ctx)
	}()
	other := otherPartition(t, topic)
	require.Eventually(t, func() bool {
		err := b.local.Publish(other, message.NewMessage(uuid.NewString(), []byte(`[]`)))
		return errors.Is(err, transport.ErrNacked)
	}, patience, time.Millisecond, "a batch that comes while the service stops is refused")
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-acknowledged)
	require.NoError(t, <-stopped)
	var version int
	require.NoError(t, admin.QueryRow(t.Context(), `select version from streams`).Scan(&version))
	require.Equal(t, 2, version)
}

func otherPartition(t *testing.T, topic string) string {
	t.Helper()
	for _, other := range transport.Topics() {
		if other != topic {
			return other
		}
	}
	return ""
}

// waitForLock waits until a statement of the projection waits for a lock.
func waitForLock(t *testing.T, adminDSN string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), adminDSN)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	require.Eventually(t, func() bool {
		var waits bool
		err := conn.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database()
			and application_name = 'verbatim-auditview-projection' and wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	}, patience, time.Millisecond)
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	_, err := auditview.LoadConfig(map[string]string{
		"VERBATIM_AUDITVIEW_MAX_CONNS": "0", "VERBATIM_AUDITVIEW_DRAIN_TIMEOUT": "soon", "VERBATIM_AUDITVIEW_INTERNAL_TLS_CERT_FILE": "x",
	})
	for _, name := range []string{"DSN", "MAX_CONNS", "DRAIN_TIMEOUT", "INTERNAL_TLS_KEY_FILE"} {
		require.ErrorContains(t, err, "VERBATIM_AUDITVIEW_"+name)
	}
	base := map[string]string{"VERBATIM_AUDITVIEW_DSN": "postgres://u:hidden@h/d", "VERBATIM_AUDITVIEW_ADDR": "127.0.0.1:0", "VERBATIM_AUDITVIEW_METRICS_ADDR": ""}
	fails := func(change map[string]string, texts ...string) {
		t.Helper()
		environ := make(map[string]string)
		for _, m := range []map[string]string{base, change} {
			for k, v := range m {
				environ[k] = v
			}
		}
		cfg, err := auditview.LoadConfig(environ)
		require.NoError(t, err)
		require.Empty(t, cfg.MetricsAddr)
		_, err = auditview.New(cfg, slog.New(slog.DiscardHandler))
		for _, text := range texts {
			require.ErrorContains(t, err, text)
		}
		require.NotContains(t, err.Error(), "hidden")
	}
	fails(nil, "VERBATIM_AUDITVIEW_INTERNAL_TOKEN")
	fails(map[string]string{"VERBATIM_AUDITVIEW_INTERNAL_TOKEN": "hidden", "VERBATIM_AUDITVIEW_INTERNAL_ADDR": "0.0.0.0:0"}, "TLS_CERT_FILE", "loopback")
	fails(map[string]string{"VERBATIM_AUDITVIEW_INTERNAL_TOKEN": "hidden", "VERBATIM_AUDITVIEW_DSN": "postgres://hidden:%zz"}, "malformed")
	fails(map[string]string{"VERBATIM_AUDITVIEW_INTERNAL_TOKEN": "hidden", "VERBATIM_AUDITVIEW_TRUSTED_PROXIES": "nonsense"}, "TRUSTED_PROXIES")

	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	fails(map[string]string{"VERBATIM_AUDITVIEW_INTERNAL_TOKEN": "hidden", "VERBATIM_AUDITVIEW_INTERNAL_ADDR": l.Addr().String()},
		"auditview's internal listener cannot listen on "+l.Addr().String()+": the address is already in use")
}
