package crash_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
	"verbatim.internal/sql"
	auditviewsql "verbatim.internal/sql/auditview"
	"verbatim.internal/test/integration/internal/kit"
)

// patience bounds all waits for something that must happen.
const patience = 60 * time.Second

// system is both services as processes. What it has of a Deployment are the endpoints;
// bearers are given to it as they are.
type system struct {
	kit.Deployment
	t *testing.T

	ingest, auditview *process
	// relayURL is auditview's internal listener.
	relayURL string
	token    string
	sessions []kit.Session
}

// options say how the parts reach one another. The zero value is: directly, on databases
// of the shared server.
type options struct {
	ingestDB, auditviewDB pgtest.Database
	// sessions is how many there are, numbered from 1; 0 means 2.
	sessions int
	// ingestEnv and auditviewEnv add to the services' environment variables.
	ingestEnv, auditviewEnv map[string]string
	// relay returns where ingest's relay is to send, given where auditview receives it.
	relay func(url string) string
	// ingestDSN and auditviewDSN return how the services are to reach their databases.
	ingestDSN, auditviewDSN func(dsn string) string
}

// newSystem prepares both services. Nothing runs yet.
func newSystem(t *testing.T, o options) *system {
	t.Helper()
	if o.ingestDB.Name == "" {
		o.ingestDB = pgtest.New(t, database.Ingest, sql.FS, 0)
		o.auditviewDB = pgtest.New(t, database.Auditview, auditviewsql.FS, 0)
	}
	registry := kit.NewRegistry(max(o.sessions, 2))
	_, err := ingest.Apply(t.Context(), config.Secret(o.ingestDB.ServiceDSN), registry.Encode())
	require.NoError(t, err)
	_, err = auditview.ApplyAdmins(t.Context(), config.Secret(o.auditviewDB.ServiceDSN), kit.JSON(map[string]any{
		"admins": []map[string]any{{"name": "viewer", "token": kit.Viewer, "permissions": []string{"runs:read"}}},
	}))
	require.NoError(t, err)

	same := func(text string) string { return text }
	for _, f := range []*func(string) string{&o.relay, &o.ingestDSN, &o.auditviewDSN} {
		if *f == nil {
			*f = same
		}
	}
	s := &system{t: t, token: rand.Text() + rand.Text(), sessions: registry.Sessions}
	s.IngestDB, s.AuditviewDB = o.ingestDB, o.auditviewDB
	ofAuditview, internal := freeAddress(t), freeAddress(t)
	s.relayURL = "http://" + internal
	env := map[string]string{
		"VERBATIM_AUDITVIEW_DSN":            o.auditviewDSN(o.auditviewDB.ServiceDSN),
		"VERBATIM_AUDITVIEW_ADDR":           ofAuditview,
		"VERBATIM_AUDITVIEW_INTERNAL_ADDR":  internal,
		"VERBATIM_AUDITVIEW_INTERNAL_TOKEN": s.token,
		"VERBATIM_AUDITVIEW_METRICS_ADDR":   "",
	}
	maps.Copy(env, o.auditviewEnv)
	s.auditview = newProcess(t, "auditview", env)
	s.Auditview = kit.NewEndpoint(t, "http://"+ofAuditview, kit.AuditviewContract)
	s.ingest, s.Ingest = s.newIngest(o.ingestDSN(o.ingestDB.ServiceDSN), o.relay(s.relayURL), o.ingestEnv)
	return s
}

// newIngest prepares a replica of ingest.
func (s *system) newIngest(dsn, relayURL string, extra map[string]string) (*process, *kit.Endpoint) {
	s.t.Helper()
	address := freeAddress(s.t)
	env := map[string]string{
		"VERBATIM_INGEST_DSN":          dsn,
		"VERBATIM_INGEST_ADDR":         address,
		"VERBATIM_INGEST_METRICS_ADDR": "",
		"VERBATIM_INGEST_RELAY_URL":    relayURL,
		"VERBATIM_INGEST_RELAY_TOKEN":  s.token,
	}
	maps.Copy(env, extra)
	p := newProcess(s.t, "ingest", env)
	s.t.Cleanup(func() { p.checkLog(s.secrets()...) }) // before it is killed: all it has logged by now
	return p, kit.NewEndpoint(s.t, "http://"+address, kit.IngestContract)
}

// start starts both services and waits until they are ready.
func (s *system) start() {
	s.t.Helper()
	s.t.Cleanup(func() { s.auditview.checkLog(s.secrets()...) })
	s.auditview.start()
	s.ingest.start()
	awaitReady(s.t, s.Auditview)
	awaitReady(s.t, s.Ingest)
}

func (s *system) secrets() []string {
	secrets := []string{s.token, kit.Viewer, kit.ClientToken("app")}
	for _, session := range s.sessions {
		secrets = append(secrets, session.AccessToken)
	}
	for _, password := range pgtest.Passwords() {
		secrets = append(secrets, password)
	}
	return secrets
}

// awaitReady waits until a service says that it is ready.
func awaitReady(t *testing.T, e *kit.Endpoint) {
	t.Helper()
	kit.Eventually(t, patience, func() error {
		answer, err := e.Do(t.Context(), kit.Request{Method: http.MethodGet, Path: "/readyz"})
		if err == nil && answer.Status != http.StatusOK {
			err = fmt.Errorf("not ready: %s", answer.Body)
		}
		return err
	})
}

// bearer returns the n-th session's token.
func (s *system) bearer(n int) string { return s.sessions[n-1].AccessToken }

// newArchive creates an archive of session 1 alone.
func (s *system) newArchive() string {
	s.t.Helper()
	return s.Enrol(s.t, kit.NewCreation(kit.SessionID(1)), s.bearer(1))
}

// append appends as session 1, unchanged until it is acknowledged, and returns the events.
func (s *system) append(id string, events []kit.Event) []kit.Event {
	s.t.Helper()
	return s.appendAt(s.Ingest, id, events)
}

func (s *system) appendAt(e *kit.Endpoint, id string, events []kit.Event) []kit.Event {
	s.t.Helper()
	at := kit.Deployment{Ingest: e}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	_, err := persist(ctx, func() (kit.Response, error) { return at.Append(ctx, s.bearer(1), id, events...) })
	require.NoError(s.t, err)
	return events
}

// serves waits until exactly the events are served.
func (s *system) serves(id string, events []kit.Event) {
	s.t.Helper()
	kit.Eventually(s.t, patience, func() error { return s.same(s.t.Context(), id, events) })
}

// same tells how what is served differs from the events.
func (s *system) same(ctx context.Context, id string, events []kit.Event) error {
	detail, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	if detail.Conversation.LastSequence != len(events) {
		return fmt.Errorf("last sequence is %d, want %d", detail.Conversation.LastSequence, len(events))
	}
	return sameEvents(kit.Submitted(detail.Events), events)
}

func sameEvents(got, want []kit.Event) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d events, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("event %d differs", want[i].Sequence)
		}
	}
	return nil
}

// drained waits until nothing is left to send.
func drained(t *testing.T, db pgtest.Database) {
	t.Helper()
	kit.Eventually(t, patience, func() error {
		waiting, err := ingest.RelayStatus(t.Context(), config.Secret(db.ReaderDSN))
		if err == nil && len(waiting) > 0 {
			err = fmt.Errorf("waiting: %v", waiting)
		}
		return err
	})
}

// settled waits until nothing is left to send, and fails the test when something is parked.
func (s *system) settled() {
	s.t.Helper()
	drained(s.t, s.IngestDB)
	status, err := auditview.RelayStatus(s.t.Context(), config.Secret(s.AuditviewDB.ReaderDSN))
	require.NoError(s.t, err)
	assert.Empty(s.t, status.Parked)
}

// retryPause is how long an agent waits before it sends again.
const retryPause = 20 * time.Millisecond

// persist sends until it is answered 200 or 201, as an agent does: what it sends does not
// change, and no answer and a 503 are the only reasons to send again. Everything else
// is an error.
func persist(ctx context.Context, send func() (kit.Response, error)) (kit.Response, error) {
	ticker := time.NewTicker(retryPause)
	defer ticker.Stop()
	for {
		answer, err := send()
		switch {
		case err == nil && (answer.Status == http.StatusOK || answer.Status == http.StatusCreated):
			return answer, nil
		case err == nil && answer.Status != http.StatusServiceUnavailable:
			return answer, fmt.Errorf("status %d, %s", answer.Status, answer.Code())
		case err == nil:
			err = errors.New(answer.Code())
		}
		select {
		case <-ctx.Done():
			return kit.Response{}, fmt.Errorf("never acknowledged: %w", err)
		case <-ticker.C:
		}
	}
}
