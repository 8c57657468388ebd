package pgembed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// stopPatience is how long a fast shutdown may take before an immediate one,
// which is a crash that the next start recovers from.
const stopPatience = 20 * time.Second

// portAttempts bounds the races for a free port: it is free when it is chosen,
// and may be taken when the server binds it.
const portAttempts = 5

// Config says what to run.
type Config struct {
	// Dir belongs to the server and is locked by the caller. It is made when absent.
	Dir string
	// Password of the superuser. It must be stored before the first Start and stay the same.
	Password string
	// Account is whom to run the server as: see ServerAccount.
	Account *Account
	// Installation is which programs to run: see Choose.
	Installation Installation
	// Settings are further "name=value" settings, the last one winning.
	Settings []string
	// Log gets the server's own messages, which name no statement and no value.
	Log *slog.Logger
}

// Server is a running PostgreSQL. It is safe for concurrent use.
type Server struct {
	port     int
	password string
	cmd      *exec.Cmd
	output   *output
	done     chan struct{}
	err      error // set before done is closed
	stopping chan struct{}
	stopOnce sync.Once
}

// settings of every server. Messages below LOG are the clients' errors, which
// name statements and values: clients get them, the log never does.
var settings = []string{
	"listen_addresses=127.0.0.1",
	"unix_socket_directories=",
	"max_connections=200",
	"shared_buffers=256MB",
	"max_wal_size=2GB",
	"jit=off",
	"fsync=on",
	"full_page_writes=on",
	"synchronous_commit=on",
	"timezone=UTC",
	"log_timezone=UTC",
	"lc_messages=C",
	"logging_collector=off",
	"log_destination=stderr",
	"log_line_prefix=",
	"log_min_messages=log",
	"log_min_error_statement=panic",
	"log_error_verbosity=terse",
	"log_statement=none",
}

// Choose returns the installation for the cluster in dir: the one that made it,
// or the newest for a new one.
func Choose(ctx context.Context, dir string) (Installation, error) {
	major, err := Major(dir)
	if err != nil {
		return Installation{}, err
	}
	return choose(Installations(ctx), dir, major)
}

func choose(installed []Installation, dir string, major int) (Installation, error) {
	if len(installed) == 0 {
		return Installation{}, ErrNoBinaries
	}
	if newest := installed[0]; major == 0 {
		if newest.Major < MinMajor {
			return Installation{}, fmt.Errorf("PostgreSQL %d or later is needed and the newest installed one is %d: install a newer one or name a server with --postgres", MinMajor, newest.Major)
		}
		return newest, nil
	}
	for _, i := range installed {
		if i.Major == major {
			return i, nil
		}
	}
	return Installation{}, fmt.Errorf("the database in %s was made by PostgreSQL %d, which is not installed (the newest installed one is %d): install that version or use another --data-dir", dir, major, installed[0].Major)
}

// Start starts the server, making its cluster on the first start, and returns
// when it accepts connections. When ctx ends before that, nothing is left
// running and nothing half made is left that a later start would use.
func Start(ctx context.Context, c Config) (*Server, error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}
	major, err := Major(c.Dir)
	if err != nil {
		return nil, err
	}
	if major == 0 {
		if err := c.initialise(ctx); err != nil {
			return nil, err
		}
	} else if err := c.clearOrphan(ctx); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		port, err := freePort(ctx)
		if err != nil {
			return nil, err
		}
		s, err := c.launch(ctx, port)
		if errors.Is(err, errPortTaken) && attempt < portAttempts {
			continue
		}
		return s, err
	}
}

func (c Config) prepare() error {
	if err := os.Mkdir(c.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return c.Account.own(c.Dir)
}

var errPortTaken = errors.New("PostgreSQL found its port taken")

func (c Config) launch(ctx context.Context, port int) (*Server, error) {
	args := []string{"-D", c.pgdata(), "-p", strconv.Itoa(port)}
	for _, setting := range append(append([]string(nil), settings...), c.Settings...) {
		args = append(args, "-c", setting)
	}
	out, pipe, err := newOutput(context.WithoutCancel(ctx), c.Log)
	if err != nil {
		return nil, err
	}
	// Not tied to ctx, which ends the start but not a server that has started.
	cmd := c.command(context.WithoutCancel(ctx), "postgres", syscall.SIGQUIT, args...)
	cmd.Stdout, cmd.Stderr = pipe, pipe
	ended, err := start(cmd)
	_ = pipe.Close()
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL could not be started: %w", err)
	}
	s := &Server{port: port, password: c.Password, cmd: cmd, output: out, done: make(chan struct{}), stopping: make(chan struct{})}
	go s.watch(ended)
	select {
	case <-out.ready:
		return s, nil
	case <-s.done:
		if out.portTaken() {
			return nil, errPortTaken
		}
		return nil, fmt.Errorf("PostgreSQL could not start: %s", out.reason())
	case <-ctx.Done():
		s.signal(syscall.SIGQUIT)
		<-s.done
		return nil, ctx.Err()
	}
}

func (s *Server) watch(ended <-chan error) {
	err := <-ended
	s.output.drain()
	select {
	case <-s.stopping:
		if err != nil {
			s.err = fmt.Errorf("PostgreSQL did not shut down cleanly: %w", err)
		}
	default:
		s.err = fmt.Errorf("PostgreSQL ended unexpectedly (%s)", state(err))
	}
	close(s.done)
}

// DSN returns the superuser's connection string for a database of this server. It holds a password.
func (s *Server) DSN(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Done is closed when the server has ended, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says in one sentence why the server ended; nil while it runs and after Stop.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop cuts the clients off, waits until everything is on disk and the server
// has ended, and reports an unclean end. It may be called more than once.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		select {
		case <-s.done:
			return
		default:
		}
		close(s.stopping)
		s.output.stopping.Store(true)
		s.signal(syscall.SIGINT)
	})
	select {
	case <-s.done:
		return s.err
	case <-time.After(stopPatience):
	}
	s.signal(syscall.SIGQUIT)
	<-s.done
	return fmt.Errorf("PostgreSQL did not shut down within %s and was stopped at once; it recovers at the next start", stopPatience)
}

// PID is the server's process number.
func (s *Server) PID() int { return s.cmd.Process.Pid }

func (s *Server) signal(signal syscall.Signal) {
	_ = s.cmd.Process.Signal(signal) // fails only when it has ended, which is what it is for
}

func state(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port for PostgreSQL: %w", err)
	}
	_, text, err := net.SplitHostPort(l.Addr().String())
	if err = errors.Join(err, l.Close()); err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}
