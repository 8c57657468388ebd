package archive

import (
	"time"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// State describes enrolment. It says nothing about whether the members'
// authorizations still hold, nor whether all visible history was uploaded.
type State string

// The states of an archive.
const (
	Enrolling State = "enrolling"
	Ready     State = "ready"
)

// The two shapes of membership, by creation schema.
const (
	// CommonBinding (v1): all members share the header's client and route.
	CommonBinding = 1
	// MemberBindings (v2): each member has a client and route of its own.
	MemberBindings = 2
)

// Archive is one complete visible conversation: its header and members.
type Archive struct {
	ConversationID       identity.UUID
	ClientArchiveID      identity.UUID
	ClientConversationID string
	CreatorSessionID     identity.UUID
	// Binding is the writer's client and route: common to all members in v1.
	Binding           identity.Binding
	MembershipVersion int
	// RequestHash is the SHA-256 of the frozen creation input.
	RequestHash [32]byte
	Members     []Member // by session id

	State          State
	ConfirmedCount int
	LastSequence   int // the highest stored sequence; counts all kinds
	MessageCount   int
	TurnCount      int
	LastTurnStatus TurnStatus
	// CurrentTurnID is the running turn, or "".
	CurrentTurnID string
	TextBytes     int64 // stored visible text, UTF-8
	// StreamVersion counts the committed changes of this archive: 1, 2, 3 …
	StreamVersion int64
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// Member is a session frozen into an archive.
type Member struct {
	SessionID identity.UUID
	// Label is display text, "" when none was given; it is no identity evidence.
	Label string
	// Binding is what the member is held to. In v1 it equals the archive's.
	Binding identity.Binding
	// ClientName is a display snapshot taken at creation (v2 only).
	ClientName string
	// Confirmation is nil until the member has confirmed.
	Confirmation *Confirmation
}

// Confirmation is the identity frozen when a member confirms.
type Confirmation struct {
	Principal  identity.Principal
	OnBehalfOf string
	Snapshot   identity.Snapshot
	At         time.Time
}

// Display returns what a reader sees for the member: its label, else its session id.
func (m Member) Display() string {
	if m.Label != "" {
		return m.Label
	}
	return string(m.SessionID)
}

// ErrNotFound is an archive that does not exist for the caller, whatever the reason:
// the answer does not let anybody enumerate membership.
var ErrNotFound = refusal.New(refusal.NotFound, "no such archive is available to this session")

var errNotReady = refusal.New(refusal.NotReady, "some members have not confirmed")

// Member returns the member with the session, or nil.
func (a *Archive) Member(session identity.UUID) *Member {
	for i := range a.Members {
		if a.Members[i].SessionID == session {
			return &a.Members[i]
		}
	}
	return nil
}

// Group is what a member check needs about every member of an archive, keyed by
// session, as stored now and locked until the caller commits.
type Group map[identity.UUID]identity.Facts

// checkMember makes the member check for m, with its snapshot if it has confirmed.
func (g Group) checkMember(m Member, now time.Time) error {
	var frozen *identity.Snapshot
	if m.Confirmation != nil {
		frozen = &m.Confirmation.Snapshot
	}
	return identity.Check(m.Binding, g[m.SessionID], frozen, now)
}

func (g Group) checkAll(members []Member, now time.Time) error {
	for _, m := range members {
		if err := g.checkMember(m, now); err != nil {
			return err
		}
	}
	return nil
}

// freeze confirms m with its session's present identity.
func (m *Member) freeze(s identity.Session, now time.Time) error {
	snapshot, err := s.Snapshot()
	if err != nil {
		return err
	}
	m.Confirmation = &Confirmation{Principal: s.Principal, OnBehalfOf: s.OnBehalfOf, Snapshot: snapshot, At: now}
	return nil
}
