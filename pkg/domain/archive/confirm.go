package archive

import (
	"time"

	"verbatim.internal/pkg/domain/identity"
)

// Confirm confirms the bearer's own membership.
//
// A session that is no member, or in v1 belongs to another client than the
// archive, finds nothing (NotFound). The member check is made for the bearer;
// in v2, and in v1 once all have confirmed, for the whole group
// (AuthorizationInvalid). On success it freezes the bearer's identity, counts
// it, moves the archive to Ready with the last one, and reports true; confirming
// again is checked the same way, changes nothing and reports false.
// A refused call leaves the archive as it was.
func (a *Archive) Confirm(bearer identity.UUID, group Group, now time.Time) (changed bool, err error) {
	m := a.Member(bearer)
	if m == nil {
		return false, ErrNotFound
	}
	facts := group[bearer]
	if a.MembershipVersion == CommonBinding && facts.Session != nil && facts.Session.ClientAppID != a.Binding.ClientAppID {
		return false, ErrNotFound
	}
	confirmed := a.ConfirmedCount
	if m.Confirmation == nil {
		confirmed++
	}
	complete := confirmed == len(a.Members)
	if a.MembershipVersion == MemberBindings || complete {
		err = group.checkAll(a.Members, now)
	} else {
		err = group.checkMember(*m, now)
	}
	if err != nil || m.Confirmation != nil {
		return false, err
	}
	if err := m.freeze(*facts.Session, now); err != nil {
		return false, err
	}
	a.ConfirmedCount = confirmed
	if complete {
		a.State = Ready
	}
	a.StreamVersion++
	a.UpdatedAt = now
	return true, nil
}
