package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// A change of an authorization may take changeLimit under load or, where a machine takes
// long for everything, as long as changePatience appends that follow each other.
const (
	changeLimit    = time.Second
	changePatience = 10
)

// A change of what authorizes queues fairly: it is through in under a second
// while 64 archives are appended to, and no append succeeds after it. The changes
// are timed, so they come one after the other.
//
//nolint:paralleltest // its subtests measure
func TestARevocationGetsThroughUnderLoad(t *testing.T) {
	bySQL := func(statement string) func(t *testing.T, d *kit.Deployment, admin *pgx.Conn) {
		return func(t *testing.T, _ *kit.Deployment, admin *pgx.Conn) {
			t.Helper()
			_, err := admin.Exec(t.Context(), statement)
			require.NoError(t, err)
		}
	}
	for name, change := range map[string]func(t *testing.T, d *kit.Deployment, admin *pgx.Conn){
		"session by SQL": bySQL(`update bz_agent_sessions set revoked_at = now() where session_id = '` + kit.SessionID(2) + `'`),
		"client by SQL":  bySQL(`update bz_clients set allowed_routes = '{}' where app_id = 'app'`),
		"route by SQL":   bySQL(`update bz_routes set enabled = false where route_key = 'orders'`),
		"session by a controller": func(t *testing.T, d *kit.Deployment, _ *pgx.Conn) {
			t.Helper()
			revoke(t, d.Control, "/control-api/v1/sessions/", d.Bearer("controller console"))
		},
		"session by its client": func(t *testing.T, d *kit.Deployment, _ *pgx.Conn) {
			t.Helper()
			revoke(t, d.Ingest, kit.AuthPath+"/sessions/", d.Bearer("client app"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := kit.NewRegistry(3)
			registry.Controllers = []kit.Controller{kit.NewController("console")}
			d := kit.Start(t, kit.Options{Control: true, Registry: registry.Encode()})
			admin := kit.Connect(t, d.IngestDB.AdminDSN)
			load := startLoad(t, d, 64)
			load.awaitAppends(t, 64)
			before := time.Now()
			change(t, d, admin)
			took := time.Since(before)
			changed := load.appended.Load()
			load.awaitRefusals(t)
			usual := load.median()
			t.Logf("through after %v, an append takes %v", took.Round(time.Millisecond), usual.Round(time.Millisecond))
			assert.Less(t, took, max(changeLimit, changePatience*usual))
			// What was acknowledged at the moment of the change is all that there will be.
			assert.LessOrEqual(t, load.appended.Load()-changed, int64(64), "only appends that were committed before are acknowledged after")
			stored := kit.Count(t, d.IngestDB.AdminDSN, `select coalesce(sum(last_sequence), 0) from bz_agent_conversation_audits`)
			refused, err := d.Append(t.Context(), kit.SessionID(1), load.archives[0], kit.Turn("late", 1, 2)...)
			require.NoError(t, err)
			assert.Equal(t, "conversation_audit_authorization_invalid", refused.Code())
			assert.Equal(t, stored, kit.Count(t, d.IngestDB.AdminDSN, `select coalesce(sum(last_sequence), 0) from bz_agent_conversation_audits`))
			assert.Empty(t, load.surprises(), "an append is acknowledged or refused with 403, nothing else")
		})
	}
}

// revoke ends the second session over HTTP.
func revoke(t *testing.T, endpoint *kit.Endpoint, path, bearer string) {
	t.Helper()
	answer := endpoint.Must(kit.Request{Method: http.MethodPost, Path: path + kit.SessionID(2) + "/revoke", Bearer: bearer, Body: []byte("{}")})
	require.Equal(t, http.StatusOK, answer.Status)
}

// load appends to archives of the same two members, one writer each, until it is refused.
type load struct {
	archives []string
	appended atomic.Int64
	refused  atomic.Int64
	group    sync.WaitGroup

	mu    sync.Mutex
	other []int
	took  []time.Duration // each acknowledged append
}

func startLoad(t *testing.T, d *kit.Deployment, writers int) *load {
	t.Helper()
	l := &load{}
	for range writers {
		l.archives = append(l.archives, d.NewArchive(t, kit.SessionID(1), kit.SessionID(2)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, id := range l.archives {
		l.group.Go(func() { l.write(ctx, d, id) })
	}
	t.Cleanup(func() {
		cancel()
		l.group.Wait()
	})
	return l
}

func (l *load) write(ctx context.Context, d *kit.Deployment, id string) {
	for n := 1; ctx.Err() == nil; n += 2 {
		began := time.Now()
		status, err := d.AppendUnchecked(ctx, kit.SessionID(1), id, kit.Turn(fmt.Sprintf("turn-%d", n), n, 2)...)
		switch {
		case err != nil:
			return
		case status == http.StatusOK:
			l.appended.Add(1)
			l.mu.Lock()
			l.took = append(l.took, time.Since(began))
			l.mu.Unlock()
		case status == http.StatusForbidden:
			l.refused.Add(1)
			return
		default:
			l.mu.Lock()
			l.other = append(l.other, status)
			l.mu.Unlock()
			return
		}
	}
}

func (l *load) awaitAppends(t *testing.T, n int64) {
	t.Helper()
	kit.Eventually(t, 30*time.Second, func() error {
		if got := l.appended.Load(); got < n {
			return fmt.Errorf("%d appends", got)
		}
		return nil
	})
}

func (l *load) awaitRefusals(t *testing.T) {
	t.Helper()
	kit.Eventually(t, 30*time.Second, func() error {
		if got := int(l.refused.Load()) + len(l.surprises()); got < len(l.archives) {
			return fmt.Errorf("%d of %d writers have ended", got, len(l.archives))
		}
		return nil
	})
}

// median returns how long the median of the acknowledged appends took.
func (l *load) median() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.took))[len(l.took)/2]
}

func (l *load) surprises() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.other)
}

// A revocation that committed before an append's commit refuses it, also when the
// append began before: it waits for the change, and then sees it.
func TestAnAppendThatWaitsForARevocationIsRefused(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	id := d.NewArchive(t, kit.SessionID(1), kit.SessionID(2))
	revocation, err := kit.Connect(t, d.IngestDB.AdminDSN).Begin(t.Context())
	require.NoError(t, err)
	_, err = revocation.Exec(t.Context(), `update bz_agent_sessions set revoked_at = now() where session_id = $1`, kit.SessionID(2))
	require.NoError(t, err)
	waiting := background(func() (kit.Response, error) {
		return d.Append(t.Context(), kit.SessionID(1), id, kit.Turn("turn-1", 1, 2)...)
	})
	kit.AwaitLockWaits(t, d.IngestDB.AdminDSN, 1)
	require.NoError(t, revocation.Commit(t.Context()))
	got := <-waiting
	require.NoError(t, got.err)
	assert.Equal(t, http.StatusForbidden, got.answer.Status)
	assert.Zero(t, kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from bz_agent_conversation_events`))
}

// Creations and confirmations whose members come in opposite orders take their
// locks in one order, together with a change of the registry: nobody deadlocks.
func TestOppositeMemberOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	registry := kit.NewRegistry(2)
	registry.Clients = append(registry.Clients, kit.NewClient("other"))
	registry.Routes = append(registry.Routes, kit.NewRoute("billing"))
	registry.Sessions = append(registry.Sessions, kit.NewSession(3, "other"))
	file := registry.Encode()
	d := kit.Start(t, kit.Options{Registry: file})
	one := kit.Member{SessionID: kit.SessionID(1), ClientAppID: "app", Route: "orders"}
	two := kit.Member{SessionID: kit.SessionID(3), ClientAppID: "other", Route: "billing"}
	create := func(ctx context.Context, i int) (kit.Response, error) {
		members := []kit.Member{one, two}
		if i%2 == 1 {
			slices.Reverse(members)
		}
		return d.Create(ctx, members[0].SessionID, kit.Creation{
			Schema: "bailing.agent-conversation-audit-create.v2", ClientArchiveID: kit.UUID(),
			ClientConversationID: "opposite", Members: members,
		})
	}
	stop := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			changed := registry
			changed.Clients = slices.Clone(registry.Clients)
			changed.Clients[n%2].AllowedRoutes = []string{"orders", "billing", fmt.Sprintf("more-%d", n)}
			d.Apply(changed.Encode())
		}
	})
	for _, answer := range parallel(t, 100, create) {
		assert.Equal(t, http.StatusOK, answer.Status, "body: %s", answer.Body)
	}
	close(stop)
	changes.Wait()
}
