package archive

import (
	"cmp"
	"slices"
	"time"

	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// Creation is a valid request to create an archive: everything that it freezes.
type Creation struct {
	membershipVersion    int
	clientArchiveID      identity.UUID
	clientConversationID string
	route                string   // v1: the common route
	members              []Member // by session id; v1: without binding
}

// FieldsV1 are a v1 creation as a caller sent it.
type FieldsV1 struct {
	ClientArchiveID      string
	ClientConversationID string
	Route                string
	MemberSessionIDs     []string
	MemberLabels         map[string]string
}

// FieldsV2 are a v2 creation as a caller sent it.
type FieldsV2 struct {
	ClientArchiveID      string
	ClientConversationID string
	Members              []MemberFields
}

// MemberFields are a member of a v2 creation; a nil label is absent.
type MemberFields struct {
	SessionID   string
	ClientAppID string
	Route       string
	Label       *string
}

func invalid(message string) error { return refusal.New(refusal.InvalidRequest, message) }

var (
	errArchiveID      = invalid("client_archive_id is not a UUID")
	errConversationID = invalid("client_conversation_id is not a valid identifier")
	errRoute          = invalid("a route is not a valid resource key")
	errClient         = invalid("a client_app_id is not a valid resource key")
	errMembers        = invalid("an archive has 1 to 64 distinct members, each a session UUID")
	errLabel          = invalid("a label names no member, is repeated, blank, or longer than 128 characters")
	errWriter         = refusal.New(refusal.AuthorizationInvalid, "the writer's member names another client than its bearer")
	errFrozen         = conflict("an archive with this key was created from another input")
)

// NewCreationV1 validates a v1 creation (contract: "v1 creation and member
// confirmation"). It refuses with InvalidRequest.
func NewCreationV1(f FieldsV1) (Creation, error) {
	c := Creation{membershipVersion: CommonBinding, route: f.Route}
	if err := c.setIDs(f.ClientArchiveID, f.ClientConversationID); err != nil {
		return Creation{}, err
	}
	if !identity.IsRouteKey(f.Route) {
		return Creation{}, errRoute
	}
	for _, id := range f.MemberSessionIDs {
		session, ok := identity.ParseUUID(id)
		if !ok {
			return Creation{}, errMembers
		}
		c.members = append(c.members, Member{SessionID: session})
	}
	if err := c.sortMembers(); err != nil {
		return Creation{}, err
	}
	for key, label := range f.MemberLabels {
		session, ok := identity.ParseUUID(key)
		i := slices.IndexFunc(c.members, func(m Member) bool { return m.SessionID == session })
		if !ok || i < 0 || c.members[i].Label != "" || !IsText(label, MaxLabelUnits) {
			return Creation{}, errLabel
		}
		c.members[i].Label = label
	}
	return c, nil
}

// NewCreationV2 validates a v2 creation (contract: "Explicit v2 creation"). It
// refuses with InvalidRequest.
func NewCreationV2(f FieldsV2) (Creation, error) {
	c := Creation{membershipVersion: MemberBindings}
	if err := c.setIDs(f.ClientArchiveID, f.ClientConversationID); err != nil {
		return Creation{}, err
	}
	for _, mf := range f.Members {
		session, ok := identity.ParseUUID(mf.SessionID)
		if !ok {
			return Creation{}, errMembers
		}
		if !identity.IsResourceKey(mf.ClientAppID) {
			return Creation{}, errClient
		}
		if !identity.IsRouteKey(mf.Route) {
			return Creation{}, errRoute
		}
		m := Member{SessionID: session, Binding: identity.Binding{ClientAppID: mf.ClientAppID, RouteKey: mf.Route}}
		if mf.Label != nil {
			if m.Label = *mf.Label; !IsText(m.Label, MaxLabelUnits) {
				return Creation{}, errLabel
			}
		}
		c.members = append(c.members, m)
	}
	return c, c.sortMembers()
}

func (c *Creation) setIDs(archiveID, conversationID string) error {
	var ok bool
	if c.clientArchiveID, ok = identity.ParseUUID(archiveID); !ok {
		return errArchiveID
	}
	if !IsIdentifier(conversationID) {
		return errConversationID
	}
	c.clientConversationID = conversationID
	return nil
}

// sortMembers makes the order of members irrelevant and refuses a repeated one.
func (c *Creation) sortMembers() error {
	if len(c.members) == 0 || len(c.members) > MaxMembers {
		return errMembers
	}
	slices.SortFunc(c.members, func(a, b Member) int { return cmp.Compare(a.SessionID, b.SessionID) })
	for i := 1; i < len(c.members); i++ {
		if c.members[i].SessionID == c.members[i-1].SessionID {
			return errMembers
		}
	}
	return nil
}

// MembershipVersion is CommonBinding for v1 and MemberBindings for v2.
func (c Creation) MembershipVersion() int { return c.membershipVersion }

// New returns the archive that this creation makes for its bearer, before any
// check: nothing is confirmed. id is a fresh random UUID.
//
// A bearer that is not a member finds nothing (NotFound); a v2 writer whose
// member names another client than the bearer's is AuthorizationInvalid.
func (c Creation) New(id identity.UUID, bearer identity.Bearer, now time.Time) (*Archive, error) {
	a := &Archive{
		ConversationID: id, ClientArchiveID: c.clientArchiveID, ClientConversationID: c.clientConversationID,
		CreatorSessionID: bearer.SessionID, MembershipVersion: c.membershipVersion,
		Members: slices.Clone(c.members), State: Enrolling, CreatedAt: now, UpdatedAt: now,
	}
	writer := a.Member(bearer.SessionID)
	if writer == nil {
		return nil, ErrNotFound
	}
	if c.membershipVersion == CommonBinding {
		for i := range a.Members {
			a.Members[i].Binding = identity.Binding{ClientAppID: bearer.ClientAppID, RouteKey: c.route}
		}
	}
	if writer.Binding.ClientAppID != bearer.ClientAppID {
		return nil, errWriter
	}
	a.Binding = writer.Binding
	var err error
	a.RequestHash, err = c.hash()
	return a, err
}

// hash is the SHA-256 of the canonical frozen input. Creator and client are not
// part of it: they are part of the key, or follow from it.
func (c Creation) hash() ([32]byte, error) {
	type member struct {
		SessionID identity.UUID `json:"session_id"`
		ClientID  string        `json:"client_app_id,omitzero"`
		Route     string        `json:"route,omitzero"`
		Label     string        `json:"label,omitzero"`
	}
	members := make([]member, len(c.members))
	for i, m := range c.members {
		members[i] = member{m.SessionID, m.Binding.ClientAppID, m.Binding.RouteKey, m.Label}
	}
	return canonical.Sum(struct {
		Version        int           `json:"membership_version"`
		ArchiveID      identity.UUID `json:"client_archive_id"`
		ConversationID string        `json:"client_conversation_id"`
		Route          string        `json:"route,omitzero"`
		Members        []member      `json:"members"`
	}{c.membershipVersion, c.clientArchiveID, c.clientConversationID, c.route, members})
}

// Enrol makes the checks of a creation and confirms the creator.
//
// v1 checks the creator only (others need not exist yet); v2 checks every
// member against its own binding and takes the display names of their clients.
// A failed check is AuthorizationInvalid and leaves nothing to store.
func (a *Archive) Enrol(group Group, now time.Time) error {
	if err := a.checkCreation(group, now); err != nil {
		return err
	}
	creator := a.Member(a.CreatorSessionID)
	if err := creator.freeze(*group[creator.SessionID].Session, now); err != nil {
		return err
	}
	if a.MembershipVersion == MemberBindings {
		for i := range a.Members {
			a.Members[i].ClientName = group[a.Members[i].SessionID].Client.Name
		}
	}
	a.ConfirmedCount = 1
	if len(a.Members) == 1 {
		a.State = Ready
	}
	a.StreamVersion = 1
	return nil
}

// Recreate answers a repeated creation: a is the stored archive under the same
// key, asked what the repeated input makes. The checks are made again, with the
// identities frozen since (AuthorizationInvalid); then the input must be the
// frozen one (Conflict). Nothing changes.
func (a *Archive) Recreate(asked *Archive, group Group, now time.Time) error {
	for i := range asked.Members {
		if m := a.Member(asked.Members[i].SessionID); m != nil {
			asked.Members[i].Confirmation = m.Confirmation
		}
	}
	if err := asked.checkCreation(group, now); err != nil {
		return err
	}
	if a.RequestHash != asked.RequestHash {
		return errFrozen
	}
	return nil
}

func (a *Archive) checkCreation(group Group, now time.Time) error {
	if a.MembershipVersion == CommonBinding {
		return group.checkMember(*a.Member(a.CreatorSessionID), now)
	}
	return group.checkAll(a.Members, now)
}
