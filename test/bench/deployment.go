package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

const (
	// maxConns is how many connections the floor and ingest have alike: ingest's default.
	maxConns int32 = 16

	session    = "123e4567-e89b-42d3-a456-426614174001"
	route      = "orders"
	clientID   = "bench"
	agentToken = "bha_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	// clientToken is the client's own, which orchestrators have.
	clientToken = "bhk_KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK"
	adminToken  = "bva_VVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVV"

	registry = `{
		"clients": [{"app_id": "` + clientID + `", "name": "Bench", "allowed_routes": ["*"], "token": "` + clientToken + `"}],
		"routes": [{"route_key": "` + route + `", "name": "Orders", "agent_access": true}],
		"sessions": [{"session_id": "` + session + `", "client_app_id": "` + clientID + `", "device_label": "bench",
			"principal": {"id": "bench", "tenant": "bench", "roles": ["manager"]}, "on_behalf_of": "bench", "allowed_routes": ["*"],
			"access_token": "` + agentToken + `", "access_expires_at": "2099-01-01T00:00:00Z", "refresh_expires_at": "2099-01-01T00:00:00Z"}]}`
	administrators = `{"admins": [{"name": "bench", "token": "` + adminToken + `", "permissions": ["runs:read"]}]}`

	archivesPath      = "/agent-api/v1/conversation-audits"
	adminArchivesPath = "/admin/api/conversation-audits"
	stopTimeout       = time.Minute
)

// manyClients is how many clients of their own the registry has beside the usual one,
// each with a route and a session.
const manyClients = 256

// clients are the agents of many clients.
func clients() []agent {
	agents := make([]agent, manyClients)
	for i := range agents {
		agents[i] = agent{
			session: fmt.Sprintf("223e4567-e89b-42d3-a456-%012d", i), token: fmt.Sprintf("bha_%043d", i), route: fmt.Sprintf("route-%d", i),
		}
	}
	return agents
}

// registryOfMany is the registry of those clients.
func registryOfMany() []byte {
	var clientEntries, routes, sessions []string
	for i, a := range clients() {
		clientEntries = append(clientEntries, fmt.Sprintf(`{"app_id":"client-%d","name":"Client","allowed_routes":["*"],"enabled":true}`, i))
		routes = append(routes, fmt.Sprintf(`{"route_key":%q,"name":"Route","agent_access":true}`, a.route))
		sessions = append(sessions, fmt.Sprintf(`{"session_id":%q,"client_app_id":"client-%d","device_label":"bench","principal":{"id":"bench"},
			"on_behalf_of":"bench","allowed_routes":["*"],"access_token":%q,"access_expires_at":"2099-01-01T00:00:00Z","refresh_expires_at":"2099-01-01T00:00:00Z"}`,
			a.session, i, a.token))
	}
	return []byte(`{"clients":[` + strings.Join(clientEntries, ",") + `],"routes":[` + strings.Join(routes, ",") + `],"sessions":[` + strings.Join(sessions, ",") + `]}`)
}

// stack is services with their real listeners, in this process. Their log is formatted
// as always, and thrown away.
type stack struct {
	ingestURL, auditviewURL string
	stops                   []func(context.Context) error // in the order of starting
}

// close stops what runs, the last first.
func (s *stack) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var err error
	for i := len(s.stops) - 1; i >= 0; i-- {
		err = errors.Join(err, s.stops[i](ctx))
	}
	s.stops = nil
	return err
}

// startHeld starts ingest alone. Its relay has a receiver that never answers: each
// partition holds the first message it ever read, and rests.
func startHeld(ctx context.Context, dsn string) (*stack, error) {
	s := &stack{}
	if err := s.startIngest(ctx, dsn, silent{}); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// startBoth starts both services, joined in process.
func startBoth(ctx context.Context, ingestDSN, auditviewDSN string) (*stack, error) {
	local := transport.NewLocal(telemetry.NewWatermillLogger(logger("transport")))
	s := &stack{stops: []func(context.Context) error{func(context.Context) error { return local.Close() }}}
	err := s.startAuditview(ctx, auditviewDSN, local)
	if err == nil {
		err = s.startIngest(ctx, ingestDSN, local)
	}
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

func (s *stack) startIngest(ctx context.Context, dsn string, publisher message.Publisher) error {
	if _, err := ingest.Apply(ctx, config.Secret(dsn), []byte(registry)); err != nil {
		return err
	}
	cfg, err := ingest.LoadConfig(map[string]string{
		"VERBATIM_INGEST_DSN": dsn, "VERBATIM_INGEST_ADDR": "127.0.0.1:0", "VERBATIM_INGEST_METRICS_ADDR": "",
		"VERBATIM_INGEST_MAX_CONNS": strconv.Itoa(int(maxConns)),
	})
	if err != nil {
		return err
	}
	service, err := ingest.New(cfg, logger("ingest"), ingest.WithPublisher(publisher))
	if err != nil {
		return err
	}
	if err := service.Start(ctx); err != nil {
		return err
	}
	s.ingestURL, s.stops = service.URL(), append(s.stops, service.Stop)
	return nil
}

func (s *stack) startAuditview(ctx context.Context, dsn string, subscriber message.Subscriber) error {
	if _, err := auditview.ApplyAdmins(ctx, config.Secret(dsn), []byte(administrators)); err != nil {
		return err
	}
	cfg, err := auditview.LoadConfig(map[string]string{
		"VERBATIM_AUDITVIEW_DSN": dsn, "VERBATIM_AUDITVIEW_ADDR": "127.0.0.1:0", "VERBATIM_AUDITVIEW_METRICS_ADDR": "",
	})
	if err != nil {
		return err
	}
	service, err := auditview.New(cfg, logger("auditview"), auditview.WithSubscriber(subscriber))
	if err != nil {
		return err
	}
	if err := service.Start(ctx); err != nil {
		return err
	}
	s.auditviewURL, s.stops = service.URL(), append(s.stops, service.Stop)
	return nil
}

func logger(service string) *slog.Logger {
	return telemetry.NewLogger(io.Discard, slog.LevelInfo, service)
}

// silent is a transport whose receiver never answers.
type silent struct{}

// Publish waits for the end of the first message's context.
func (silent) Publish(_ string, messages ...*message.Message) error {
	for _, msg := range messages {
		<-msg.Context().Done()
		return context.Cause(msg.Context())
	}
	return nil
}

// Close does nothing.
func (silent) Close() error { return nil }
