package app

import (
	"context"
	"time"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
)

// Clock tells the server's time: the only one that counts.
type Clock interface {
	// Now returns the time in UTC, in whole microseconds, as the database keeps it.
	Now() time.Time
}

// IDs draws identifiers.
type IDs interface {
	// NewUUID returns a fresh random (version 4) UUID.
	NewUUID() identity.UUID
}

// Sessions finds who a bearer is.
type Sessions interface {
	// ByToken returns whose access token has the SHA-256. It reports false when
	// the token is unknown or expired at now, the session is revoked or its
	// client is disabled. Safe for concurrent use.
	ByToken(ctx context.Context, hash [32]byte, now time.Time) (identity.Bearer, bool, error)
}

// Capabilities are what the archive's tables offer right now.
type Capabilities struct {
	// Archive is true when migration 057 is there: archives can be written.
	Archive bool
	// MemberBindings is true when every column of migration 058 is there.
	MemberBindings bool
	// Epoch is true when migration 063 is there: what authorizes has a number that changes with it.
	Epoch bool
}

// Schema reports the capabilities of the service's own database, live.
type Schema interface {
	// Capabilities fails when the database cannot be asked; it notices an
	// applied migration within seconds.
	Capabilities(ctx context.Context) (Capabilities, error)
}

// Recollection is an archive as this process left it when it last appended to it, and the
// facts about its members as they were then. Both may be out of date.
type Recollection struct {
	// Archive is the caller's to move; its members are not.
	Archive *archive.Archive
	Group   archive.Group
	// Of is the store's own.
	Of any
}

// Recall is what the store remembers, so that an append needs to read nothing. Safe for
// concurrent use.
type Recall interface {
	// Recall returns what is remembered of an archive; false when that is nothing.
	Recall(id identity.UUID) (Recollection, bool)
	// AppendRecalled stores new events, none of them a run link, with the moved header of
	// r.Archive and their outbox message, if all that was recalled still holds under the locks
	// of what authorizes, and an access token with the SHA-256 is good at r.Archive.UpdatedAt.
	// It reports false, having stored nothing, if not. Errors are a refusal of the store
	// (Conflict: an event id or a turn is used already) or its failure. Stored events are
	// durable, and the relay is woken.
	AppendRecalled(ctx context.Context, r Recollection, token [32]byte, events []archive.Event) (bool, error)
}

// UnitOfWork runs one transaction.
type UnitOfWork interface {
	// Do calls fn with a transaction and commits when fn returns nil; an error
	// of fn rolls back and is returned. fn runs again, from its beginning, after
	// a deadlock or serialization failure, so it must not keep state between
	// calls. Do must not be nested. After a nil return the writes are durable
	// and the relay is woken.
	Do(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
}

// Tx is one transaction. Loads take the locks of everything that authorizes the
// write (clients, then routes, by key, then the archive) and hold them until
// the end; writes are queued and sent with the commit. Not for concurrent use.
type Tx interface {
	// LoadCreation returns the archive that is stored under asked's key, nil
	// when there is none, and the facts about asked's members. Creations of the
	// same key wait for each other here.
	LoadCreation(ctx context.Context, asked *archive.Archive) (stored *archive.Archive, group archive.Group, err error)
	// LoadArchive returns an archive with the facts about its members; nil when
	// there is none.
	LoadArchive(ctx context.Context, id identity.UUID) (*archive.Archive, archive.Group, error)
	// LoadAppend is LoadArchive with what a batch needs of the history, but for
	// EventIDs: a used event id is found when the events are inserted, and then
	// the commit is refused with Conflict.
	LoadAppend(ctx context.Context, id identity.UUID, batch []archive.Event) (*archive.Archive, archive.Group, archive.History, error)
	// LoadEventIDs returns the sequences of those event ids of the batch that are stored.
	LoadEventIDs(ctx context.Context, id identity.UUID, batch []archive.Event) (map[string]int, error)

	// InsertArchive queues a new archive and its outbox message.
	InsertArchive(a *archive.Archive) error
	// UpdateConfirmation queues the confirmation of one member and its outbox message.
	UpdateConfirmation(a *archive.Archive, member identity.UUID) error
	// InsertEvents queues new events, the moved header and their outbox message.
	InsertEvents(a *archive.Archive, events []archive.Event) error
}
