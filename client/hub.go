package client

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

const (
	defaultUserAgent = "verbatim-client/1"
	attemptTimeout   = time.Minute
	shortestPause    = 250 * time.Millisecond
	longestPause     = 30 * time.Second
)

// Hub is the address of a hub and how to talk to it. Safe for concurrent use.
type Hub struct {
	base      string
	client    *http.Client
	userAgent string
	pauses    backoff
}

// HubOption changes how a Hub talks.
type HubOption func(*Hub)

// WithHTTPClient sets the HTTP client, for a proxy or authorities of one's own. It is
// copied; redirects are never followed, so that no bearer goes elsewhere.
func WithHTTPClient(c *http.Client) HubOption {
	return func(h *Hub) {
		own := *c
		h.client = &own
	}
}

// WithUserAgent sets what the requests say who sends them.
func WithUserAgent(agent string) HubOption { return func(h *Hub) { h.userAgent = agent } }

// WithBackoff bounds the pauses between attempts; the default is 250 ms to 30 s. Each
// failure doubles the pause, half of it is random. What the hub asks for in Retry-After
// comes first.
func WithBackoff(shortest, longest time.Duration) HubOption {
	return func(h *Hub) { h.pauses = backoff{shortest, longest} }
}

// NewHub returns the hub at a base URL, such as https://hub.example.com. Plain http is
// refused with ErrInvalid except for loopback addresses: bearers go over the line.
func NewHub(baseURL string, options ...HubOption) (*Hub, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, invalid("the hub's address is no URL")
	}
	switch {
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, invalid("the hub's address is scheme, host and perhaps a path, nothing else")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return nil, invalid("the hub's address must be https, or http on a loopback address")
	}
	h := &Hub{
		base:      strings.TrimRight(u.String(), "/"),
		client:    &http.Client{},
		userAgent: defaultUserAgent,
		pauses:    backoff{shortestPause, longestPause},
	}
	for _, option := range options {
		option(h)
	}
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return h, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
