package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// patience bounds the waits of these tests.
const patience = 30 * time.Second

// proxied puts a proxy before a database and returns the address through it.
func proxied(t *testing.T, dsn string) (*toxiproxy.Proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "database", "127.0.0.1:0", u.Host)
	require.NoError(t, proxy.Start())
	t.Cleanup(proxy.Stop)
	u.Host = proxy.Listen
	return proxy, u.String()
}

// A database that is away is a 503 that says to come back, never a wrong answer;
// when it is there again, everything goes on, the relay too.
func TestADatabaseThatIsAwayIsUnavailableAndComesBack(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	id := d.NewArchive(t, kit.SessionID(1))
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-1", 1, 3)...)
	d.WaitFor(t, id, 3)
	d.StopIngest()
	ingestDB, throughProxy := proxied(t, d.IngestDB.ServiceDSN)
	d.IngestDB.ServiceDSN = throughProxy
	d.StartIngest()
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-2", 4, 3)...)

	ingestDB.Stop()
	answer, err := d.Append(t.Context(), kit.SessionID(1), id, kit.Turn("turn-3", 7, 3)...)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, answer.Status)
	assert.Equal(t, "conversation_audit_unavailable", answer.Code())
	assert.NotEmpty(t, answer.Header.Get("Retry-After"))
	probe := d.Ingest.Must(kit.Request{Method: http.MethodGet, Path: kit.ArchivesPath + "/capabilities", Bearer: d.Bearer(kit.SessionID(1))})
	assert.Equal(t, http.StatusServiceUnavailable, probe.Status, "a failed probe is no answer")
	assert.Equal(t, http.StatusServiceUnavailable, d.Ingest.Must(kit.Request{Method: http.MethodGet, Path: "/readyz"}).Status)
	assert.Equal(t, http.StatusOK, d.Ingest.Must(kit.Request{Method: http.MethodGet, Path: "/healthz"}).Status)

	require.NoError(t, ingestDB.Start())
	kit.Eventually(t, patience, func() error {
		answer, err := d.Append(t.Context(), kit.SessionID(1), id, kit.Turn("turn-3", 7, 3)...)
		if err == nil && answer.Status != http.StatusOK {
			err = fmt.Errorf("status %d", answer.Status)
		}
		return err
	})
	assert.Len(t, d.WaitFor(t, id, 9).Events, 9)
}

func TestAnAdminDatabaseThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	id := d.NewArchive(t, kit.SessionID(1))
	d.StopIngest()
	d.StopAuditview()
	proxy, throughProxy := proxied(t, d.AuditviewDB.ServiceDSN)
	d.AuditviewDB.ServiceDSN = throughProxy
	d.StartAuditview()
	d.StartIngest()
	d.WaitFor(t, id, 0)
	proxy.Stop()
	answer := d.Auditview.Must(kit.Request{Method: http.MethodGet, Path: "/admin/api/conversation-audits", Bearer: d.Bearer(kit.Viewer)})
	assert.Equal(t, http.StatusServiceUnavailable, answer.Status)
	assert.NotEmpty(t, answer.Header.Get("Retry-After"))
	// Agents are served as if nothing was: what they write waits in the outbox.
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-1", 1, 5)...)
	require.NoError(t, proxy.Start())
	assert.Len(t, d.WaitFor(t, id, 5).Events, 5)
}

func TestTheContractsAreServed(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	for _, endpoint := range []*kit.Endpoint{d.Ingest, d.Auditview} {
		answer := endpoint.Must(kit.Request{Method: http.MethodGet, Path: "/openapi.yaml"})
		assert.Equal(t, http.StatusOK, answer.Status)
		assert.Contains(t, string(answer.Body), "openapi: 3.1")
	}
}
