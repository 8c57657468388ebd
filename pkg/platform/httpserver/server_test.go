package httpserver_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/httpserver"
)

func config() httpserver.Config {
	cfg := httpserver.Defaults()
	cfg.Name, cfg.Addr = "ingest", "127.0.0.1:0"
	return cfg
}

func serve(t *testing.T, cfg httpserver.Config, h http.Handler) *httpserver.Server {
	t.Helper()
	server, err := httpserver.Listen(cfg, h, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	server.Serve()
	t.Cleanup(func() { _ = server.Shutdown(context.Background()) })
	return server
}

func get(t *testing.T, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return client.Do(req)
}

func dial(t *testing.T, server *httpserver.Server) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	return conn
}

func TestListenNamesATakenAddress(t *testing.T) {
	t.Parallel()
	server := serve(t, config(), http.NotFoundHandler())
	cfg := config()
	cfg.Addr = server.Addr()
	_, err := httpserver.Listen(cfg, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	require.EqualError(t, err, "ingest cannot listen on "+server.Addr()+": the address is already in use")
	require.ErrorIs(t, err, syscall.EADDRINUSE)

	cfg.Addr = "203.0.113.1:0"
	_, err = httpserver.Listen(cfg, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	require.EqualError(t, err, "ingest cannot listen on 203.0.113.1:0: the address does not belong to this machine")

	cfg.Addr = "nonsense"
	_, err = httpserver.Listen(cfg, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "ingest cannot listen on nonsense: ")
}

func TestURLIsReachable(t *testing.T) {
	t.Parallel()
	for addr, prefix := range map[string]string{"127.0.0.1:0": "http://127.0.0.1:", "0.0.0.0:0": "http://127.0.0.1:", ":0": "http://127.0.0.1:", "localhost:0": "http://"} {
		cfg := config()
		cfg.Addr = addr
		server := serve(t, cfg, http.NotFoundHandler())
		require.True(t, strings.HasPrefix(server.URL(), prefix), server.URL())
		resp, err := get(t, server.URL())
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
}

func TestShutdownLetsARequestInFlightFinish(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	server := serve(t, config(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		if r.Context().Err() == nil {
			_, _ = io.WriteString(w, "answered")
		}
	}))
	type result struct {
		body string
		err  error
	}
	results := make(chan result, 1)
	go func() {
		resp, err := get(t, server.URL())
		if err != nil {
			results <- result{err: err}
			return
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		results <- result{string(body), err}
	}()
	<-entered
	done := make(chan error, 1)
	go func() { done <- server.Shutdown(t.Context()) }()
	require.Eventually(t, func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Addr())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 5*time.Second, time.Millisecond, "new connections were still taken")
	select {
	case err := <-done:
		t.Fatalf("Shutdown did not wait: %v", err)
	default:
	}
	close(release)
	require.Equal(t, result{body: "answered"}, <-results)
	require.NoError(t, <-done)
	require.NoError(t, server.Shutdown(t.Context()))
	_, open := <-server.Failed()
	require.False(t, open)
}

func TestShutdownCutsWhatOutlastsTheDrain(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.DrainTimeout = 20 * time.Millisecond
	entered, left := make(chan struct{}), make(chan struct{})
	server := serve(t, cfg, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(left)
	}))
	failed := make(chan error, 1)
	go func() {
		resp, err := get(t, server.URL())
		if err == nil {
			_ = resp.Body.Close()
		}
		failed <- err
	}()
	<-entered
	require.ErrorContains(t, server.Shutdown(t.Context()), "ingest: requests were cut off")
	<-left
	require.Error(t, <-failed)
}

func TestShutdownBeforeServeReleasesTheAddress(t *testing.T) {
	t.Parallel()
	cfg := config()
	server, err := httpserver.Listen(cfg, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, server.Shutdown(t.Context()))
	server.Serve() // too late, and harmless
	cfg.Addr = server.Addr()
	serve(t, cfg, http.NotFoundHandler())
}

func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.ReadHeaderTimeout = 30 * time.Millisecond
	server := serve(t, cfg, http.NotFoundHandler())
	conn := dial(t, server)
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow")
	require.NoError(t, err)
	_, err = io.ReadAll(conn) // ends when the server closes the connection
	require.NoError(t, err)

	resp, err := get(t, server.URL())
	require.NoError(t, err, "others were hurt")
	require.NoError(t, resp.Body.Close())
}

func TestSlowBodiesAreCutOff(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.ReadTimeout = 50 * time.Millisecond
	failed := make(chan error, 1)
	server := serve(t, cfg, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
	}))
	conn := dial(t, server)
	_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
	require.NoError(t, err)
	require.ErrorIs(t, <-failed, os.ErrDeadlineExceeded)
}

func TestHugeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	server := serve(t, config(), http.NotFoundHandler())
	conn := dial(t, server)
	go func() {
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Huge: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	cfg := config()
	cfg.TLSCertFile, cfg.TLSKeyFile = write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER)
	server := serve(t, cfg, http.NotFoundHandler())
	require.True(t, strings.HasPrefix(server.URL(), "https://127.0.0.1:"))

	pool := x509.NewCertPool()
	pool.AddCert(cert)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL(), nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	cfg.TLSKeyFile = ""
	_, err = httpserver.Listen(cfg, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "ingest cannot use its TLS certificate")
}
