package postgres

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

const (
	// recalledArchives and recalledMembers bound what is kept: archives, and members of one.
	recalledArchives, recalledMembers = 4096, 16
)

// recollection is an archive as this process has left it, with what it relied on: the
// members' facts, read under the locks, and the epoch of that moment.
type recollection struct {
	archive archive.Archive // its members are shared, and never changed
	group   archive.Group
	locks   []int64 // of its clients and routes, in the order in which they are taken
	epoch   epoch
}

// epoch is what facts that were read under their locks hold for: no change of anything
// that authorizes, on the same server. Numbers of another server mean nothing.
type epoch struct {
	number  int64
	started time.Time
}

// memory is what a unit of work remembers. Safe for concurrent use.
type memory struct {
	archives *lru.Cache[identity.UUID, *recollection]
}

func newMemory() *memory {
	archives, _ := lru.New[identity.UUID, *recollection](recalledArchives) // fails for no size only
	return &memory{archives}
}

// keep remembers what has been committed.
func (m *memory) keep(r *recollection) {
	if r != nil && r.epoch.number > 0 && r.archive.StreamVersion > 0 && len(r.archive.Members) <= recalledMembers {
		m.archives.Add(r.archive.ConversationID, r)
	}
}

// Recall implements [app.Recall].
func (u *UnitOfWork) Recall(id identity.UUID) (app.Recollection, bool) {
	r, ok := u.memory.archives.Get(id)
	if !ok {
		return app.Recollection{}, false
	}
	a := r.archive
	return app.Recollection{Archive: &a, Group: r.group, Of: r}, true
}

// AppendRecalled implements [app.Recall]: the locks, the writes and the commit are one
// round trip.
func (u *UnitOfWork) AppendRecalled(ctx context.Context, of app.Recollection, token [32]byte, events []archive.Event) (bool, error) {
	r, ok := of.Of.(*recollection)
	if !ok {
		return false, nil
	}
	done := false
	err := u.transact(ctx, func(_ context.Context, tx *transaction) error {
		tx.begun = true
		tx.writes.Queue("begin")
		tx.writes.Queue(lockRecalled, r.locks)
		args, err := tx.eventArgs(of.Archive, events)
		if err != nil {
			return err
		}
		args = append(args, r.archive.UpdatedAt, token[:], r.epoch.number, r.epoch.started)
		tx.writes.Queue(insertRecalled, args...).Exec(func(tag pgconn.CommandTag) error {
			if done = tag.RowsAffected() == 1; done {
				tx.recalled = &recollection{archive: *of.Archive, group: r.group, locks: r.locks, epoch: r.epoch}
			} else {
				tx.partitions = nil
			}
			return nil
		})
		return nil
	})
	if err != nil || !done {
		u.memory.archives.Remove(of.Archive.ConversationID)
	}
	return done && err == nil, err
}

// queueEpoch reads the epoch, where it exists, after the locks are taken.
func (t *transaction) queueEpoch(b *pgx.Batch, r *recollection) {
	if t.epochs {
		b.Queue(readEpoch).QueryRow(func(row pgx.Row) error { return row.Scan(&r.epoch.number, &r.epoch.started) })
	}
}
