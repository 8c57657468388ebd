package app

import (
	"context"
	"time"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/domain/run"
)

// errRoute is deliberately one answer: it does not tell whether the route exists.
var errRoute = refusal.New(refusal.RouteNotAllowed, "there is no such route for this session")

// Runs are the use cases of agents that open runs. Safe for concurrent use.
type Runs struct {
	store RunStore
	clock Clock
	ids   IDs
}

// NewRuns returns the use cases over their ports.
func NewRuns(store RunStore, clock Clock, ids IDs) *Runs {
	return &Runs{store: store, clock: clock, ids: ids}
}

// Workspaces returns the routes that the bearer may use right now, by key. Errors are
// ErrUnauthorized, a refusal (RunsUnavailable) or a failure of the store.
func (s *Runs) Workspaces(ctx context.Context, bearer identity.Bearer) ([]run.Workspace, error) {
	return s.usable(ctx, bearer, "")
}

// Bootstrap returns what agents of one route are told. Errors are ErrUnauthorized, refusals
// (RouteNotAllowed, RunsUnavailable) or failures of the store.
func (s *Runs) Bootstrap(ctx context.Context, bearer identity.Bearer, routeKey string) (run.Workspace, error) {
	if !identity.IsRouteKey(routeKey) {
		return run.Workspace{}, errRoute
	}
	usable, err := s.usable(ctx, bearer, routeKey)
	if err == nil && len(usable) == 0 {
		err = errRoute
	}
	if err != nil {
		return run.Workspace{}, err
	}
	return usable[0], nil
}

func (s *Runs) usable(ctx context.Context, bearer identity.Bearer, routeKey string) ([]run.Workspace, error) {
	caller, offered, err := s.store.Offered(ctx, bearer, routeKey)
	if err != nil {
		return nil, err
	}
	if !holds(bearer, caller) {
		return nil, ErrUnauthorized
	}
	now := s.clock.Now()
	usable := make([]run.Workspace, 0, len(offered))
	for _, o := range offered {
		facts := identity.Facts{Session: caller.Session, Client: caller.Client, Route: &o.Route}
		if mayUse(bearer, facts, o.Route.RouteKey, now) {
			usable = append(usable, o.Workspace)
		}
	}
	return usable, nil
}

// Opened is a run that a turn opened, now or before.
type Opened struct {
	Run          identity.Run
	Instructions string // the route's, as of the first answer
}

// OpenTurn opens the run of a turn, or returns the run that the same turn opened before.
// The key of a turn is (session, route, client conversation, client turn); concurrent
// identical turns give one run. Authorization is checked every time, under locks that hold
// until the commit. Errors are ErrUnauthorized, refusals (RouteNotAllowed, TurnConflict,
// RunsUnavailable) or failures of the store; after a failure the caller repeats the turn
// unchanged.
func (s *Runs) OpenTurn(ctx context.Context, bearer identity.Bearer, routeKey string, turn run.Turn) (Opened, error) {
	if !identity.IsRouteKey(routeKey) {
		return Opened{}, errRoute
	}
	var opened Opened
	err := s.store.Do(ctx, func(ctx context.Context, tx RunTx) error {
		loaded, err := tx.LoadTurn(ctx, bearer, routeKey, turn)
		if err != nil {
			return err
		}
		now := s.clock.Now()
		if !holds(bearer, loaded.Facts) {
			return ErrUnauthorized
		}
		if !mayUse(bearer, loaded.Facts, routeKey, now) {
			return errRoute
		}
		if stored := loaded.Stored; stored != nil {
			opened = stored.Opened
			if stored.InputHash != turn.InputHash {
				return run.ErrTurn
			}
			return nil
		}
		thread := loaded.ThreadID
		if thread == 0 {
			if thread, err = tx.NewThread(ctx, bearer.SessionID, routeKey, turn.ClientConversationID, now); err != nil {
				return err
			}
		}
		opened = Opened{Instructions: loaded.Instructions, Run: identity.Run{
			RunID: s.ids.NewUUID(), SessionID: bearer.SessionID,
			Binding: identity.Binding{ClientAppID: bearer.ClientAppID, RouteKey: routeKey}, ThreadID: thread,
			ClientConversationID: turn.ClientConversationID, ClientTurnID: turn.ClientTurnID, CreatedAt: now,
		}}
		return tx.InsertTurn(opened, turn)
	})
	return opened, err
}

// holds reports whether what authenticated the bearer is still so.
func holds(bearer identity.Bearer, f identity.Facts) bool {
	return f.Session != nil && f.Session.RevokedAt == nil && f.Session.ClientAppID == bearer.ClientAppID &&
		f.Client != nil && f.Client.Enabled
}

// mayUse makes the member check for the bearer and one route.
func mayUse(bearer identity.Bearer, f identity.Facts, routeKey string, now time.Time) bool {
	return identity.Check(identity.Binding{ClientAppID: bearer.ClientAppID, RouteKey: routeKey}, f, nil, now) == nil
}
