package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Config says where a server listens and what it allows a client. Start from
// [Defaults]; zero in a limit means net/http's meaning, which is mostly "none".
type Config struct {
	// Name is the service's name in errors and log lines.
	Name string
	// Addr is host:port. Port 0 takes a free one.
	Addr string
	// ReadHeaderTimeout bounds the reading of a request's header.
	ReadHeaderTimeout time.Duration
	// ReadTimeout bounds the reading of a whole request, header and body.
	ReadTimeout time.Duration
	// WriteTimeout bounds the time from the end of the header to the end of the answer.
	WriteTimeout time.Duration
	// IdleTimeout ends a connection that waits for its next request.
	IdleTimeout time.Duration
	// MaxHeaderBytes bounds the header's size in bytes. Zero means 1 MiB.
	MaxHeaderBytes int
	// DrainTimeout bounds Shutdown. Zero means that only its context does.
	DrainTimeout time.Duration
	// TLSCertFile and TLSKeyFile are PEM files. Both empty means plain HTTP.
	TLSCertFile, TLSKeyFile string
}

// Defaults returns the limits that suit an API with bodies of a few MiB: 5 s for a
// header of at most 32 KiB, 30 s for a request, 60 s for an answer, 2 min idle, 30 s
// of drain.
func Defaults() Config {
	return Config{
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		DrainTimeout:      30 * time.Second,
	}
}

// Server is one bound listener. Its methods are safe for concurrent use.
type Server struct {
	cfg      Config
	log      *slog.Logger
	http     *http.Server
	listener net.Listener
	serve    sync.Once
	failed   chan error
}

// Listen binds at once and answers nothing before [Server.Serve]. The error for an
// address that is taken, not permitted or not of this machine is one sentence for an
// operator; it wraps the system's error.
func Listen(cfg Config, h http.Handler, log *slog.Logger) (*Server, error) {
	tlsConfig, err := loadTLS(cfg)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("%s cannot listen on %s: %w", cfg.Name, cfg.Addr, &listenError{err})
	}
	server := &Server{
		cfg:      cfg,
		log:      log,
		listener: listener,
		failed:   make(chan error, 1),
		http: &http.Server{
			Handler:           h,
			TLSConfig:         tlsConfig,
			ReadHeaderTimeout: cfg.ReadHeaderTimeout,
			ReadTimeout:       cfg.ReadTimeout,
			WriteTimeout:      cfg.WriteTimeout,
			IdleTimeout:       cfg.IdleTimeout,
			MaxHeaderBytes:    cfg.MaxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
	return server, nil
}

func loadTLS(cfg Config) (*tls.Config, error) {
	if cfg.TLSCertFile == "" && cfg.TLSKeyFile == "" {
		return nil, nil // no certificate means plain HTTP, as net/http has it
	}
	cert, err := tls.LoadX509KeyPair(cfg.TLSCertFile, cfg.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("%s cannot use its TLS certificate: %w", cfg.Name, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// listenError words the system's reasons that an operator meets.
type listenError struct{ err error }

func (e *listenError) Error() string {
	switch {
	case errors.Is(e.err, syscall.EADDRINUSE):
		return "the address is already in use"
	case errors.Is(e.err, syscall.EACCES):
		return "the port needs a privilege that this process does not have"
	case errors.Is(e.err, syscall.EADDRNOTAVAIL):
		return "the address does not belong to this machine"
	}
	var op *net.OpError
	if errors.As(e.err, &op) {
		return op.Err.Error()
	}
	return e.err.Error()
}

func (e *listenError) Unwrap() error { return e.err }

// Serve answers requests, in goroutines of its own, until [Server.Shutdown]. A second
// call does nothing.
func (s *Server) Serve() {
	s.serve.Do(func() {
		go func() {
			var err error
			if s.cfg.TLSCertFile != "" {
				err = s.http.ServeTLS(s.listener, "", "")
			} else {
				err = s.http.Serve(s.listener)
			}
			if !errors.Is(err, http.ErrServerClosed) {
				s.log.Error("the listener failed", slog.String("listener", s.cfg.Name), slog.Any("error", err))
				s.failed <- fmt.Errorf("%s stopped listening: %w", s.cfg.Name, err)
			}
			close(s.failed)
		}()
	})
}

// Failed gives the error when the listener fails by itself, and is closed when it ends.
func (s *Server) Failed() <-chan error { return s.failed }

// Addr returns the bound host:port, with the port that was found for port 0.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns the bound address as a URL without a path. An unspecified host (0.0.0.0,
// ::) becomes the loopback address, where the server can be reached from this machine.
func (s *Server) URL() string {
	scheme := "http"
	if s.cfg.TLSCertFile != "" {
		scheme = "https"
	}
	addr := s.Addr()
	if tcp, ok := s.listener.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host := "127.0.0.1"
		if configured, _, err := net.SplitHostPort(s.cfg.Addr); err == nil && net.ParseIP(configured).To4() == nil && configured != "" {
			host = "::1"
		}
		addr = net.JoinHostPort(host, fmt.Sprint(tcp.Port))
	}
	return scheme + "://" + addr
}

// Shutdown refuses new connections at once and waits until each request in flight has
// its answer, for at most Config.DrainTimeout and as long as ctx lasts. After that it
// cuts the connections that are left, which cancels their requests' contexts, and
// returns an error. Shutdown before Serve only releases the address; further calls are
// harmless.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.cfg.DrainTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.DrainTimeout)
		defer cancel()
	}
	// Without Serve, net/http does not know the listener and would leave it open.
	s.serve.Do(func() {
		_ = s.listener.Close()
		close(s.failed)
	})
	if err := s.http.Shutdown(ctx); err != nil {
		// Close's own error is about listeners that Shutdown has closed.
		_ = s.http.Close()
		return fmt.Errorf("%s: requests were cut off at the end of the drain: %w", s.cfg.Name, err)
	}
	return nil
}
