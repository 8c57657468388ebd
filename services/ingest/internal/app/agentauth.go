package app

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

const (
	// keptAfter is how long after its end something of Agent Auth is kept.
	keptAfter = 24 * time.Hour
	// removedAtOnce bounds what one request removes of what is older.
	removedAtOnce = 100
	// addressBits is the part of an IPv6 address that belongs to one who asks.
	addressBits = 64
)

var errAsked = refusal.New(refusal.RateLimited, "the client was asked for too often from this address; ask again later")

// RateLimitError is a caller that asks too often. It wraps a refusal with code RateLimited.
type RateLimitError struct {
	After time.Duration // until it may ask again, above 0
}

func (*RateLimitError) Error() string { return errAsked.Error() }

// Unwrap returns the refusal.
func (*RateLimitError) Unwrap() error { return errAsked }

// AgentAuth are the use cases of Agent Auth v1. Safe for concurrent use.
type AgentAuth struct {
	store  AuthorizationStore
	reader AuthorizationReader
	clock  Clock
	ids    IDs
}

// NewAgentAuth returns the use cases over their ports.
func NewAgentAuth(store AuthorizationStore, reader AuthorizationReader, clock Clock, ids IDs) *AgentAuth {
	return &AgentAuth{store: store, reader: reader, clock: clock, ids: ids}
}

// OpenedAuthorization is an authorization that waits for its decision.
type OpenedAuthorization struct {
	ID        identity.UUID
	URL       string // the client's page for it
	ExpiresIn time.Duration
}

// Ask opens an authorization, for an agent at the address. A client is asked at most
// [authorization.MaxAsked] times within a minute from one address (an IPv6 address by
// its /64), over all replicas; what was refused does not count. Errors are refusals
// (InvalidClient, RateLimited as a *RateLimitError, AgentAuthUnavailable) or failures of
// the store. An answer that was lost leaves an authorization that expires.
func (s *AgentAuth) Ask(ctx context.Context, r authorization.Request, address netip.Addr) (OpenedAuthorization, error) {
	var opened OpenedAuthorization
	from := networkOf(address)
	err := s.store.Do(ctx, func(ctx context.Context, tx AuthorizationTx) error {
		client, err := tx.Client(ctx, r.ClientAppID)
		if err != nil {
			return err
		}
		page := ""
		if client != nil {
			page = client.AuthorizeURL
		}
		if err := r.Admit(client.identity(), page != ""); err != nil {
			return err
		}
		asked, err := tx.LastAsked(ctx, r.ClientAppID, from, authorization.MaxAsked)
		if err != nil {
			return err
		}
		now := s.clock.Now()
		if wait := authorization.RetryAfter(asked, now); wait > 0 {
			return &RateLimitError{After: wait}
		}
		a := r.Open(s.ids.NewUUID(), now)
		opened = OpenedAuthorization{
			ID: a.ID, URL: authorization.WithQuery(page, "authorization_id", string(a.ID)), ExpiresIn: a.ExpiresAt.Sub(now),
		}
		if err := tx.InsertAuthorization(ctx, a, from); err != nil {
			return err
		}
		return tx.RemoveAuthorizations(ctx, r.ClientAppID, now.Add(-keptAfter), removedAtOnce)
	})
	return opened, err
}

// identity returns the client's facts, nil for nil.
func (c *AgentClient) identity() *identity.Client {
	if c == nil {
		return nil
	}
	return &c.Client
}

// networkOf returns whom an address belongs to. Addresses that cannot be told share one.
func networkOf(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	if !address.IsValid() {
		address = netip.IPv6Unspecified()
	}
	bits := address.BitLen()
	if address.Is6() {
		bits = addressBits
	}
	return netip.PrefixFrom(address, bits).Masked()
}

// ShownAuthorization is an authorization as its client sees it.
type ShownAuthorization struct {
	authorization.Authorization
	ClientName string
	Status     authorization.Status // now
}

// Authorization returns an authorization to its client. Errors are refusals
// (AuthorizationNotFound, also for another client's; AgentAuthUnavailable) or failures of
// the store.
func (s *AgentAuth) Authorization(ctx context.Context, clientAppID string, id identity.UUID) (ShownAuthorization, error) {
	a, name, err := s.reader.Authorization(ctx, id)
	if err != nil {
		return ShownAuthorization{}, err
	}
	if a == nil || a.ClientAppID != clientAppID {
		return ShownAuthorization{}, authorization.ErrNotFound
	}
	return ShownAuthorization{Authorization: *a, ClientName: name, Status: a.Status(s.clock.Now())}, nil
}

// Approve grants what g says and returns where the person's browser takes the code to.
// It works once: an answer that was lost cannot be had again, and the agent asks anew.
// Errors are ErrUnauthorized for a client that is disabled by now, refusals
// (AuthorizationNotFound, AuthorizationDecided, AuthorizationExpired, RouteNotAllowed,
// AgentAuthUnavailable) or failures of the store.
func (s *AgentAuth) Approve(ctx context.Context, clientAppID string, id identity.UUID, g authorization.Grant) (redirect string, err error) {
	code := newToken(CodePrefix)
	err = s.decide(ctx, clientAppID, id, func(a *authorization.Authorization, client identity.Client) error {
		redirect = a.CodeRedirect(code)
		return a.Approve(client, g, sha256.Sum256([]byte(code)), s.clock.Now())
	})
	return redirect, err
}

// Deny refuses the request for good and returns where the person's browser takes that
// to. Errors are those of Approve, but for RouteNotAllowed.
func (s *AgentAuth) Deny(ctx context.Context, clientAppID string, id identity.UUID) (redirect string, err error) {
	err = s.decide(ctx, clientAppID, id, func(a *authorization.Authorization, _ identity.Client) error {
		redirect = a.DeniedRedirect()
		return a.Deny(s.clock.Now())
	})
	return redirect, err
}

func (s *AgentAuth) decide(ctx context.Context, clientAppID string, id identity.UUID,
	decision func(a *authorization.Authorization, client identity.Client) error,
) error {
	return s.store.Do(ctx, func(ctx context.Context, tx AuthorizationTx) error {
		client, err := tx.Client(ctx, clientAppID)
		if err != nil {
			return err
		}
		if client == nil || !client.Enabled {
			return ErrUnauthorized
		}
		a, err := tx.Authorization(ctx, id)
		if err != nil {
			return err
		}
		if a == nil || a.ClientAppID != clientAppID {
			return authorization.ErrNotFound
		}
		if err := decision(a, client.Client); err != nil {
			return err
		}
		return tx.UpdateAuthorization(ctx, a)
	})
}
