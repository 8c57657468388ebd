package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const probeTimeout = 3 * time.Second

// ErrAddress is an address that is not host:port.
var ErrAddress = errors.New("the address is not host:port")

// Probe asks /readyz of a service of this machine that listens on addr, host:port, as
// a container's health check does. It returns nil when the service is ready within 3 s,
// else one sentence.
func Probe(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ErrAddress
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", http.NoBody)
	if err != nil {
		return ErrAddress
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("the service does not answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the service is not ready: /readyz answers %d", resp.StatusCode)
	}
	return nil
}
