package app

import (
	"context"
	"slices"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

var (
	errUnavailable  = refusal.New(refusal.Unavailable, "the archive's tables are not there; apply migration 057")
	errCrossBinding = refusal.New(refusal.CrossBindingUnavailable, "member bindings are not available; apply migration 058")
)

// Archives are the use cases of agents. Safe for concurrent use.
type Archives struct {
	uow    UnitOfWork
	recall Recall
	schema Schema
	clock  Clock
	ids    IDs
}

// NewArchives returns the use cases over their ports.
func NewArchives(uow UnitOfWork, recall Recall, schema Schema, clock Clock, ids IDs) *Archives {
	return &Archives{uow: uow, recall: recall, schema: schema, clock: clock, ids: ids}
}

// Create creates an archive, or answers a repeated creation with the stored
// header (contract: "v1 creation and member confirmation", "Explicit v2
// creation"). Concurrent identical creations give one archive and equal
// answers. Errors are refusals (NotFound, AuthorizationInvalid, Conflict,
// Unavailable, CrossBindingUnavailable) or failures of the store.
func (s *Archives) Create(ctx context.Context, bearer identity.Bearer, c archive.Creation) (*archive.Archive, error) {
	caps, err := s.available(ctx)
	if err != nil {
		return nil, err
	}
	if c.MembershipVersion() == archive.MemberBindings && !caps.MemberBindings {
		return nil, errCrossBinding
	}
	var answer *archive.Archive
	err = s.uow.Do(ctx, func(ctx context.Context, tx Tx) error {
		now := s.clock.Now()
		asked, err := c.New(s.ids.NewUUID(), bearer, now)
		if err != nil {
			return err
		}
		stored, group, err := tx.LoadCreation(ctx, asked)
		if err != nil {
			return err
		}
		if stored != nil {
			answer = stored
			return stored.Recreate(asked, group, now)
		}
		answer = asked
		if err := asked.Enrol(group, now); err != nil {
			return err
		}
		return tx.InsertArchive(asked)
	})
	return answer, err
}

// Confirm confirms the bearer's own membership and returns the header
// (contract: "v1 creation and member confirmation"). Repeating it changes
// nothing. Errors are refusals (NotFound, AuthorizationInvalid, Unavailable) or
// failures of the store.
func (s *Archives) Confirm(ctx context.Context, bearer identity.Bearer, id identity.UUID) (*archive.Archive, error) {
	if _, err := s.available(ctx); err != nil {
		return nil, err
	}
	var answer *archive.Archive
	err := s.uow.Do(ctx, func(ctx context.Context, tx Tx) error {
		a, group, err := tx.LoadArchive(ctx, id)
		if err != nil {
			return err
		}
		if a == nil {
			return archive.ErrNotFound
		}
		answer = a
		changed, err := a.Confirm(bearer.SessionID, group, s.clock.Now())
		if err != nil || !changed {
			return err
		}
		return tx.UpdateConfirmation(a, bearer.SessionID)
	})
	return answer, err
}

// Append stores a batch of visible events, all or nothing, and returns the
// archive's last sequence after it (contract: "Append visible events"). A batch
// that repeats stored events exactly is acknowledged again. Errors are refusals
// (NotFound, NotReady, AuthorizationInvalid, Conflict, Limit, Unavailable) or
// failures of the store; after a failure the caller repeats the batch unchanged.
func (s *Archives) Append(ctx context.Context, bearer identity.Bearer, id identity.UUID, batch []archive.Event) (lastSequence int, err error) {
	if _, err := s.available(ctx); err != nil {
		return 0, err
	}
	err = s.uow.Do(ctx, func(ctx context.Context, tx Tx) error {
		a, group, history, err := tx.LoadAppend(ctx, id, batch)
		if err != nil {
			return err
		}
		if a == nil {
			return archive.ErrNotFound
		}
		now := s.clock.Now()
		if err := a.MayAppend(bearer.SessionID, group, now); err != nil {
			return err
		}
		fresh, err := a.Append(batch, history, now)
		if refusal.CodeOf(err) == refusal.Limit {
			// Event by event, a used id before the event that is too much comes first.
			if history.EventIDs, err = tx.LoadEventIDs(ctx, id, batch); err == nil {
				fresh, err = a.Append(batch, history, now)
			}
		}
		if err != nil {
			return err
		}
		lastSequence = a.LastSequence
		if len(fresh) == 0 {
			return nil
		}
		return tx.InsertEvents(a, fresh)
	})
	return lastSequence, err
}

// AppendRecalled is Append for whom memory is enough: the bearer is recalled, not
// authenticated, and so is the archive. It reports false, having stored nothing, whenever
// there is anything to ask, to refuse or to repeat: then the bearer is to be authenticated
// and Append decides. With true the batch is durable, as if it had. The error is a
// failure of the store, after which the caller repeats the batch unchanged.
func (s *Archives) AppendRecalled(ctx context.Context, bearer RecalledBearer, id identity.UUID, batch []archive.Event) (lastSequence int, done bool, err error) {
	r, ok := s.recall.Recall(id)
	if !ok || slices.ContainsFunc(batch, func(e archive.Event) bool { return e.Kind == archive.RunLink }) {
		return 0, false, nil
	}
	now := s.clock.Now()
	if r.Archive.MayAppend(bearer.SessionID, r.Group, now) == nil {
		fresh, refused := r.Archive.Append(batch, archive.History{}, now)
		if refused == nil && len(fresh) == len(batch) {
			done, err = s.recall.AppendRecalled(ctx, r, bearer.TokenHash, fresh)
		}
	}
	if refusal.CodeOf(err) != "" {
		err = nil // Append finds it again, and tells it
	}
	return r.Archive.LastSequence, done, err
}

// Capabilities answers the probe (contract: "Probe capability first"). It fails
// when the database cannot be asked: a failed probe is no proof of anything.
func (s *Archives) Capabilities(ctx context.Context) (Capabilities, error) {
	return s.schema.Capabilities(ctx)
}

func (s *Archives) available(ctx context.Context) (Capabilities, error) {
	caps, err := s.schema.Capabilities(ctx)
	if err == nil && !caps.Archive {
		err = errUnavailable
	}
	return caps, err
}
