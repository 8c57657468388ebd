package authorization_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/authorization"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

func TestTheReturnOfARefreshTokenIsJudged(t *testing.T) {
	t.Parallel()
	used := func(ago time.Duration) *time.Time {
		at := instant.Add(-ago)
		return &at
	}
	for name, tc := range map[string]struct {
		token authorization.RefreshToken
		own   bool
		want  authorization.Verdict
	}{
		"unused":                           {authorization.RefreshToken{}, true, authorization.Rotate},
		"unused, by another client":        {authorization.RefreshToken{}, false, authorization.Rotate},
		"at once":                          {authorization.RefreshToken{UsedAt: used(0), SuccessorUnused: true}, true, authorization.Replace},
		"after 10 s":                       {authorization.RefreshToken{UsedAt: used(10 * time.Second), SuccessorUnused: true}, true, authorization.Replace},
		"by another replica's clock":       {authorization.RefreshToken{UsedAt: used(-time.Second), SuccessorUnused: true}, true, authorization.Replace},
		"after more":                       {authorization.RefreshToken{UsedAt: used(10*time.Second + time.Microsecond), SuccessorUnused: true}, true, authorization.Stolen},
		"at once, but the successor was":   {authorization.RefreshToken{UsedAt: used(0)}, true, authorization.Stolen},
		"at once, but by another client":   {authorization.RefreshToken{UsedAt: used(0), SuccessorUnused: true}, false, authorization.Stolen},
		"later, and the successor was too": {authorization.RefreshToken{UsedAt: used(time.Hour)}, true, authorization.Stolen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := authorization.Judge(tc.token, tc.own, instant); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestOnlyASessionThatStandsIsRefreshed(t *testing.T) {
	t.Parallel()
	revoked := instant.Add(-time.Hour)
	for name, tc := range map[string]struct {
		change func(s *identity.Session, c *identity.Client)
		want   refusal.Code
	}{
		"it stands":       {func(*identity.Session, *identity.Client) {}, ""},
		"revoked":         {func(s *identity.Session, _ *identity.Client) { s.RevokedAt = &revoked }, refusal.InvalidGrant},
		"over":            {func(s *identity.Session, _ *identity.Client) { s.RefreshExpiresAt = instant }, refusal.InvalidGrant},
		"of another":      {func(s *identity.Session, _ *identity.Client) { s.ClientAppID = "other" }, refusal.InvalidGrant},
		"client disabled": {func(_ *identity.Session, c *identity.Client) { c.Enabled = false }, refusal.InvalidGrant},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := &identity.Session{ID: sessionID, ClientAppID: "shop", RefreshExpiresAt: instant.Add(1)}, shop()
			tc.change(s, c)
			wantCode(t, authorization.MayRefresh(s, c, instant), tc.want)
			wantCode(t, authorization.MayRefresh(nil, c, instant), refusal.InvalidGrant)
			wantCode(t, authorization.MayRefresh(s, nil, instant), refusal.InvalidGrant)
		})
	}
}

func TestAnAccessTokenEndsWithItsSession(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		left := time.Duration(rapid.Int64Range(1, int64(authorization.RefreshLife)).Draw(t, "left"))
		end := instant.Add(left)
		got := authorization.AccessExpiry(instant, end)
		if got.After(end) || got.Sub(instant) > authorization.AccessLife || got.Before(end) && got.Sub(instant) != authorization.AccessLife {
			t.Fatalf("%v of %v", got.Sub(instant), left)
		}
	})
}
