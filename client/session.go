package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// Session is one Agent Session: an identity at one client of the hub, with its tokens in
// the spool. Its calls refresh the access token when it is about to expire or is refused,
// and repeat what may pass until their context ends, so give them a deadline. Safe for
// concurrent use.
type Session struct {
	spool           *Spool
	id, clientAppID string
	lock            semaphore // guards what follows; held during a rotation
	// record is what the file holds.
	record sessionRecord
	// notBefore is when the next early rotation may be tried.
	notBefore time.Time
}

// sessionRecord is a session in the file.
type sessionRecord struct {
	ClientAppID     string    `json:"client_app_id"`
	AllowedRoutes   []string  `json:"allowed_routes,omitempty"` // empty: not known
	AccessToken     string    `json:"access_token"`
	AccessIssuedAt  time.Time `json:"access_issued_at,omitzero"`
	AccessExpiresAt time.Time `json:"access_expires_at,omitzero"` // zero: not known
	RefreshToken    string    `json:"refresh_token,omitempty"`
	// RotatingSince is when RefreshToken was first sent, while its answer is not stored.
	RotatingSince time.Time `json:"rotating_since,omitzero"`
}

// Tokens are a session that was not authorized through the person's browser but issued
// by an operator or handed over by a host.
type Tokens struct {
	SessionID, ClientAppID string
	// AllowedRoutes are the session's routes, nil when they are not known; "*" is all.
	AllowedRoutes []string
	AccessToken   Token
	// AccessExpiresAt is when AccessToken ends; zero when it is not known.
	AccessExpiresAt time.Time
	// RefreshToken is the zero Token for a session that cannot be refreshed.
	RefreshToken Token
}

// SessionInfo is what the hub says of a session.
type SessionInfo struct {
	SessionID        string          `json:"session_id"`
	ClientAppID      string          `json:"client_app_id"`
	DeviceLabel      string          `json:"device_label"`
	Principal        json.RawMessage `json:"principal"`
	OnBehalfOf       string          `json:"on_behalf_of"`
	AllowedRoutes    []string        `json:"allowed_routes"`
	CreatedAt        time.Time       `json:"created_at"`
	ExpiresAt        time.Time       `json:"expires_at"`
	RefreshExpiresAt time.Time       `json:"refresh_expires_at"`
}

func newSession(s *Spool, id string, r sessionRecord) *Session {
	return &Session{spool: s, id: id, clientAppID: r.ClientAppID, lock: newSemaphore(), record: r}
}

// AddSession stores a session; it is on disk when AddSession returns. The tokens of a
// session that the spool has already are replaced; its client must be the same. Errors:
// ErrInvalid, ErrConflict, and what the disk says.
func (s *Spool) AddSession(ctx context.Context, t Tokens) (*Session, error) {
	id, ok := parseUUID(t.SessionID)
	switch {
	case !ok:
		return nil, invalid("the session's id is no UUID")
	case !isKey(t.ClientAppID):
		return nil, invalid("the client's id is no resource key")
	case !t.AccessToken.valid() || t.RefreshToken.value != "" && !t.RefreshToken.valid():
		return nil, invalid("a token is not of printable ASCII")
	}
	return s.storeSession(ctx, id, sessionRecord{
		ClientAppID: t.ClientAppID, AllowedRoutes: slices.Clone(t.AllowedRoutes), AccessToken: t.AccessToken.value,
		AccessIssuedAt: s.clock(), AccessExpiresAt: t.AccessExpiresAt, RefreshToken: t.RefreshToken.value,
	})
}

func (s *Spool) storeSession(ctx context.Context, id string, r sessionRecord) (*Session, error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	session, err := s.Session(id)
	isNew := err != nil
	if isNew {
		session = newSession(s, id, r)
	}
	if session.clientAppID != r.ClientAppID {
		return nil, conflict("the session belongs to another client")
	}
	if err := session.lock.acquire(ctx); err != nil {
		return nil, err
	}
	defer session.lock.release()
	if err := session.store(r, "session"); err != nil {
		return nil, err
	}
	if isNew {
		s.mu.Lock()
		s.sessions[id] = session
		s.mu.Unlock()
	}
	s.poke()
	return session, nil
}

// store writes the record; the caller holds the lock. What is in memory changes only
// once it is on disk.
func (s *Session) store(r sessionRecord, step string) error {
	err := s.spool.update(func(tx *bbolt.Tx) error {
		if err := put(tx.Bucket(bucketSessions), s.id, r); err != nil {
			return err
		}
		s.spool.step(step + ": before commit")
		return nil
	})
	if err != nil {
		return err
	}
	s.record, s.notBefore = r, time.Time{}
	s.spool.step(step + ": committed")
	return nil
}

// Session returns a session of the spool, or ErrNotFound.
func (s *Spool) Session(sessionID string) (*Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _ := parseUUID(sessionID)
	if session := s.sessions[id]; session != nil {
		return session, nil
	}
	return nil, fmt.Errorf("%w: the session", ErrNotFound)
}

// Sessions returns all sessions of the spool, in the order of their ids.
func (s *Spool) Sessions() []*Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Session, 0, len(s.sessions))
	for _, session := range s.sessions {
		all = append(all, session)
	}
	slices.SortFunc(all, func(a, b *Session) int { return strings.Compare(a.id, b.id) })
	return all
}

// ID is the session's UUID.
func (s *Session) ID() string { return s.id }

// ClientAppID is the session's client.
func (s *Session) ClientAppID() string { return s.clientAppID }

// Info asks the hub for the session, and keeps which routes it may use.
func (s *Session) Info(ctx context.Context) (*SessionInfo, error) {
	var info SessionInfo
	if err := s.ask(ctx, get("/agent-auth/v1/session"), "", &info); err != nil {
		return nil, err
	}
	if err := s.lock.acquire(ctx); err != nil {
		return nil, err
	}
	defer s.lock.release()
	r := s.record
	r.AllowedRoutes = slices.Clone(info.AllowedRoutes)
	return &info, s.store(r, "session")
}

// Revoke ends the session at the hub. Archives that it is a member of can no longer be
// written; what of them is not acknowledged stays in the spool.
func (s *Session) Revoke(ctx context.Context) error {
	var done struct {
		Revoked bool `json:"revoked"`
	}
	return s.ask(ctx, post("/agent-auth/v1/revoke", []byte("{}")), "", &done)
}

// ask sends a request until it is answered, and decodes the answer.
func (s *Session) ask(ctx context.Context, r request, schema string, v any) error {
	return s.spool.hub.retry(ctx, func() error {
		a, err := s.call(ctx, r)
		if err != nil {
			return err
		}
		return a.decode(schema, v)
	})
}

// call makes one attempt with the session's bearer; a 401 refreshes once.
func (s *Session) call(ctx context.Context, r request) (answer, error) {
	token, err := s.bearer(ctx)
	if err != nil {
		return answer{}, err
	}
	a, err := s.spool.hub.send(ctx, r, token)
	if err != nil || a.status != http.StatusUnauthorized {
		return a, err
	}
	if token, err = s.renew(ctx, token); err != nil {
		return answer{}, err
	}
	a, err = s.spool.hub.send(ctx, r, token)
	if err == nil && a.status == http.StatusUnauthorized {
		return answer{}, &ReauthorizeError{s.id}
	}
	return a, err
}
