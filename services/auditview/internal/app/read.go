package app

import (
	"context"
	"time"
)

// Bounds of pages. A limit of zero means the default.
const (
	DefaultArchives = 50
	MaxArchives     = 100
	DefaultEvents   = 100
	MaxEvents       = 200
	// MaxPageText is the text of a page of events, in bytes of UTF-8. A page has at least
	// one event, however long.
	MaxPageText = 4 << 20
)

// Archive is the header of an archive.
type Archive struct {
	ConversationID       string
	ClientArchiveID      string
	ClientConversationID string
	ClientAppID          string
	RouteKey             string
	State                string
	MemberCount          int
	ConfirmedCount       int
	LastSequence         int
	MessageCount         int
	TurnCount            int
	LastTurnStatus       *string // nil before the first turn
	CreatedAt            time.Time
	UpdatedAt            time.Time
}

// Member is a member of an archive.
type Member struct {
	SessionID    string
	DisplayLabel string
	// ClientAppID, RouteKey and ClientName are nil where no binding of a member was recorded.
	ClientAppID *string
	RouteKey    *string
	ClientName  *string
	// ConfirmedAt, Principal (JSON, byte for byte) and OnBehalfOf are nil until it confirmed.
	ConfirmedAt *time.Time
	Principal   *string
	OnBehalfOf  *string
}

// Event is an entry of an archive. What its kind does not have is nil.
type Event struct {
	EventID         string
	Sequence        int
	ClientTurnID    string
	Kind            string
	Content         *string
	Status          *string
	RunID           *string
	MemberSessionID *string
	ThreadID        *int64
	CreatedAt       time.Time
}

// ArchivePage is a page of archives, newest first.
type ArchivePage struct {
	Archives []Archive
	HasMore  bool
	// NextOffset is where the next page begins, when HasMore.
	NextOffset int64
}

// DetailPage is an archive with a page of its events, all as of one moment.
type DetailPage struct {
	Archive Archive
	Members []Member // by session id
	Events  []Event  // by sequence, without a gap
	HasMore bool
	// NextAfterSequence is the last returned sequence, or the one asked after.
	NextAfterSequence int64
}

// ReadStore is the read model as administrators see it. What does not exist is
// ErrArchiveNotFound, ErrThreadNotFound or ErrRunNotFound; a store that is away or not
// migrated is ErrUnavailable. Safe for concurrent use.
type ReadStore interface {
	RunStore
	RegistryStore
	ExecutionStore
	// Archives returns at most limit archives after the first offset ones.
	Archives(ctx context.Context, limit int, offset int64) ([]Archive, error)
	// Detail reads header, members and at most limit events after a sequence in one
	// snapshot. It ends before an event, but never before the first, with which the
	// contents would exceed maxText bytes.
	Detail(ctx context.Context, conversationID string, after int64, limit, maxText int) (Archive, []Member, []Event, error)
}

// Reader answers administrators. Safe for concurrent use.
type Reader struct{ store ReadStore }

// NewReader returns a reader.
func NewReader(store ReadStore) *Reader { return &Reader{store} }

// Archives returns a page of archives: newest updated_at first, then by conversation id,
// descending.
func (r *Reader) Archives(ctx context.Context, limit, offset int64) (ArchivePage, error) {
	n := clamp(limit, DefaultArchives, MaxArchives)
	archives, err := r.store.Archives(ctx, n+1, offset)
	if err != nil {
		return ArchivePage{}, err
	}
	page := ArchivePage{Archives: archives}
	if len(archives) > n {
		page.Archives, page.HasMore = archives[:n], true
		page.NextOffset = offset + int64(n)
	}
	return page, nil
}

// Detail returns an archive and a page of its events after a sequence.
func (r *Reader) Detail(ctx context.Context, conversationID string, after, limit int64) (DetailPage, error) {
	n := clamp(limit, DefaultEvents, MaxEvents)
	archive, members, events, err := r.store.Detail(ctx, conversationID, after, n, MaxPageText)
	if err != nil {
		return DetailPage{}, err
	}
	page := DetailPage{Archive: archive, Members: members, Events: events, NextAfterSequence: after}
	if len(events) > 0 {
		last := events[len(events)-1].Sequence
		page.NextAfterSequence, page.HasMore = int64(last), last < archive.LastSequence
	}
	return page, nil
}

func clamp(limit int64, standard, most int) int {
	switch {
	case limit <= 0:
		return standard
	case limit > int64(most):
		return most
	default:
		return int(limit)
	}
}
