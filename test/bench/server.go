package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/sql"
	auditviewsql "verbatim.internal/sql/auditview"
)

const (
	image        = "postgres:17-trixie"
	startTimeout = 3 * time.Minute
	lifetime     = "7200" // seconds after which a container that nobody removed ends
	password     = "bench"
)

// server is a durable PostgreSQL with a migrated database for each variant, all with the
// tables, indexes and rights of a deployment.
type server struct {
	admin     string // DSN of the superuser
	floor     string // DSNs of the service roles
	held      string // ingest whose relay is held
	ingest    string
	auditview string
	big       string // DSNs of ingest's database of many events
	bigOwner  string
	// processIngest and processAuditview are DSNs for the services as processes.
	processIngest, processAuditview string
	// auditviewOwner is the DSN of the owner of auditview's tables, who may vacuum them.
	auditviewOwner string

	stop func() error // removes the container, when there is one
}

// benchDatabases are the databases of a run, by their roles and migrations.
func (s *server) benchDatabases() []benchDatabase {
	return []benchDatabase{
		{database.Ingest, "verbatim_bench_floor", sql.FS, &s.floor, nil},
		{database.Ingest, "verbatim_bench_held", sql.FS, &s.held, nil},
		{database.Ingest, "verbatim_bench_ingest", sql.FS, &s.ingest, nil},
		{database.Ingest, "verbatim_bench_big", sql.FS, &s.big, &s.bigOwner},
		{database.Ingest, "verbatim_bench_process_ingest", sql.FS, &s.processIngest, nil},
		{database.Auditview, "verbatim_bench_process_auditview", auditviewsql.FS, &s.processAuditview, nil},
		{database.Auditview, "verbatim_bench_auditview", auditviewsql.FS, &s.auditview, &s.auditviewOwner},
	}
}

type benchDatabase struct {
	roles      database.Roles
	name       string
	migrations fs.FS
	dsn, owner *string // owner may be nil
}

// startServer makes the databases on the server that dsn reaches as a superuser, or in a
// container of its own when dsn is empty.
func startServer(ctx context.Context, dsn string) (*server, error) {
	s := &server{admin: dsn, stop: func() error { return nil }}
	if dsn == "" {
		if err := s.startContainer(ctx); err != nil {
			return nil, fmt.Errorf("start PostgreSQL (is Docker there? `make image` makes the image): %w", err)
		}
	}
	err := s.refuseUnfit(ctx)
	if err == nil {
		err = s.makeDatabases(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// startContainer starts a server whose data is in a volume, the image's own, and is synced.
func (s *server) startContainer(ctx context.Context) error {
	defaults := map[string]string{"TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX": "localhost", "TESTCONTAINERS_RYUK_DISABLED": "true"}
	if host := os.Getenv("DOCKER_HOST"); host == "" || strings.HasPrefix(host, "unix:") {
		defaults["TESTCONTAINERS_HOST_OVERRIDE"] = "127.0.0.1"
	}
	for name, value := range defaults {
		if _, set := os.LookupEnv(name); !set {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	tclog.SetDefault(tclog.NewNoopLogger())
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ctr, err := postgres.Run(ctx, image, postgres.BasicWaitStrategies(),
		postgres.WithUsername("postgres"), postgres.WithPassword(password),
		testcontainers.WithEnv(map[string]string{"POSTGRES_INITDB_ARGS": "--locale-provider=builtin --locale=C.UTF-8"}),
		testcontainers.WithEntrypoint("timeout", "-s", "INT", lifetime, "docker-entrypoint.sh"),
		// Checkpoints come between the measurements, not in the middle of some of them.
		testcontainers.WithCmd("postgres", "-c", "max_connections=200", "-c", "shared_buffers=1GB",
			"-c", "max_wal_size=16GB", "-c", "checkpoint_timeout=1h"),
		testcontainers.WithHostConfigModifier(confine))
	s.stop = func() error { return testcontainers.TerminateContainer(ctr) }
	if err == nil {
		s.admin, err = ctr.ConnectionString(ctx, "sslmode=disable")
	}
	if err != nil {
		return errors.Join(err, s.stop())
	}
	return nil
}

// confine removes the container when it ends, and publishes it to this machine only,
// where the engine is local: its password is no secret.
func confine(host *container.HostConfig) {
	host.AutoRemove = true
	if ip, err := netip.ParseAddr(os.Getenv("TESTCONTAINERS_HOST_OVERRIDE")); err == nil && ip.IsLoopback() {
		host.PortBindings = network.PortMap{network.MustParsePort("5432/tcp"): {{HostIP: ip}}}
	}
}

// refuseUnfit keeps the benchmark off servers that would lie, and off deployments, whose
// roles it would give other passwords.
func (s *server) refuseUnfit(ctx context.Context) error {
	return s.asAdmin(ctx, func(conn *pgx.Conn) error {
		var synced, deployed bool
		err := conn.QueryRow(ctx, `
			select current_setting('fsync') = 'on' and current_setting('synchronous_commit') = 'on',
				exists (select from pg_database where datname = any($1))`,
			[]string{database.Ingest.Database, database.Auditview.Database}).Scan(&synced, &deployed)
		if err == nil && !synced {
			err = errors.New("the server has fsync or synchronous_commit off: what it acknowledges is not stored")
		}
		if err == nil && deployed {
			err = errors.New("the server holds a deployment of Verbatim, which a benchmark must not touch")
		}
		return err
	})
}

func (s *server) makeDatabases(ctx context.Context) error {
	if err := s.dropDatabases(ctx); err != nil {
		return err
	}
	for _, d := range s.benchDatabases() {
		roles := d.roles
		roles.Database = d.name
		passwords := map[string]string{roles.Owner: password, roles.Service: password, roles.Reader: password}
		if err := database.Bootstrap(ctx, s.admin, roles, passwords); err != nil {
			return err
		}
		owner, err := database.DSN(s.admin, roles.Owner, password, d.name)
		if err != nil {
			return err
		}
		if d.owner != nil {
			*d.owner = owner
		}
		if _, err := migration.Up(ctx, owner, d.migrations, 0); err != nil {
			return err
		}
		if *d.dsn, err = database.DSN(s.admin, roles.Service, password, d.name); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) dropDatabases(ctx context.Context) error {
	return s.asAdmin(ctx, func(conn *pgx.Conn) error {
		for _, d := range s.benchDatabases() {
			if _, err := conn.Exec(ctx, `drop database if exists `+pgx.Identifier{d.name}.Sanitize()+` with (force)`); err != nil {
				return fmt.Errorf("drop the database %s: %w", d.name, err)
			}
		}
		return nil
	})
}

// remove leaves nothing but the cluster's roles behind.
func (s *server) remove(ctx context.Context) error {
	return errors.Join(s.dropDatabases(ctx), s.stop())
}

// checkpoint writes out what earlier measurements left to be written.
func (s *server) checkpoint(ctx context.Context) error {
	return s.asAdmin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `checkpoint`)
		return err
	})
}

func (s *server) asAdmin(ctx context.Context, fn func(conn *pgx.Conn) error) error {
	return withConn(ctx, s.admin, fn)
}

func withConn(ctx context.Context, dsn string, fn func(conn *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return fn(conn)
}

// machine tells what the numbers were measured on.
func (s *server) machine(ctx context.Context) machine {
	m := machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH}
	// A report without the server's version is still a report.
	_ = s.asAdmin(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select current_setting('server_version')`).Scan(&m.PostgreSQL)
	})
	return m
}
