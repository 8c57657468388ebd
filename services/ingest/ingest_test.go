package ingest_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest"
	"verbatim.internal/sql"
)

const (
	sessionA = "123e4567-e89b-42d3-a456-426614174001"
	sessionB = "123e4567-e89b-42d3-a456-426614174002"
	run1     = "223e4567-e89b-42d3-a456-426614174001"
	tokenA   = "bha_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	tokenB   = "bha_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
)

const registry = `
clients:
  - {app_id: shop, name: Shop, allowed_routes: [orders], token: bhk_KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK}
routes:
  - {route_key: orders, name: Orders, agent_access: true}
sessions:
  - {session_id: 123e4567-e89b-42d3-a456-426614174001, client_app_id: shop, device_label: one, principal: {id: op, tenant: a}, on_behalf_of: "a:op",
     allowed_routes: [orders], access_token: bha_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA,
     access_expires_at: 2099-01-01T00:00:00Z, refresh_expires_at: "2099-01-01T00:00:00Z"}
  - {session_id: 123e4567-e89b-42d3-a456-426614174002, client_app_id: shop, device_label: two, principal: {id: op, tenant: b, roles: []}, on_behalf_of: "b:op",
     allowed_routes: ["*"], access_token: bha_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB,
     access_expires_at: 2099-01-01T00:00:00Z, refresh_expires_at: "2099-01-01T00:00:00Z"}
runs:
  - {run_id: 223e4567-e89b-42d3-a456-426614174001, session_id: 123e4567-e89b-42d3-a456-426614174001, client_app_id: shop, route_key: orders,
     thread_id: 101, client_conversation_id: conv, client_turn_id: t1}
`

// receiver is the far side of the relay: it takes every batch and keeps its events.
type receiver struct {
	mu     sync.Mutex
	events map[string][]cloudevent.Event // by stream
	came   chan struct{}
}

func receive(ctx context.Context, t *testing.T, local *transport.Local) *receiver {
	t.Helper()
	r := &receiver{events: map[string][]cloudevent.Event{}, came: make(chan struct{}, 1)}
	for _, topic := range transport.Topics() {
		messages, err := local.Subscribe(ctx, topic)
		require.NoError(t, err)
		go func() {
			for msg := range messages {
				r.take(msg)
			}
		}()
	}
	return r
}

func (r *receiver) take(msg *message.Message) {
	events, err := cloudevent.DecodeBatch(msg.Payload)
	if err != nil {
		msg.Nack()
		return
	}
	r.mu.Lock()
	for _, e := range events {
		r.events[e.StreamID] = append(r.events[e.StreamID], e)
	}
	r.mu.Unlock()
	msg.Ack()
	select {
	case r.came <- struct{}{}:
	default:
	}
}

// stream waits until n events of the stream have come.
func (r *receiver) stream(t *testing.T, id string, n int) []cloudevent.Event {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		got := append([]cloudevent.Event(nil), r.events[id]...)
		r.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-r.came:
		case <-deadline:
			t.Fatalf("stream %s: %d events came, want %d", id, len(got), n)
		}
	}
}

type bundle struct {
	service  *ingest.Service
	receiver *receiver
	db       pgtest.Database
}

func setup(t *testing.T) bundle {
	t.Helper()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	_, err := ingest.Apply(t.Context(), config.Secret(db.ServiceDSN), []byte(registry))
	require.NoError(t, err)
	return serve(t, db)
}

// serve starts a replica on a database.
func serve(t *testing.T, db pgtest.Database) bundle {
	t.Helper()
	cfg, err := ingest.LoadConfig(map[string]string{
		"VERBATIM_INGEST_DSN": db.ServiceDSN, "VERBATIM_INGEST_ADDR": "127.0.0.1:0", "VERBATIM_INGEST_METRICS_ADDR": "",
	})
	require.NoError(t, err)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	local := transport.NewLocal(nil)
	r := receive(context.Background(), t, local)
	svc, err := ingest.New(cfg, log, ingest.WithPublisher(local))
	require.NoError(t, err)
	require.NoError(t, svc.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, svc.Stop(context.Background())) })
	return bundle{service: svc, receiver: r, db: db}
}

// post sends a body and returns status and answer.
func (b bundle) post(t *testing.T, token, path, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.service.URL()+"/agent-api/v1/conversation-audits"+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var answer map[string]any
	require.NoError(t, json.Unmarshal(raw, &answer), "%s", raw)
	return resp.StatusCode, answer
}

func TestCommittedChangesReachTheReceiverInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status, header := b.post(t, tokenA, "", `{"client_archive_id":"323e4567-e89b-42d3-a456-426614174001","client_conversation_id":"conv",
		"route":"orders","member_session_ids":["`+sessionA+`","`+sessionB+`"],"member_labels":{"`+sessionA+`":"Store A"}}`)
	require.Equal(t, http.StatusOK, status, header)
	require.Equal(t, "enrolling", header["state"])
	id, _ := header["conversation_id"].(string)
	status, header = b.post(t, tokenB, "/"+id+"/confirm", `{}`)
	require.Equal(t, http.StatusOK, status, header)
	require.Equal(t, "ready", header["state"])
	const batch = `{"events":[
		{"event_id":"e1","sequence":1,"client_turn_id":"t1","kind":"turn_start"},
		{"event_id":"e2","sequence":2,"client_turn_id":"t1","kind":"user_message","content":"  \u00e9 <b>\n"},
		{"event_id":"e3","sequence":3,"client_turn_id":"t1","kind":"run_link","run_id":"` + run1 + `","member_session_id":"` + sessionA + `"},
		{"event_id":"e4","sequence":4,"client_turn_id":"t1","kind":"turn_end","status":"completed"}]}`
	for range 2 { // the second is a retry
		status, ack := b.post(t, tokenA, "/"+id+"/events", batch)
		require.Equal(t, http.StatusOK, status, ack)
		require.InEpsilon(t, 4.0, ack["last_sequence"], 0)
	}
	events := b.receiver.stream(t, id, 3)
	require.Len(t, events, 3)
	for i, want := range []string{archivev1.TypeCreated, archivev1.TypeMemberConfirmed, archivev1.TypeEventsAppended} {
		require.Equal(t, want, events[i].Type)
		require.Equal(t, int64(i+1), events[i].StreamVersion)
	}
	appended, err := archivev1.Unmarshal[archivev1.EventsAppended](events[2].Data)
	require.NoError(t, err)
	require.Equal(t, "  é <b>\n", appended.Events[1].Content)
	require.Equal(t, int64(101), appended.Events[2].ThreadID)
	require.Len(t, b.receiver.stream(t, run1, 1), 1)
}
