// Package pgtest gives each test a PostgreSQL database of its own: a clone of a migrated
// template, on one server that all packages of a "go test" run share.
//
// The server is a container, without durability. It has the six roles of both services,
// made by [database.Bootstrap] as in a deployment. Where there is no Docker, tests fail
// and say what to do; they never skip. VERBATIM_TEST_DSN, the address of a superuser,
// names another server to use, such as one of an older PostgreSQL.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"verbatim.internal/pkg/platform/database"
)

const (
	// Image is the server's image. The tests' environment maps it to localhost/….
	Image = "postgres:17-trixie"

	localImage  = "localhost/" + Image
	localReaper = "localhost/testcontainers/ryuk:0.14.0"

	// lifetime ends a container that nobody removed, in seconds.
	lifetime = "3600"

	startTimeout = 2 * time.Minute
)

// init sets what testcontainers-go needs to do with local images. It reads these
// variables once, when it is first used, so they are set before any test runs; what
// the caller has set stays.
func init() {
	setDefault("TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX", "localhost")
	if host := os.Getenv("DOCKER_HOST"); host == "" || strings.HasPrefix(host, "unix:") {
		// Some virtual machines have a /.dockerenv though the engine is local; ports would
		// then be looked for on the default route's gateway, for a minute each time.
		setDefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	}
	if _, set := os.LookupEnv("TESTCONTAINERS_RYUK_DISABLED"); !set && !haveImage(localReaper) {
		setDefault("TESTCONTAINERS_RYUK_DISABLED", "true")
	}
}

func setDefault(name, value string) {
	if _, set := os.LookupEnv(name); !set {
		// Fails for malformed names only.
		_ = os.Setenv(name, value)
	}
}

func haveImage(name string) bool {
	docker, err := client.New(client.FromEnv)
	if err != nil {
		return false
	}
	defer func() { _ = docker.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = docker.ImageInspect(ctx, name)
	return err == nil
}

// Server returns the shared server's address as its superuser. The first call of a run
// starts it. It fails the test when Docker or the image is missing. It is safe for
// concurrent use.
func Server(tb testing.TB) string {
	tb.Helper()
	dsn, err := server()
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return dsn
}

// Password returns the fixed password that the test server's role has.
func Password(role string) string { return "test-" + role }

// Passwords returns the passwords of the roles of both services.
func Passwords() map[string]string {
	passwords := make(map[string]string)
	for _, r := range []database.Roles{database.Ingest, database.Auditview} {
		maps.Copy(passwords, passwordsOf(r))
	}
	return passwords
}

func passwordsOf(r database.Roles) map[string]string {
	passwords := make(map[string]string)
	for _, role := range []string{r.Owner, r.Service, r.Reader} {
		passwords[role] = Password(role)
	}
	return passwords
}

var server = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	dsn := os.Getenv("VERBATIM_TEST_DSN")
	if dsn == "" {
		var err error
		if dsn, err = startContainer(ctx); err != nil {
			return "", err
		}
	}
	for _, r := range []database.Roles{database.Ingest, database.Auditview} {
		if err := database.Bootstrap(ctx, dsn, r, Passwords()); err != nil {
			return "", err
		}
	}
	return dsn, nil
})

func startContainer(ctx context.Context) (string, error) {
	if err := checkDocker(ctx); err != nil {
		return "", err
	}
	// The session's id is the same in all test programs of one "go test" and differs between
	// commands, so each command has one container, which the reaper removes when there is one.
	ctr, err := postgres.Run(ctx, Image,
		testcontainers.WithReuseByName("verbatim-pgtest-"+testcontainers.SessionID()),
		testcontainers.WithTmpfs(map[string]string{"/var/lib/postgresql/data": "rw"}),
		testcontainers.WithEnv(map[string]string{"POSTGRES_INITDB_ARGS": "--no-sync --locale-provider=builtin --locale=C.UTF-8"}),
		testcontainers.WithEntrypoint("timeout", "-s", "INT", lifetime, "docker-entrypoint.sh"),
		testcontainers.WithCmd("postgres", "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
			"-c", "max_connections=500", "-c", "max_locks_per_transaction=256"),
		testcontainers.WithHostConfigModifier(confine),
		testcontainers.WithLogger(log.NewNoopLogger()),
		postgres.BasicWaitStrategies())
	if err != nil {
		return "", fmt.Errorf("start PostgreSQL in Docker: %w", err)
	}
	dsn, err := ctr.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return "", fmt.Errorf("find the server's port: %w", err)
	}
	return dsn, nil
}

// confine removes the container at the end of its lifetime, and publishes the server to
// this machine only, where the engine is local: its password is no secret.
func confine(host *container.HostConfig) {
	host.AutoRemove = true
	if ip, err := netip.ParseAddr(os.Getenv("TESTCONTAINERS_HOST_OVERRIDE")); err == nil && ip.IsLoopback() {
		host.PortBindings = network.PortMap{network.MustParsePort("5432/tcp"): {{HostIP: ip}}}
	}
}

func checkDocker(ctx context.Context) error {
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return errors.New("these tests need Docker, which does not answer; install and start it (Debian: apt-get install docker.io), then run `make image`")
	}
	defer func() { _ = docker.Close() }()
	if _, err := docker.ImageInspect(ctx, localImage); err != nil {
		return fmt.Errorf("these tests need the image %s; run `make image`", localImage)
	}
	return nil
}
