package postgres

import (
	"slices"
	"sort"

	"verbatim.internal/services/ingest/internal/app"
)

const lockKey = `select pg_advisory_xact_lock(bz_lock_key(?, ?))`

// lock takes what the triggers will want, all at once and in the order in which
// appends take theirs, so that neither can wait for the other in a circle: the
// clients and routes whose authorization changes, and no others.
func (a *application) lock(r app.Registry) error {
	clients, err := a.changedClients(r)
	if err != nil {
		return err
	}
	routes, err := a.changedRoutes(r)
	if err != nil {
		return err
	}
	return a.lockAll(clients, routes)
}

// lockAll locks clients, then routes, each by key. Whoever changes one reads it again
// afterwards: what was read before may have changed while this waited.
func (a *application) lockAll(clients, routes []string) error {
	for _, group := range []struct {
		kind string
		keys []string
	}{{"client", clients}, {"route", routes}} {
		sort.Strings(group.keys)
		for _, key := range slices.Compact(group.keys) {
			if err := a.tx.Exec(lockKey, group.kind, key).Error; err != nil {
				return err
			}
		}
	}
	return nil
}

// changedClients returns the clients under which something that authorizes changes.
func (a *application) changedClients(r app.Registry) (keys []string, err error) {
	for _, c := range r.Clients {
		stored, found, err := find[clientRow](a.tx, "app_id", c.AppID)
		if err != nil {
			return nil, err
		}
		if found && (stored.Enabled != c.Enabled || !slices.Equal(stored.AllowedRoutes, c.AllowedRoutes)) {
			keys = append(keys, c.AppID)
		}
	}
	for _, s := range r.Sessions {
		stored, found, err := find[sessionRow](a.tx, "session_id", string(s.ID))
		if err != nil {
			return nil, err
		}
		wanted, err := a.sessionRow(s)
		if err != nil {
			return nil, err
		}
		if found && len(sessionEntry(stored, true, wanted).fields) > 0 {
			keys = append(keys, stored.ClientAppID)
		}
	}
	return keys, nil
}

func (a *application) changedRoutes(r app.Registry) (keys []string, err error) {
	for _, e := range r.Routes {
		stored, found, err := find[routeRow](a.tx, "route_key", e.RouteKey)
		if err != nil {
			return nil, err
		}
		audience, err := audienceText(e)
		if err != nil {
			return nil, err
		}
		if found && (stored.Enabled != e.Enabled || stored.AgentAccess != e.AgentAccess || !same(stored.Audience, audience)) {
			keys = append(keys, e.RouteKey)
		}
	}
	return keys, nil
}
