package authorization

import (
	"time"

	"verbatim.internal/pkg/domain/identity"
)

const (
	// AccessLife is how long an access token works.
	AccessLife = 15 * time.Minute
	// RefreshLife is how long a session may be refreshed, from its exchange. Refreshing
	// does not extend it.
	RefreshLife = 30 * 24 * time.Hour
	// LostAnswer is how long after its use a refresh token may come back because its
	// answer was lost.
	LostAnswer = 10 * time.Second
)

// RefreshToken is what the rules need of a stored refresh token.
type RefreshToken struct {
	UsedAt *time.Time // nil: not used
	// SuccessorUnused is true while the token that took its place was not used itself.
	SuccessorUnused bool
}

// Verdict is what the return of a refresh token means.
type Verdict int

const (
	// Rotate says that a successor takes the token's place.
	Rotate Verdict = iota
	// Replace says that the answer was lost: a fresh successor takes the place of the first.
	Replace
	// Stolen says that two hold the token: the session ends.
	Stolen
)

// Judge says what it means that the token is shown at now, by the client that it was
// given to or by another. It is not asked whether the session still stands.
func Judge(t RefreshToken, byItsClient bool, now time.Time) Verdict {
	switch {
	case t.UsedAt == nil:
		return Rotate
	case byItsClient && t.SuccessorUnused && now.Sub(*t.UsedAt) <= LostAnswer:
		return Replace
	default:
		return Stolen
	}
}

// MayRefresh reports whether a session's tokens may be renewed at now: the session and its
// client exist (not nil), the client is enabled, and the session is neither revoked nor
// over. The error is ErrGrant. The facts must stay locked until the caller commits.
func MayRefresh(s *identity.Session, c *identity.Client, now time.Time) error {
	ok := s != nil && c != nil && s.ClientAppID == c.AppID && c.Enabled && s.RevokedAt == nil && now.Before(s.RefreshExpiresAt)
	if !ok {
		return ErrGrant
	}
	return nil
}

// AccessExpiry returns until when an access token works that is given out at now: for
// AccessLife, and never longer than its session may be refreshed.
func AccessExpiry(now, refreshExpiresAt time.Time) time.Time {
	if t := now.Add(AccessLife); t.Before(refreshExpiresAt) {
		return t
	}
	return refreshExpiresAt
}
