package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/migration"
)

// templateLock lets one test program at a time make a template.
const templateLock int64 = 0x766274_74657374 // "vbt" "test"

// Database is one test's database, as each of its roles reaches it.
type Database struct {
	// Name is the database's name on the shared server.
	Name string
	// OwnerDSN connects as the owner role.
	OwnerDSN string
	// ServiceDSN connects as the service's role.
	ServiceDSN string
	// ReaderDSN connects as the reading role.
	ReaderDSN string
	// AdminDSN connects as the server's superuser.
	AdminDSN string
}

// New returns a new database for roles, with fsys's migrations up to version to; 0 means
// all of them, a negative number none. It is dropped at the test's end, also when
// connections are left. roles.Database is not used: each test's database has a name of
// its own. Roles other than [database.Ingest] and [database.Auditview] are made, with
// [Password]. It is safe for concurrent use.
func New(tb testing.TB, roles database.Roles, fsys fs.FS, to int64) Database {
	tb.Helper()
	adminDSN := Server(tb)
	ctx := context.Background()
	template, err := templateName(roles, fsys, to)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	err = withAdmin(ctx, adminDSN, func(admin *pgx.Conn) error {
		return ensureTemplate(ctx, admin, adminDSN, template, roles, fsys, to)
	})
	if err != nil {
		tb.Fatalf("pgtest: make the template: %v", err)
	}
	name := "test_" + strings.ToLower(rand.Text()[:16])
	err = withAdmin(ctx, adminDSN, func(admin *pgx.Conn) error { return clone(ctx, admin, name, template, roles) })
	if err != nil {
		tb.Fatalf("pgtest: clone the template: %v", err)
	}
	tb.Cleanup(func() {
		err := withAdmin(ctx, adminDSN, func(admin *pgx.Conn) error {
			_, err := admin.Exec(ctx, `drop database if exists `+quote(name)+` with (force)`)
			return err
		})
		if err != nil {
			tb.Logf("pgtest: drop the database: %v", err)
		}
	})
	as := func(role string) string {
		dsn, err := database.DSN(adminDSN, role, Password(role), name)
		if err != nil {
			tb.Fatalf("pgtest: %v", err)
		}
		return dsn
	}
	result := Database{Name: name, OwnerDSN: as(roles.Owner), ServiceDSN: as(roles.Service), ReaderDSN: as(roles.Reader)}
	result.AdminDSN, err = On(adminDSN, name)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return result
}

// On returns dsn with another database.
func On(dsn, name string) (string, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", database.ErrMalformedDSN
	}
	return database.DSN(dsn, cfg.User, cfg.Password, name)
}

func withAdmin(ctx context.Context, dsn string, fn func(admin *pgx.Conn) error) error {
	admin, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close(ctx) }()
	return fn(admin)
}

// templateName names what the template's content depends on.
func templateName(roles database.Roles, fsys fs.FS, to int64) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s %s %d\n", roles.Owner, roles.Service, roles.Reader, to)
	var files []string
	var err error
	if fsys != nil {
		files, err = fs.Glob(fsys, "*.sql")
	}
	if err != nil {
		return "", err
	}
	for _, file := range files {
		content, err := fs.ReadFile(fsys, file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", file, len(content), content)
	}
	return "template_" + hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

// ready has the templates that this program has seen complete.
var ready sync.Map

// ensureTemplate makes the template unless it is there. The flag that marks a template
// is set last, so that what a killed run left behind is made anew.
func ensureTemplate(ctx context.Context, admin *pgx.Conn, adminDSN, name string, roles database.Roles, fsys fs.FS, to int64) error {
	if _, ok := ready.Load(name); ok {
		return nil
	}
	// Released with the connection.
	if _, err := admin.Exec(ctx, `select pg_advisory_lock($1)`, templateLock); err != nil {
		return err
	}
	var complete bool
	err := admin.QueryRow(ctx, `select exists (select from pg_database where datname = $1 and datistemplate)`, name).Scan(&complete)
	if err != nil {
		return err
	}
	if !complete {
		if err := makeTemplate(ctx, admin, adminDSN, name, roles, fsys, to); err != nil {
			return err
		}
	}
	ready.Store(name, true)
	return nil
}

func makeTemplate(ctx context.Context, admin *pgx.Conn, adminDSN, name string, roles database.Roles, fsys fs.FS, to int64) error {
	if _, err := admin.Exec(ctx, `drop database if exists `+quote(name)+` with (force)`); err != nil {
		return err
	}
	roles.Database = name
	if err := database.Bootstrap(ctx, adminDSN, roles, passwordsOf(roles)); err != nil {
		return err
	}
	if to >= 0 {
		dsn, err := database.DSN(adminDSN, roles.Owner, Password(roles.Owner), name)
		if err != nil {
			return err
		}
		if _, err := migration.Up(ctx, dsn, fsys, to); err != nil {
			return err
		}
	}
	_, err := admin.Exec(ctx, `alter database `+quote(name)+` with is_template true allow_connections false`)
	return err
}

// clone copies the template's files. What is in it comes along; who may connect is a
// property of the database itself and does not.
func clone(ctx context.Context, admin *pgx.Conn, name, template string, roles database.Roles) error {
	for _, statement := range []string{
		`create database ` + quote(name) + ` owner ` + quote(roles.Owner) + ` template ` + quote(template) + ` strategy file_copy`,
		`revoke all on database ` + quote(name) + ` from public`,
		`grant connect on database ` + quote(name) + ` to ` + quote(roles.Service) + `, ` + quote(roles.Reader),
	} {
		if _, err := admin.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func quote(identifier string) string { return pgx.Identifier{identifier}.Sanitize() }
