package postgres

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

func (a *application) routes(r app.Registry) error {
	for _, wanted := range r.Routes {
		audience, err := audienceText(wanted)
		if err != nil {
			return err
		}
		stored, found, err := find[routeRow](a.tx, "route_key", wanted.RouteKey)
		if err != nil {
			return err
		}
		if err := a.putRoute(stored, found, routeRow{
			RouteKey: wanted.RouteKey, Name: wanted.Name, Enabled: wanted.Enabled, AgentAccess: wanted.AgentAccess,
			Audience: audience, Instructions: notEmpty(wanted.Instructions), CreatedAt: a.Now,
		}); err != nil {
			return err
		}
	}
	return nil
}

func (a *application) putRoute(stored routeRow, found bool, wanted routeRow) error {
	e := &entry{kind: registryv1.KindRoute, name: wanted.RouteKey, found: found}
	shows(e, "name", stored.Name, wanted.Name, stored.Name == wanted.Name)
	shows(e, "enabled", stored.Enabled, wanted.Enabled, stored.Enabled == wanted.Enabled)
	shows(e, "agent_access", stored.AgentAccess, wanted.AgentAccess, stored.AgentAccess == wanted.AgentAccess)
	e.differs("audience", same(stored.Audience, wanted.Audience))
	e.differs("instructions", same(stored.Instructions, wanted.Instructions))
	wanted.UpdatedAt = a.Now
	if err := write(a, e, &wanted); err != nil {
		return err
	}
	return a.done(e)
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

// DisableRoute implements [app.RegistryTx].
func (a *application) DisableRoute(routeKey string) error {
	read := func() (routeRow, error) { return known[routeRow](a.tx, registryv1.KindRoute, "route_key", routeKey) }
	stored, err := read()
	if err == nil && stored.Enabled {
		if err = a.lockAll(nil, []string{routeKey}); err == nil {
			stored, err = read()
		}
	}
	if err != nil {
		return err
	}
	wanted := stored
	wanted.Enabled = false
	return a.putRoute(stored, true, wanted)
}

// Route implements [app.RegistryTx].
func (a *application) Route(routeKey string) (app.StoredRoute, error) {
	row, err := known[routeRow](a.tx, registryv1.KindRoute, "route_key", routeKey)
	if err != nil {
		return app.StoredRoute{}, err
	}
	return row.stored()
}

func (r routeRow) stored() (app.StoredRoute, error) {
	out := app.StoredRoute{
		RegistryRoute: app.RegistryRoute{
			Route: identity.Route{RouteKey: r.RouteKey, Enabled: r.Enabled, AgentAccess: r.AgentAccess},
			Name:  r.Name, Instructions: textOf(r.Instructions),
		},
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	if r.Audience == nil {
		return out, nil
	}
	if err := json.Unmarshal([]byte(*r.Audience), &out.Audience); err != nil {
		return app.StoredRoute{}, fmt.Errorf("the stored audience of route %s is not one", r.RouteKey)
	}
	return out, nil
}
