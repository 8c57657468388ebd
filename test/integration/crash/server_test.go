package crash_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
	"verbatim.internal/test/integration/internal/kit"
)

const (
	// serverLimit bounds how long a killed server may take to be gone.
	serverLimit = 60 * time.Second
	// lifetime ends a container that nobody removed, in seconds.
	lifetime = "3600"
)

// server is a PostgreSQL that keeps its promises: with fsync, its data in a volume. Its
// port stays the same when it is started again.
type server struct {
	t         *testing.T
	container *postgres.PostgresContainer
	docker    *testcontainers.DockerClient
	adminDSN  string
}

// newServer starts a server, which is removed with its data at the test's end.
func newServer(t *testing.T) *server {
	t.Helper()
	pgtest.Server(t) // says what is missing, if there is no Docker or no image
	address := freeAddress(t)
	c, err := postgres.Run(t.Context(), pgtest.Image,
		testcontainers.WithEnv(map[string]string{"POSTGRES_INITDB_ARGS": "--locale-provider=builtin --locale=C.UTF-8"}),
		testcontainers.WithEntrypoint("timeout", "-s", "INT", lifetime, "docker-entrypoint.sh"),
		testcontainers.WithCmd("postgres", "-c", "max_connections=200"),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			port := netip.MustParseAddrPort(address)
			host.PortBindings = network.PortMap{network.MustParsePort("5432/tcp"): {{
				HostIP: port.Addr(), HostPort: strconv.Itoa(int(port.Port())),
			}}}
		}),
		testcontainers.WithLogger(log.NewNoopLogger()),
		postgres.BasicWaitStrategies())
	testcontainers.CleanupContainer(t, c)
	require.NoError(t, err)
	docker, err := testcontainers.NewDockerClientWithOpts(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = docker.Close() })
	s := &server{t: t, container: c, docker: docker}
	s.adminDSN, err = c.ConnectionString(t.Context(), "sslmode=disable", "connect_timeout=3")
	require.NoError(t, err)
	var fsync string
	require.NoError(t, kit.Connect(t, s.adminDSN).QueryRow(t.Context(), "show fsync").Scan(&fsync))
	require.Equal(t, "on", fsync)
	return s
}

// kill kills all of the server at once, as a power cut does.
func (s *server) kill() {
	s.t.Helper()
	id := s.container.GetContainerID()
	_, err := s.docker.ContainerKill(s.t.Context(), id, client.ContainerKillOptions{Signal: "SIGKILL"})
	require.NoError(s.t, err)
	kit.Eventually(s.t, serverLimit, func() error {
		state, err := s.container.State(s.t.Context())
		if err == nil && state.Running {
			err = fmt.Errorf("it runs")
		}
		return err
	})
}

// start starts a killed server and does not wait for its recovery.
func (s *server) start() {
	s.t.Helper()
	_, err := s.docker.ContainerStart(s.t.Context(), s.container.GetContainerID(), client.ContainerStartOptions{})
	require.NoError(s.t, err)
}

// bootstrap makes a service's roles and its empty database, and returns how each role reaches it.
func (s *server) bootstrap(roles database.Roles) pgtest.Database {
	s.t.Helper()
	require.NoError(s.t, database.Bootstrap(s.t.Context(), s.adminDSN, roles, pgtest.Passwords()))
	as := func(role string) string {
		dsn, err := database.DSN(s.adminDSN, role, pgtest.Password(role), roles.Database)
		require.NoError(s.t, err)
		return dsn
	}
	admin, err := pgtest.On(s.adminDSN, roles.Database)
	require.NoError(s.t, err)
	return pgtest.Database{
		Name: roles.Database, OwnerDSN: as(roles.Owner), ServiceDSN: as(roles.Service), ReaderDSN: as(roles.Reader), AdminDSN: admin,
	}
}

// migrated makes both services' databases, with all migrations.
func (s *server) migrated() (ofIngest, ofAuditview pgtest.Database) {
	s.t.Helper()
	ofIngest, ofAuditview = s.bootstrap(database.Ingest), s.bootstrap(database.Auditview)
	_, err := ingest.MigrateUp(s.t.Context(), config.Secret(ofIngest.OwnerDSN), 0)
	require.NoError(s.t, err)
	_, err = auditview.MigrateUp(s.t.Context(), config.Secret(ofAuditview.OwnerDSN), 0)
	require.NoError(s.t, err)
	return ofIngest, ofAuditview
}

// exec runs a command in the server's container, as the database's account.
func (s *server) exec(command ...string) {
	s.t.Helper()
	code, out, err := s.container.Exec(s.t.Context(), append([]string{"gosu", "postgres"}, command...))
	require.NoError(s.t, err)
	text, err := io.ReadAll(out)
	require.NoError(s.t, err)
	require.Zero(s.t, code, "%s: %s", command[0], text)
}

// lowest and highest port that freeAddress gives: below those that Linux and Docker give to
// whoever does not care, so that nobody takes an address while its service is down.
const lowestPort, highestPort = 20000, 31999

var takenPorts sync.Map

// freeAddress returns an address of this machine that nobody uses.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		if _, taken := takenPorts.LoadOrStore(port, true); taken {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
		if err != nil {
			continue
		}
		require.NoError(t, listener.Close())
		return address
	}
	t.Fatal("no port is free")
	return ""
}
