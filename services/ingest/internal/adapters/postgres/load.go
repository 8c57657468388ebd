package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
)

// LoadCreation implements [app.Tx].
func (t *transaction) LoadCreation(ctx context.Context, asked *archive.Archive) (*archive.Archive, archive.Group, error) {
	members := asked.Members
	if asked.MembershipVersion == archive.CommonBinding {
		members = []archive.Member{*asked.Member(asked.CreatorSessionID)} // the others need not exist yet
	}
	kinds, keys := lockKeys(members)
	sessions, clients, routes := make([]string, len(members)), make([]string, len(members)), make([]string, len(members))
	for i, m := range members {
		sessions[i], clients[i], routes[i] = string(m.SessionID), m.Binding.ClientAppID, m.Binding.RouteKey
	}
	var stored *archive.Archive
	group := make(archive.Group, len(members))
	err := t.read(ctx, func(b *pgx.Batch) {
		b.Queue(lockBindings, kinds, keys)
		b.Queue(lockCreation, string(asked.CreatorSessionID)+"/"+asked.Binding.RouteKey+"/"+string(asked.ClientArchiveID))
		b.Queue(factsByBinding, sessions, clients, routes).Query(func(rows pgx.Rows) error {
			return scanFacts(rows, members, group)
		})
		key := []any{asked.CreatorSessionID, asked.Binding.RouteKey, asked.ClientArchiveID}
		b.Queue(t.sql.archiveByKey, key...).Query(func(rows pgx.Rows) error { return scanArchive(rows, &stored) })
		b.Queue(t.sql.membersByKey, key...).Query(func(rows pgx.Rows) error {
			return scanMembers(rows, stored, make(archive.Group))
		})
	})
	return stored, group, err
}

// lockKeys returns the distinct clients, then the distinct routes, each by key.
func lockKeys(members []archive.Member) (kinds, keys []string) {
	bindings := make([]identity.Binding, len(members))
	for i, m := range members {
		bindings[i] = m.Binding
	}
	add := func(kind string, key func(identity.Binding) string) {
		slices.SortFunc(bindings, func(a, b identity.Binding) int { return cmp.Compare(key(a), key(b)) })
		last := ""
		for _, b := range bindings {
			if k := key(b); k != last {
				kinds, keys, last = append(kinds, kind), append(keys, k), k
			}
		}
	}
	add("client", func(b identity.Binding) string { return b.ClientAppID })
	add("route", func(b identity.Binding) string { return b.RouteKey })
	return kinds, keys
}

// LoadArchive implements [app.Tx].
func (t *transaction) LoadArchive(ctx context.Context, id identity.UUID) (*archive.Archive, archive.Group, error) {
	var a *archive.Archive
	group := make(archive.Group)
	err := t.read(ctx, func(b *pgx.Batch) { t.queueArchive(b, id, &a, group, nil) })
	return a, group, err
}

// queueArchive locks and reads an archive. locks, unless nil, gets the keys of what was locked.
func (t *transaction) queueArchive(b *pgx.Batch, id identity.UUID, a **archive.Archive, group archive.Group, locks *[]int64) {
	b.Queue(t.sql.lockArchiveBindings, id).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var lock int64
			if err := rows.Scan(nil, &lock); err != nil {
				return fmt.Errorf("read a lock: %w", err)
			}
			if locks != nil {
				*locks = append(*locks, lock)
			}
		}
		return rows.Err()
	})
	b.Queue(t.sql.archiveByID, id).Query(func(rows pgx.Rows) error { return scanArchive(rows, a) })
	b.Queue(t.sql.members, id).Query(func(rows pgx.Rows) error { return scanMembers(rows, *a, group) })
}

// LoadAppend implements [app.Tx].
func (t *transaction) LoadAppend(ctx context.Context, id identity.UUID, batch []archive.Event) (*archive.Archive, archive.Group, archive.History, error) {
	var a *archive.Archive
	group := make(archive.Group)
	var h archive.History
	low, high := batch[0].Sequence, batch[0].Sequence
	var turns, runs []string
	for _, e := range batch {
		low, high = min(low, e.Sequence), max(high, e.Sequence)
		if e.Kind == archive.RunLink {
			runs = append(runs, string(e.RunID))
		}
		// Other kinds belong to the running turn, which the header names.
		if (e.Kind == archive.RunLink || e.Kind == archive.TurnStart) && !slices.Contains(turns, e.ClientTurnID) {
			turns = append(turns, e.ClientTurnID)
		}
	}
	// A refused batch may name any sequences; what is read stays bounded.
	high = min(high, low+archive.MaxBatchEvents-1)
	recalled := &recollection{group: group}
	err := t.read(ctx, func(b *pgx.Batch) {
		t.queueArchive(b, id, &a, group, &recalled.locks)
		t.queueEpoch(b, recalled)
		b.Queue(storedEvents, id, low, high).Query(func(rows pgx.Rows) error { return scanEvents(rows, &h) })
		if len(turns) > 0 {
			b.Queue(startedTurns, id, turns).Query(func(rows pgx.Rows) error { return scanTurns(rows, &h) })
		}
		if len(runs) > 0 {
			b.Queue(linkedRuns, runs).Query(func(rows pgx.Rows) error { return scanRuns(rows, &h) })
		}
	})
	t.recalled = recalled
	return a, group, h, err
}

// LoadEventIDs implements [app.Tx].
func (t *transaction) LoadEventIDs(ctx context.Context, id identity.UUID, batch []archive.Event) (map[string]int, error) {
	ids := make([]string, len(batch))
	for i, e := range batch {
		ids[i] = e.EventID
	}
	used := make(map[string]int)
	err := t.read(ctx, func(b *pgx.Batch) {
		b.Queue(usedEventIDs, id, ids).Query(func(rows pgx.Rows) error { return scanEventIDs(rows, used) })
	})
	return used, err
}
