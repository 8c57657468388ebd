package app

import (
	"context"
	"slices"
	"time"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// PermissionRegistryWrite lets a controller read and change the registry. No other
// permission grants anything.
const PermissionRegistryWrite = "registry:write"

// Controller is a program that asks at the control API.
type Controller struct {
	Name        string
	Permissions []string

	token []byte // SHA-256
}

// May reports whether the controller has a permission.
func (c Controller) May(permission string) bool { return slices.Contains(c.Permissions, permission) }

// StoredClient is a client as it is stored, without its token.
type StoredClient struct {
	identity.Client
	AuthorizeURL         string
	CreatedAt, UpdatedAt time.Time
}

// StoredRoute is a route as it is stored.
type StoredRoute struct {
	RegistryRoute
	CreatedAt, UpdatedAt time.Time
}

// StoredSession is a session as it is stored, without its tokens.
type StoredSession struct {
	identity.Session
	DeviceLabel          string
	CreatedAt, UpdatedAt time.Time
}

// RegistryReader reads the registry. Unknown entries are refused with RegistryNotFound;
// a database without the tables of the registry over HTTP with RegistryUnavailable. Safe
// for concurrent use.
type RegistryReader interface {
	// Controller returns whose token has the SHA-256; false when it is nobody's.
	Controller(ctx context.Context, hash []byte) (Controller, bool, error)

	Client(ctx context.Context, appID string) (StoredClient, error)
	Route(ctx context.Context, routeKey string) (StoredRoute, error)
	Session(ctx context.Context, id identity.UUID) (StoredSession, error)

	// The lists return at most limit entries whose keys come after after, in key order.
	Clients(ctx context.Context, after string, limit int) ([]StoredClient, error)
	Routes(ctx context.Context, after string, limit int) ([]StoredRoute, error)
	// Sessions are those of one client, or of all when clientAppID is empty.
	Sessions(ctx context.Context, clientAppID, after string, limit int) ([]StoredSession, error)
}

// Control are the use cases of the registry over HTTP. Each change is one transaction,
// recorded with the controller that asked. Safe for concurrent use.
type Control struct {
	store  RegistryStore
	reader RegistryReader
	clock  Clock
}

// NewControl returns the use cases over their ports.
func NewControl(store RegistryStore, reader RegistryReader, clock Clock) *Control {
	return &Control{store, reader, clock}
}

// Authenticate returns the controller of a token; only the token's SHA-256 leaves this
// function. Errors are ErrUnauthorized, ErrForbidden for one that may not change the
// registry, RegistryUnavailable or a failure of the store.
func (c *Control) Authenticate(ctx context.Context, token string) (Controller, error) {
	if !IsToken(token, ControllerTokenPrefix) {
		return Controller{}, ErrUnauthorized
	}
	hash := HashToken(token)
	found, ok, err := c.reader.Controller(ctx, hash)
	switch {
	case err != nil:
		return Controller{}, err
	case !ok:
		return Controller{}, ErrUnauthorized
	case !found.May(PermissionRegistryWrite):
		return Controller{}, ErrForbidden
	}
	found.token = hash
	return found, nil
}

func (c *Control) change(ctx context.Context, by Controller, fn func(tx RegistryTx) error) (RegistryResult, error) {
	return c.store.Change(ctx, Occasion{
		By: Actor{Kind: registryv1.ActorController, Name: by.Name}, Token: by.token, Now: c.clock.Now(), NewToken: newToken,
	}, fn)
}

// Outcome is what became of one entry that was put.
type Outcome[T any] struct {
	Entry   T
	Created bool
	Token   string // generated, to be shown once; "" when there is none
}

// outcome reads an entry in the transaction that changes it.
func outcome[T any](ctx context.Context, c *Control, by Controller, change func(tx RegistryTx) error, read func(tx RegistryTx) (T, error)) (Outcome[T], error) {
	var out Outcome[T]
	result, err := c.change(ctx, by, func(tx RegistryTx) error {
		err := change(tx)
		if err == nil {
			out.Entry, err = read(tx)
		}
		return err
	})
	if err != nil {
		return Outcome[T]{}, err
	}
	out.Created = slices.ContainsFunc(result.Changes, func(c Change) bool { return c.Action == Created })
	if len(result.Tokens) > 0 {
		out.Token = result.Tokens[0].Value
	}
	return out, nil
}

// Client returns one client.
func (c *Control) Client(ctx context.Context, appID string) (StoredClient, error) {
	return c.reader.Client(ctx, appID)
}

// Clients returns at most limit clients in key order, those after a key.
func (c *Control) Clients(ctx context.Context, after string, limit int) ([]StoredClient, error) {
	return c.reader.Clients(ctx, after, limit)
}

// PutClient creates a client or brings it to what is wanted, as a registry file does. A
// token is generated when none is given and none is stored.
func (c *Control) PutClient(ctx context.Context, by Controller, wanted RegistryClient) (Outcome[StoredClient], error) {
	return outcome(ctx, c, by,
		func(tx RegistryTx) error { return tx.Apply(Registry{Clients: []RegistryClient{wanted}}) },
		func(tx RegistryTx) (StoredClient, error) { return tx.Client(wanted.AppID) })
}

// DisableClient takes a client out of use: its sessions and its runs with it. Repeating
// it changes nothing.
func (c *Control) DisableClient(ctx context.Context, by Controller, appID string) (StoredClient, error) {
	out, err := outcome(ctx, c, by,
		func(tx RegistryTx) error { return tx.DisableClient(appID) },
		func(tx RegistryTx) (StoredClient, error) { return tx.Client(appID) })
	return out.Entry, err
}

// RotateClientToken replaces a client's token and returns the new one, to be shown once.
func (c *Control) RotateClientToken(ctx context.Context, by Controller, appID string) (string, error) {
	out, err := outcome(ctx, c, by,
		func(tx RegistryTx) error { return tx.RotateClientToken(appID) },
		func(RegistryTx) (struct{}, error) { return struct{}{}, nil })
	return out.Token, err
}

// Route returns one route.
func (c *Control) Route(ctx context.Context, routeKey string) (StoredRoute, error) {
	return c.reader.Route(ctx, routeKey)
}

// Routes returns at most limit routes in key order, those after a key.
func (c *Control) Routes(ctx context.Context, after string, limit int) ([]StoredRoute, error) {
	return c.reader.Routes(ctx, after, limit)
}

// PutRoute creates a route or brings it to what is wanted, as a registry file does.
func (c *Control) PutRoute(ctx context.Context, by Controller, wanted RegistryRoute) (Outcome[StoredRoute], error) {
	return outcome(ctx, c, by,
		func(tx RegistryTx) error { return tx.Apply(Registry{Routes: []RegistryRoute{wanted}}) },
		func(tx RegistryTx) (StoredRoute, error) { return tx.Route(wanted.RouteKey) })
}

// DisableRoute takes a route out of use. Repeating it changes nothing.
func (c *Control) DisableRoute(ctx context.Context, by Controller, routeKey string) (StoredRoute, error) {
	out, err := outcome(ctx, c, by,
		func(tx RegistryTx) error { return tx.DisableRoute(routeKey) },
		func(tx RegistryTx) (StoredRoute, error) { return tx.Route(routeKey) })
	return out.Entry, err
}

// Session returns one session.
func (c *Control) Session(ctx context.Context, id identity.UUID) (StoredSession, error) {
	return c.reader.Session(ctx, id)
}

// Sessions returns at most limit sessions in key order, those after a key: of one client,
// or of all when clientAppID is empty.
func (c *Control) Sessions(ctx context.Context, clientAppID, after string, limit int) ([]StoredSession, error) {
	return c.reader.Sessions(ctx, clientAppID, after, limit)
}

// errSessionThere is an issue under an id that is taken: its token cannot be shown again.
var errSessionThere = refusal.New(refusal.RegistryConflict, "there is a session with this session_id")

// IssueSession creates a session with a generated access token, to be shown once.
func (c *Control) IssueSession(ctx context.Context, by Controller, wanted RegistrySession) (Outcome[StoredSession], error) {
	return outcome(ctx, c, by,
		func(tx RegistryTx) error {
			switch _, err := tx.Session(wanted.ID); {
			case err == nil:
				return errSessionThere
			case refusal.CodeOf(err) != refusal.RegistryNotFound:
				return err
			}
			return tx.Apply(Registry{Sessions: []RegistrySession{wanted}})
		},
		func(tx RegistryTx) (StoredSession, error) { return tx.Session(wanted.ID) })
}

// RevokeSession ends a session for good. Repeating it changes nothing.
func (c *Control) RevokeSession(ctx context.Context, by Controller, id identity.UUID) (StoredSession, error) {
	out, err := outcome(ctx, c, by,
		func(tx RegistryTx) error { return tx.RevokeSession(id) },
		func(tx RegistryTx) (StoredSession, error) { return tx.Session(id) })
	return out.Entry, err
}

// ImportRuns stores runs that were made elsewhere: all of them or none. It returns how
// many were new, and how many were stored with the same facts.
func (c *Control) ImportRuns(ctx context.Context, by Controller, runs []identity.Run) (created, unchanged int, err error) {
	result, err := c.change(ctx, by, func(tx RegistryTx) error { return tx.Apply(Registry{Runs: runs}) })
	for _, change := range result.Changes {
		if change.Action == Created {
			created++
		} else {
			unchanged++
		}
	}
	return created, unchanged, err
}
