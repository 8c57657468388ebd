package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"verbatim.internal/cmd/verbatim/internal/datadir"
	"verbatim.internal/cmd/verbatim/internal/pgembed"
	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

const (
	// superuser is the embedded server's, and its key among the passwords.
	superuser = "postgres"

	readyWithin = 30 * time.Second
	readyPoll   = 5 * time.Millisecond
)

func secret(s string) config.Secret { return config.Secret(s) }

// checkAddresses finds a taken port before anything is started. It may be taken
// all the same when the service binds it, which then says so itself.
func (s *Stack) checkAddresses(ctx context.Context) error {
	for _, a := range []struct{ name, addr string }{
		{"ingest", s.config.IngestAddr},
		{"auditview", s.config.AuditviewAddr},
		{"ingest's control API", s.config.ControlAddr},
		{"ingest's metrics", s.config.IngestMetricsAddr},
		{"auditview's metrics", s.config.AuditviewMetricsAddr},
	} {
		if a.addr == "" {
			continue
		}
		var listen net.ListenConfig
		l, err := listen.Listen(ctx, "tcp", a.addr)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s cannot listen on %s: the address is already in use", a.name, a.addr)
		}
		if err != nil {
			return fmt.Errorf("%s cannot listen on %s: %w", a.name, a.addr, err)
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// openDataDir takes the data directory. With a server of somebody else's there
// is no account that has to reach it.
func (s *Stack) openDataDir(context.Context) error {
	var account datadir.Account
	path := s.config.DataDir
	if s.config.Postgres == "" {
		server, err := pgembed.ServerAccount()
		if err != nil {
			return err
		}
		account = server
		if path == "" {
			if path, err = datadir.Default(s.config.WorkingDir, server); err != nil {
				return err
			}
		}
	}
	if path == "" {
		path = datadir.Candidates(s.config.WorkingDir)[0]
	}
	dir, err := datadir.Open(path, account)
	if err != nil {
		return err
	}
	s.dir = dir
	s.later("the data directory", func(context.Context) error { return dir.Close() })
	return nil
}

// startPostgres starts the embedded server, unless another one is named.
func (s *Stack) startPostgres(ctx context.Context) error {
	if s.config.Postgres != "" {
		return nil
	}
	installation, err := pgembed.Choose(ctx, s.dir.ServerDir())
	if err != nil {
		return err
	}
	account, err := pgembed.ServerAccount()
	if err != nil {
		return err
	}
	passwords, err := s.dir.Passwords(superuser)
	if err != nil {
		return err
	}
	server, err := pgembed.Start(ctx, pgembed.Config{
		Dir: s.dir.ServerDir(), Password: passwords[superuser], Account: account, Installation: installation, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.server = server
	s.later("PostgreSQL", func(context.Context) error { return server.Stop() })
	s.log.Info("postgresql is running", slog.Int("major", installation.Major), slog.String("data_dir", s.dir.Path()), slog.Int("pid", server.PID()))
	return nil
}

// prepareDatabases makes roles and databases and migrates both as their owners.
func (s *Stack) prepareDatabases(ctx context.Context) error {
	admin := s.config.Postgres.Reveal()
	if s.server != nil {
		admin = s.server.DSN(superuser)
	}
	var names []string
	for _, r := range []database.Roles{database.Ingest, database.Auditview} {
		names = append(names, r.Owner, r.Service, r.Reader)
	}
	passwords, err := s.dir.Passwords(names...)
	if err != nil {
		return err
	}
	derive := func(user, db string) string {
		dsn, derr := database.DSN(admin, user, passwords[user], db)
		err = errors.Join(err, derr)
		return dsn
	}
	s.connections = datadir.Connections{
		Ingest:         derive(database.Ingest.Service, database.Ingest.Database),
		IngestOwner:    derive(database.Ingest.Owner, database.Ingest.Database),
		Auditview:      derive(database.Auditview.Service, database.Auditview.Database),
		AuditviewOwner: derive(database.Auditview.Owner, database.Auditview.Database),
	}
	if err != nil {
		return errNoDSN
	}
	for _, r := range []database.Roles{database.Ingest, database.Auditview} {
		if err := database.Bootstrap(ctx, admin, r, passwords); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		name, dsn string
		up        func(context.Context, config.Secret, int64) ([]migration.Applied, error)
	}{{"ingest", s.connections.IngestOwner, ingest.MigrateUp}, {"auditview", s.connections.AuditviewOwner, auditview.MigrateUp}} {
		applied, err := m.up(ctx, secret(m.dsn), 0)
		if err != nil {
			return fmt.Errorf("%s's database could not be migrated: %w", m.name, err)
		}
		for _, a := range applied {
			s.log.Info("migration applied", slog.String("database", m.name), slog.String("name", a.Name))
		}
	}
	return nil
}

// applyFiles applies the registry and the administrators, each in one transaction.
func (s *Stack) applyFiles(ctx context.Context) error {
	if s.config.Registry != nil {
		result, err := s.ApplyRegistry(ctx, s.config.Registry)
		if err != nil {
			return fmt.Errorf("--registry: %w", err)
		}
		if err := s.config.Applied(&result, nil); err != nil {
			return err
		}
	}
	if s.config.Admins != nil {
		result, err := s.ApplyAdmins(ctx, s.config.Admins)
		if err != nil {
			return fmt.Errorf("--admins: %w", err)
		}
		return s.config.Applied(nil, &result)
	}
	return nil
}

// environ is a service's configuration: the operator's variables, but for those
// that say which database, address and transport to use.
func (s *Stack) environ(prefix, dsn, addr, metrics string) map[string]string {
	environ := maps.Clone(s.config.Environ)
	maps.DeleteFunc(environ, func(name, _ string) bool {
		key, ours := strings.CutPrefix(name, prefix)
		return ours && (strings.Contains(key, "DSN") || strings.HasPrefix(key, "RELAY_") && key != "RELAY_CHECK_INTERVAL" || strings.HasPrefix(key, "INTERNAL_"))
	})
	environ[prefix+"DSN"] = dsn
	environ[prefix+"ADDR"] = addr
	environ[prefix+"METRICS_ADDR"] = metrics
	environ[prefix+"LOG_LEVEL"] = s.config.LogLevel.String()
	return environ
}

// awaitReady asks a service until it says that it is ready.
func (s *Stack) awaitReady(ctx context.Context, name, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // through no proxy
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
		if err != nil {
			return err
		}
		if response, err := direct.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready within %s", name, readyWithin)
		case <-tick.C:
		}
	}
}
