package archive_test

import (
	"slices"

	"pgregory.net/rapid"
)

// The world of the histories: three clients, three routes and six sessions.
var (
	worldSessions = []string{sessionUUID(10), sessionUUID(11), sessionUUID(12), sessionUUID(13), sessionUUID(14), sessionUUID(15)}
	worldClients  = []string{"crm-demo", "erp-demo", "other-demo"}
	worldRoutes   = []string{"customers", "orders", "returns"}
)

// farAway is beyond every history.
const farAway = 1_000_000

func newWorld() world {
	session := func(client, name string, routes ...string) mSession {
		return mSession{client: client, behalf: "store:" + name, id: name, tenant: "store-a", roles: []string{"clerk", "buyer"}, routes: routes, expires: farAway}
	}
	w := world{
		clients: map[string]mClient{
			"crm-demo": {"CRM", true, []string{"customers", "returns"}}, "erp-demo": {"ERP", true, []string{"*"}}, "other-demo": {"Other", true, nil},
		},
		routes: map[string]mRoute{"customers": {on: true, agents: true}, "orders": {on: true, agents: true}, "returns": {on: true, agents: true}},
		sessions: map[string]mSession{
			worldSessions[0]: session("crm-demo", "ann", "customers", "returns"),
			worldSessions[1]: session("crm-demo", "bob", "*"),
			worldSessions[2]: session("crm-demo", "cem", "customers"),
			worldSessions[3]: session("erp-demo", "dag", "orders"),
			worldSessions[4]: session("erp-demo", "eva", "*"),
			worldSessions[5]: session("other-demo", "fay", "*"),
		},
	}
	desk := w.sessions[worldSessions[1]]
	desk.where, desk.audience, desk.roles, desk.tenant = "desk", "staff", nil, ""
	w.sessions[worldSessions[1]] = desk
	return w
}

var policies = []map[string][]string{
	{},
	{"clients": {"crm-demo", "erp-demo"}},
	{"clients": {"erp-demo"}},
	{"channels": {"agent:crm-demo", "desk"}},
	{"channels": {"agent:erp-demo"}},
	{"tenants": {"store-a"}},
	{"tenants": {"*"}, "audiences": {"*"}},
	{"roles": {"boss", "buyer"}},
	{"roles": {"boss"}},
	{"principals": {"ann", "dag"}},
	{"audiences": {"staff"}},
	{"clients": {"*"}, "tenants": {"store-b", "store-a"}, "roles": {"clerk"}},
}

// damage changes one thing of the registry, mostly one that takes a right away.
func damage(t *rapid.T, m *model) {
	kind := rapid.SampledFrom([]string{
		"revoke", "expire", "forget session", "forbid session", "behalf", "tenant", "roles", "name",
		"disable client", "forbid client", "forget client", "close route", "no agents", "policy", "forget route",
	}).Draw(t, "damage")
	s, c, r := drawn(t, "session", worldSessions...), drawn(t, "client", worldClients[:2]...), drawn(t, "route", worldRoutes...)
	session, client, route := m.sessions[s], m.clients[c], m.routes[r]
	switch kind {
	case "revoke":
		session.revoked = true
	case "expire":
		session.expires = m.now + rapid.IntRange(-1, 3).Draw(t, "after")
	case "forbid session":
		session.routes = []string{drawn(t, "only", worldRoutes...)}
	case "behalf":
		session.behalf += "!"
	case "tenant":
		session.tenant = "store-b"
	case "roles":
		session.roles = slices.Concat(session.roles, []string{"boss"})
	case "name":
		client.name += "!"
	case "disable client":
		client.on = false
	case "forbid client":
		client.routes = []string{drawn(t, "only", worldRoutes...)}
	case "close route":
		route.on = false
	case "no agents":
		route.agents = false
	case "policy":
		route.policy = rapid.SampledFrom(policies).Draw(t, "policy")
	}
	m.sessions[s], m.clients[c], m.routes[r] = session, client, route
	switch kind {
	case "forget session":
		delete(m.sessions, s)
	case "forget client":
		delete(m.clients, c)
	case "forget route":
		delete(m.routes, r)
	}
}

func drawn[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

// rarely is true about once in n.
func rarely(t *rapid.T, label string, n int) bool { return rapid.IntRange(1, n).Draw(t, label) == n }
