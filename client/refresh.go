package client

import (
	"context"
	"errors"
	"net/http"
	"time"
)

const (
	// rotationWindow is how long a rotation may be repeated. The hub allows 10 seconds from
	// when it used the token, which is later than when it was first sent; a repetition may be
	// on its way for as long as it is waited for.
	rotationWindow = 10*time.Second - rotationPatience
	// rotationPatience bounds one attempt, so that there is time for another one.
	rotationPatience = 3 * time.Second
	// earlyPause is the time between two early rotations of which the first one failed.
	earlyPause = 30 * time.Second
)

// errUncertain is a rotation whose answer is lost for longer than it may be repeated.
var errUncertain = errors.New("verbatim: the answer to an earlier rotation is lost")

// tokenAnswer answers an exchange or a rotation.
type tokenAnswer struct {
	TokenType    string `json:"token_type"`
	AccessToken  string `json:"access_token"`
	ExpiresIn    int64  `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	SessionID    string `json:"session_id"`
	ClientAppID  string `json:"client_app_id"`
}

// complete reports whether the answer holds a usable pair.
func (t tokenAnswer) complete() bool {
	return NewToken(t.AccessToken).valid() && NewToken(t.RefreshToken).valid() && t.ExpiresIn > 0 && t.ExpiresIn < 1<<31
}

// apply puts the pair into r; begun is when it was asked for, so that it never seems to
// live longer than it does.
func (t tokenAnswer) apply(r sessionRecord, begun time.Time) sessionRecord {
	r.AccessToken, r.RefreshToken = t.AccessToken, t.RefreshToken
	r.AccessIssuedAt, r.AccessExpiresAt = begun, begun.Add(time.Duration(t.ExpiresIn)*time.Second)
	r.RotatingSince = time.Time{}
	return r
}

// bearer returns the access token, after an early rotation when its end is near. An early
// rotation that fails leaves the old token in use: whether it is good, the hub says.
func (s *Session) bearer(ctx context.Context) (Token, error) {
	if err := s.lock.acquire(ctx); err != nil {
		return Token{}, err
	}
	defer s.lock.release()
	if now := s.spool.clock(); s.isDue(now) {
		if err := s.rotate(ctx, false); errors.Is(err, ErrClosed) {
			return Token{}, err
		} else if err != nil {
			s.notBefore = now.Add(earlyPause)
		}
	}
	return NewToken(s.record.AccessToken), ctx.Err()
}

// isDue reports whether less than a third of the access token's life is left.
func (s *Session) isDue(now time.Time) bool {
	r := s.record
	if r.RefreshToken == "" || r.AccessExpiresAt.IsZero() || now.Before(s.notBefore) {
		return false
	}
	return r.AccessExpiresAt.Sub(now) < r.AccessExpiresAt.Sub(r.AccessIssuedAt)/3
}

// renew returns another access token than the refused one. Errors: ErrReauthorize,
// ErrUnavailable, the context's.
func (s *Session) renew(ctx context.Context, refused Token) (Token, error) {
	if err := s.lock.acquire(ctx); err != nil {
		return Token{}, err
	}
	defer s.lock.release()
	if s.record.AccessToken == refused.value { // nobody else was first
		if s.record.RefreshToken == "" {
			return Token{}, &ReauthorizeError{s.id}
		}
		if err := s.rotate(ctx, true); err != nil {
			return Token{}, err
		}
	}
	return NewToken(s.record.AccessToken), nil
}

// rotate exchanges the refresh token for a new pair, which is on disk when it returns
// nil. The caller holds the lock.
//
// That the token is about to be sent is stored first. When the answer is lost the
// rotation is repeated within rotationWindow. Later than that it is repeated only when it
// is the last resort, as the access token is refused: if the hub did use the token, its
// return revokes the session, which could not be refreshed anyhow.
func (s *Session) rotate(ctx context.Context, lastResort bool) error {
	body, err := encode(map[string]string{
		"grant_type": "refresh_token", "client_app_id": s.record.ClientAppID, "refresh_token": s.record.RefreshToken,
	})
	if err != nil {
		return err
	}
	fresh := s.record.RotatingSince.IsZero()
	if fresh {
		r := s.record
		r.RotatingSince = s.spool.clock()
		if err := s.store(r, "rotation"); err != nil {
			return err
		}
	} else if !lastResort && !s.mayRepeat(0) {
		return errUncertain
	}
	for n := 0; ; n++ {
		s.spool.step("refresh: before send")
		begun := s.spool.clock()
		a, err := s.spool.hub.sendRotation(ctx, body)
		s.spool.step("refresh: answered")
		if err == nil {
			err = s.take(a, begun)
		}
		if fresh && n == 0 && isCertain(err) {
			r := s.record
			r.RotatingSince = time.Time{}
			return errors.Join(err, s.store(r, "rotation"))
		}
		pause := s.spool.hub.pauses.pause(n, err)
		if !errors.Is(err, ErrUnavailable) || !s.mayRepeat(pause) {
			return err
		}
		if wait(ctx, pause) != nil || !s.mayRepeat(0) {
			return err
		}
	}
}

// sendRotation makes one attempt. An answer on its way is waited for a little even when ctx
// has ended: it would be lost.
func (h *Hub) sendRotation(ctx context.Context, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rotationPatience)
	defer cancel()
	return h.send(ctx, post("/agent-auth/v1/token", body), Token{})
}

// take stores the pair of a successful answer.
func (s *Session) take(a answer, begun time.Time) error {
	var t tokenAnswer
	if err := a.decode("", &t); err != nil {
		var refused *RefusedError
		if errors.As(err, &refused) || errors.Is(err, ErrUnsupported) { // no such endpoint: it cannot be refreshed
			return &ReauthorizeError{s.id}
		}
		return err
	}
	if id, _ := parseUUID(t.SessionID); id != s.id || !t.complete() {
		return a.unintelligible()
	}
	return s.store(t.apply(s.record, begun), "tokens")
}

// mayRepeat reports whether a rotation whose answer is lost may be repeated unharmed after
// a pause. A machine that slept counts too, which its monotonic clock does not see.
func (s *Session) mayRepeat(pause time.Duration) bool {
	now, since := s.spool.clock(), s.record.RotatingSince
	wall := now.Round(0).Sub(since.Round(0))
	return wall >= 0 && max(wall, now.Sub(since))+pause < rotationWindow
}

// isCertain reports whether the hub has certainly not used the token.
func isCertain(err error) bool {
	var u *unavailableError
	return errors.As(err, &u) && (u.unsent || u.status == http.StatusTooManyRequests)
}
