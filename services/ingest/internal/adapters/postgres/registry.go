package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"verbatim.internal/pkg/contracts/runv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest/internal/app"
)

// Registry implements [app.RegistryStore] with gorm.
type Registry struct {
	db    *gorm.DB
	waker Waker
}

// NewRegistry returns the registry of the database. waker may be that of another
// process's relay only through its safety net; nil means nobody is woken here.
func NewRegistry(db *gorm.DB, waker Waker) *Registry { return &Registry{db: db, waker: waker} }

// Apply implements [app.RegistryStore].
func (s *Registry) Apply(ctx context.Context, r app.Registry, now time.Time, newToken func(string) string) (app.RegistryResult, error) {
	var a *application
	err := database.RetrySerialization(ctx, func() error {
		return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			a = &application{tx: tx, now: now, newToken: newToken, trace: notEmpty(telemetry.InjectTrace(ctx))}
			return a.run(r)
		})
	})
	if err != nil {
		return app.RegistryResult{}, err
	}
	if s.waker != nil {
		for _, p := range a.partitions {
			s.waker.Wake(p)
		}
	}
	return a.result, nil
}

// application is one transaction that brings the stored registry to what a file says.
type application struct {
	tx         *gorm.DB
	now        time.Time
	newToken   func(string) string
	trace      *string
	partitions []int
	missing    []string // columns that this database does not have yet
	result     app.RegistryResult
}

func (a *application) run(r app.Registry) error {
	// Applications wait for each other: each must see what the one before did.
	if err := a.tx.Exec(lockKey, "registry", "apply").Error; err != nil {
		return err
	}
	there, err := hasRegistryChanges(a.tx)
	if err != nil {
		return err
	}
	if !there {
		a.missing = []string{"Instructions"}
	}
	if err := a.lock(r); err != nil {
		return err
	}
	for _, step := range []func(app.Registry) error{a.clients, a.routes, a.sessions, a.runs} {
		if err := step(r); err != nil {
			return err
		}
	}
	return nil
}

// find reads the row with the primary key, and reports whether there is one.
func find[T any](tx *gorm.DB, column, key string) (row T, found bool, err error) {
	res := tx.Where(map[string]any{column: key}).Limit(1).Find(&row)
	return row, res.RowsAffected > 0, res.Error
}

// put creates the wanted row or updates the fields that differ from the stored one.
func put[T any](a *application, kind, name string, stored *T, wanted *T, fields []string) error {
	change := app.Change{Kind: kind, Name: name, Action: app.Unchanged}
	var err error
	switch {
	case stored == nil:
		change.Action = app.Created
		err = a.tx.Omit(a.missing...).Create(wanted).Error
	case len(fields) > 0:
		change.Action, change.Fields = app.Updated, fields
		err = a.tx.Select(append(slices.Clone(fields), "updated_at")).Updates(wanted).Error
	}
	a.result.Changes = append(a.result.Changes, change)
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind, name, err)
	}
	return nil
}

// differing collects the names of fields that differ.
type differing []string

func (d *differing) add(name string, same bool) {
	if !same {
		*d = append(*d, name)
	}
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func (a *application) clients(r app.Registry) error {
	for _, c := range r.Clients {
		wanted := clientRow{
			AppID: c.AppID, Name: c.Name, AgentAuthorizeURL: notEmpty(c.AuthorizeURL),
			AllowedRoutes: c.AllowedRoutes, Enabled: c.Enabled, CreatedAt: a.now, UpdatedAt: a.now,
		}
		stored, found, err := find[clientRow](a.tx, "app_id", c.AppID)
		if err != nil {
			return err
		}
		var d differing
		d.add("name", stored.Name == wanted.Name)
		d.add("agent_authorize_url", same(stored.AgentAuthorizeURL, wanted.AgentAuthorizeURL))
		d.add("allowed_routes", slices.Equal(stored.AllowedRoutes, wanted.AllowedRoutes))
		d.add("enabled", stored.Enabled == wanted.Enabled)
		if err := put(a, "client", c.AppID, pointer(stored, found), &wanted, d); err != nil {
			return err
		}
		if err := a.clientToken(c); err != nil {
			return err
		}
	}
	return nil
}

func pointer[T any](v T, found bool) *T {
	if !found {
		return nil
	}
	return &v
}

func (a *application) clientToken(c app.RegistryClient) error {
	var stored []clientTokenRow
	if err := a.tx.Where("app_id = ?", c.AppID).Find(&stored).Error; err != nil {
		return err
	}
	token := c.Token
	if token == "" {
		if len(stored) > 0 {
			return nil
		}
		token = a.generate("client", c.AppID, app.ClientTokenPrefix)
	}
	hash := app.HashToken(token)
	if len(stored) == 1 && bytes.Equal(stored[0].TokenHash, hash) {
		return nil
	}
	if err := a.tx.Where("app_id = ?", c.AppID).Delete(&clientTokenRow{}).Error; err != nil {
		return err
	}
	a.touched("token")
	return inUse("client", c.AppID, a.tx.Create(&clientTokenRow{TokenHash: hash, AppID: c.AppID, CreatedAt: a.now}).Error)
}

// inUse words what a token that somebody else has means.
func inUse(kind, name string, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == uniqueViolation {
		return fmt.Errorf("%s %s: its token belongs to another %s", kind, name, kind)
	}
	return err
}

// generate draws a token and keeps it for the one time it is shown.
func (a *application) generate(kind, name, prefix string) string {
	token := a.newToken(prefix)
	a.result.Tokens = append(a.result.Tokens, app.Token{Kind: kind, Name: name, Value: token})
	return token
}

// touched adds a field to what the last entry's update changed.
func (a *application) touched(field string) {
	last := &a.result.Changes[len(a.result.Changes)-1]
	if last.Action != app.Created {
		last.Action, last.Fields = app.Updated, append(last.Fields, field)
	}
}

// audienceText is what is stored of a route's policy: nothing for one that admits all.
func audienceText(e app.RegistryRoute) (*string, error) {
	if !e.Audience.Enabled {
		return nil, nil
	}
	b, err := json.Marshal(e.Audience)
	if err != nil {
		return nil, fmt.Errorf("route %s: %w", e.RouteKey, err)
	}
	return notEmpty(string(b)), nil
}

func (a *application) routes(r app.Registry) error {
	for _, e := range r.Routes {
		audience, err := audienceText(e)
		if err != nil {
			return err
		}
		wanted := routeRow{
			RouteKey: e.RouteKey, Name: e.Name, Enabled: e.Enabled, AgentAccess: e.AgentAccess,
			Audience: audience, Instructions: notEmpty(e.Instructions), CreatedAt: a.now, UpdatedAt: a.now,
		}
		stored, found, err := find[routeRow](a.tx, "route_key", e.RouteKey)
		if err != nil {
			return err
		}
		var d differing
		d.add("name", stored.Name == wanted.Name)
		d.add("enabled", stored.Enabled == wanted.Enabled)
		d.add("agent_access", stored.AgentAccess == wanted.AgentAccess)
		d.add("audience", same(stored.Audience, wanted.Audience))
		d.add("instructions", same(stored.Instructions, wanted.Instructions))
		if err := put(a, "route", e.RouteKey, pointer(stored, found), &wanted, d); err != nil {
			return err
		}
	}
	return nil
}

func (a *application) sessionRow(s app.RegistrySession) (sessionRow, error) {
	principal, err := s.Principal.Marshal()
	if err != nil {
		return sessionRow{}, fmt.Errorf("session %s: %w", s.ID, err)
	}
	return sessionRow{
		SessionID: string(s.ID), ClientAppID: s.ClientAppID, DeviceLabel: s.DeviceLabel, Principal: string(principal),
		OnBehalfOf: s.OnBehalfOf, AllowedRoutes: s.AllowedRoutes, RefreshExpiresAt: s.RefreshExpiresAt.Truncate(time.Microsecond),
		RevokedAt: s.RevokedAt, CreatedAt: a.now, UpdatedAt: a.now,
	}, nil
}

// sessionChanges names what differs. A stored revocation is final, whatever is wanted.
func sessionChanges(stored, wanted sessionRow) []string {
	var d differing
	d.add("client_app_id", stored.ClientAppID == wanted.ClientAppID)
	d.add("device_label", stored.DeviceLabel == wanted.DeviceLabel)
	d.add("principal", stored.Principal == wanted.Principal)
	d.add("on_behalf_of", stored.OnBehalfOf == wanted.OnBehalfOf)
	d.add("allowed_routes", slices.Equal(stored.AllowedRoutes, wanted.AllowedRoutes))
	d.add("refresh_expires_at", stored.RefreshExpiresAt.Equal(wanted.RefreshExpiresAt))
	d.add("revoked_at", stored.RevokedAt != nil || wanted.RevokedAt == nil)
	return d
}

func (a *application) sessions(r app.Registry) error {
	for _, s := range r.Sessions {
		wanted, err := a.sessionRow(s)
		if err != nil {
			return err
		}
		stored, found, err := find[sessionRow](a.tx, "session_id", string(s.ID))
		if err != nil {
			return err
		}
		if _, known, err := find[clientRow](a.tx, "app_id", s.ClientAppID); err != nil {
			return err
		} else if !known {
			return fmt.Errorf("session %s names client %s, which does not exist", s.ID, s.ClientAppID)
		}
		if err := put(a, "session", string(s.ID), pointer(stored, found), &wanted, sessionChanges(stored, wanted)); err != nil {
			return err
		}
		if err := a.sessionToken(s); err != nil {
			return err
		}
	}
	return nil
}

func (a *application) sessionToken(s app.RegistrySession) error {
	var stored []sessionTokenRow
	if err := a.tx.Where("session_id = ?", string(s.ID)).Order("created_at desc").Find(&stored).Error; err != nil {
		return err
	}
	token := s.AccessToken
	hash := app.HashToken(token)
	if token == "" {
		if len(stored) > 0 {
			hash = stored[0].TokenHash
		} else {
			hash = app.HashToken(a.generate("session", string(s.ID), app.AccessTokenPrefix))
		}
	}
	expires := s.AccessExpiresAt.Truncate(time.Microsecond)
	if len(stored) == 1 && bytes.Equal(stored[0].TokenHash, hash) && stored[0].AccessExpiresAt.Equal(expires) {
		return nil
	}
	if err := a.tx.Where("session_id = ?", string(s.ID)).Delete(&sessionTokenRow{}).Error; err != nil {
		return err
	}
	a.touched("access_token")
	return inUse("session", string(s.ID), a.tx.Create(&sessionTokenRow{
		TokenHash: hash, SessionID: string(s.ID), AccessExpiresAt: expires, CreatedAt: a.now,
	}).Error)
}

func (a *application) runs(r app.Registry) error {
	for _, e := range r.Runs {
		wanted := runRow{
			RunID: string(e.RunID), SessionID: string(e.SessionID), ClientAppID: e.Binding.ClientAppID, RouteKey: e.Binding.RouteKey,
			ThreadID: e.ThreadID, ClientConversationID: e.ClientConversationID, ClientTurnID: e.ClientTurnID,
			StreamVersion: 1, CreatedAt: a.now,
		}
		stored, found, err := find[runRow](a.tx, "run_id", string(e.RunID))
		if err != nil {
			return err
		}
		if found {
			wanted.StreamVersion, wanted.CreatedAt = stored.StreamVersion, stored.CreatedAt
			if stored != wanted {
				return fmt.Errorf("run %s is stored with other facts, and a run never changes", e.RunID)
			}
		} else if err := a.runOwner(e); err != nil {
			return err
		}
		if err := put(a, "run", string(e.RunID), pointer(stored, found), &wanted, nil); err != nil {
			return err
		}
		if !found {
			if err := a.recordRun(wanted); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *application) runOwner(e identity.Run) error {
	owner, found, err := find[sessionRow](a.tx, "session_id", string(e.SessionID))
	if err == nil && (!found || owner.ClientAppID != e.Binding.ClientAppID) {
		err = fmt.Errorf("run %s names session %s of client %s, which does not exist", e.RunID, e.SessionID, e.Binding.ClientAppID)
	}
	return err
}

func (a *application) recordRun(r runRow) error {
	partition := transport.Partition(r.RunID)
	a.partitions = append(a.partitions, partition)
	return a.tx.Create(&outboxRow{
		Partition: partition, StreamKind: runv1.StreamKind, StreamID: r.RunID, Version: r.StreamVersion,
		Type: runv1.TypeRecorded, Payload: "{}", TraceContext: a.trace, CreatedAt: a.now,
	}).Error
}
