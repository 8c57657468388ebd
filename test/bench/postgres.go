package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/sql"
	auditviewsql "verbatim.internal/sql/auditview"
)

const (
	image        = "postgres:17-trixie"
	startTimeout = 3 * time.Minute
	password     = "bench"
)

// server is a durable PostgreSQL with three migrated databases: those of the
// services, and one of ingest's shape for the floor.
type server struct {
	ingest, auditview, floor string // as the service roles
}

// floorRoles are ingest's own: the floor has the same tables, indexes and rights.
var floorRoles = database.Roles{
	Owner: database.Ingest.Owner, Service: database.Ingest.Service, Reader: database.Ingest.Reader, Database: "verbatim_floor",
}

func startPostgres(ctx context.Context, dsn string) (server, func(), error) {
	remove := func() {}
	if dsn == "" {
		for name, value := range map[string]string{
			"TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1", "TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX": "localhost", "TESTCONTAINERS_RYUK_DISABLED": "true",
		} {
			if _, set := os.LookupEnv(name); !set {
				if err := os.Setenv(name, value); err != nil {
					return server{}, remove, err
				}
			}
		}
		ctr, err := postgres.Run(ctx, image, postgres.BasicWaitStrategies(),
			postgres.WithUsername("postgres"), postgres.WithPassword(password),
			testcontainers.WithEnv(map[string]string{"POSTGRES_INITDB_ARGS": "--locale-provider=builtin --locale=C.UTF-8"}),
			testcontainers.WithCmd("postgres", "-c", "max_connections=300", "-c", "shared_buffers=512MB", "-c", "max_wal_size=4GB"))
		if err != nil {
			return server{}, remove, fmt.Errorf("start PostgreSQL (is Docker there? `make image` makes the image): %w", err)
		}
		remove = func() { _ = testcontainers.TerminateContainer(ctr) }
		if dsn, err = ctr.ConnectionString(ctx, "sslmode=disable"); err != nil {
			remove()
			return server{}, func() {}, err
		}
	}
	s, err := prepare(ctx, dsn)
	if err != nil {
		remove()
		return server{}, func() {}, err
	}
	return s, remove, nil
}

func prepare(ctx context.Context, admin string) (server, error) {
	var s server
	for _, d := range []struct {
		roles database.Roles
		up    func(dsn string) error
		dsn   *string
	}{
		{database.Ingest, func(dsn string) error { _, err := migration.Up(ctx, dsn, sql.FS, 0); return err }, &s.ingest},
		{floorRoles, func(dsn string) error { _, err := migration.Up(ctx, dsn, sql.FS, 0); return err }, &s.floor},
		{database.Auditview, func(dsn string) error { _, err := migration.Up(ctx, dsn, auditviewsql.FS, 0); return err }, &s.auditview},
	} {
		passwords := map[string]string{}
		for _, role := range []string{d.roles.Owner, d.roles.Service, d.roles.Reader} {
			passwords[role] = password
		}
		if err := database.Bootstrap(ctx, admin, d.roles, passwords); err != nil {
			return s, err
		}
		owner, err := database.DSN(admin, d.roles.Owner, password, d.roles.Database)
		if err != nil {
			return s, err
		}
		if err := d.up(owner); err != nil {
			return s, err
		}
		if *d.dsn, err = database.DSN(admin, d.roles.Service, password, d.roles.Database); err != nil {
			return s, err
		}
	}
	return s, nil
}

// text is about 1 KB of plain prose; each event has the same.
var text = strings.Repeat("A visible sentence of the conversation, of some length. ", 18)
