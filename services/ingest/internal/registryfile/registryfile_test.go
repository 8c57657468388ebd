package registryfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/services/ingest/internal/app"
	"verbatim.internal/services/ingest/internal/registryfile"
)

const yamlFile = `
clients:
  - {app_id: shop, name: Shop, allowed_routes: ["*"]}
routes:
  - {route_key: orders, name: Orders, agent_access: true, audience: {enabled: true, tenants: [a]}, instructions: "Be kind.\nAlways."}
sessions:
  - session_id: 123E4567-e89b-42d3-a456-426614174001
    client_app_id: shop
    device_label: one
    principal: {id: op, roles: [manager]}
    on_behalf_of: "a:op"
    allowed_routes: [orders]
    access_expires_at: 2099-01-01T00:00:00Z
    refresh_expires_at: "2099-02-01T00:00:00+01:00"
runs:
  - {run_id: 223e4567-e89b-42d3-a456-426614174001, session_id: 123e4567-e89b-42d3-a456-426614174001, client_app_id: shop,
     route_key: orders, thread_id: 9007199254740991, client_conversation_id: c, client_turn_id: t}
controllers:
  - {name: ops, permissions: ["registry:write"]}
`

func TestParseReadsYAML(t *testing.T) {
	t.Parallel()
	r, err := registryfile.Parse([]byte(yamlFile))
	require.NoError(t, err)
	require.True(t, r.Clients[0].Enabled, "a client is enabled unless the file says otherwise")
	require.Equal(t, []string{"a"}, r.Routes[0].Audience.Tenants)
	require.Equal(t, "123e4567-e89b-42d3-a456-426614174001", string(r.Sessions[0].ID))
	require.Equal(t, "2099-01-31T23:00:00Z", r.Sessions[0].RefreshExpiresAt.Format("2006-01-02T15:04:05Z07:00"))
	require.Equal(t, int64(1<<53-1), r.Runs[0].ThreadID, "a number keeps its value through YAML")
	require.Equal(t, "Be kind.\nAlways.", r.Routes[0].Instructions)
	require.Equal(t, []app.RegistryController{{Name: "ops", Permissions: []string{"registry:write"}}}, r.Controllers)
}

func TestParseReadsJSON(t *testing.T) {
	t.Parallel()
	r, err := registryfile.Parse([]byte(`{"clients":[{"app_id":"shop","name":"Shop","allowed_routes":[],"enabled":false}]}`))
	require.NoError(t, err)
	require.False(t, r.Clients[0].Enabled)
	require.NotNil(t, r.Clients[0].AllowedRoutes)
}

func TestParseNamesWhatIsWrongAndQuotesNoToken(t *testing.T) {
	t.Parallel()
	const secret = "bhk_notatokenbutstillasecret"
	for name, tc := range map[string]struct{ old, instead, want string }{
		"unknown field":  {"name: Shop", "nam: Shop", "/clients/0/nam"},
		"repeated field": {"name: Shop", "name: Shop, name: Shop", "repeats a field"},
		"bad token":      {"name: Shop", "name: Shop, token: " + secret, "client shop: a token is bhk_"},
		"bad key":        {"route_key: orders, name", "route_key: auto, name", "route auto"},
		"bad principal":  {"{id: op, roles: [manager]}", "{tenant: a}", "needs an id"},
		"bad member":     {"{id: op, roles: [manager]}", "{id: op, email: x}", "/sessions/0/principal/email"},
		"bad uuid":       {"223e4567-e89b-42d3-a456-426614174001", "x", "run_id is not a UUID"},
		"bad thread":     {"9007199254740991", "0", "thread_id"},
		"no expiry":      {"access_expires_at: 2099-01-01T00:00:00Z", "", "access_expires_at is missing"},
		"blank text":     {`"Be kind.\nAlways."`, `" "`, "route orders: instructions is no visible text"},
		"control text":   {`"Be kind.\nAlways."`, `"\a"`, "route orders: instructions is no visible text"},
		"bad page":       {"name: Shop", "name: Shop, agent_authorize_url: \"javascript://x/\"", "client shop: agent_authorize_url is no http"},
		"bad controller": {"name: ops", "name: Ops", "controller Ops: name is not a resource key"},
		"bad right":      {`"registry:write"`, `"write"`, "controller ops: permissions takes words"},
		"other's token":  {"name: ops", "name: ops, token: bhk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "controller ops: a token is bvc_"},
		"more rights":    {`name: ops`, `name: ops, admin: true`, "/controllers/0/admin"},
		"mistyped":       {"agent_access: true", "agent_access: 1", "/routes/0/agent_access"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := strings.Replace(yamlFile, tc.old, tc.instead, 1)
			require.NotEqual(t, yamlFile, broken)
			_, err := registryfile.Parse([]byte(broken))
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), secret)
		})
	}
	for _, broken := range []string{"", "[]", "{", "text", "null"} {
		if r, err := registryfile.Parse([]byte(broken)); err == nil {
			require.Empty(t, r.Clients)
		}
	}
}

func TestParseCollectsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := registryfile.Parse([]byte(`{"clients":[{"app_id":"A","name":""}],"routes":[{"route_key":"r","name":"x"}]}`))
	require.ErrorContains(t, err, "app_id is not a resource key")
	require.ErrorContains(t, err, "name has 1 to 191 characters")
	require.ErrorContains(t, err, "route r")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(yamlFile))
	f.Add([]byte(`{"clients":[]}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = registryfile.Parse(data) // it must not panic
	})
}

func TestWhatWouldOpenADoorByMistakeIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ old, instead string }{
		"a policy without a value":     {"audience: {enabled: true, tenants: [a]}", "audience: "},
		"lists that would not count":   {"audience: {enabled: true, tenants: [a]}", "audience: {tenants: [a]}"},
		"a list without a value":       {"tenants: [a]", "tenants: "},
		"a misspelled list":            {"tenants: [a]", "tenant: [a]"},
		"a client's switch left open":  {"name: Shop,", "name: Shop, enabled: ,"},
		"access that is neither":       {"agent_access: true", "agent_access: "},
		"permissions left open":        {`permissions: ["registry:write"]`, "permissions: "},
		"a session's routes left open": {"allowed_routes: [orders]", "allowed_routes: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := strings.Replace(yamlFile, tc.old, tc.instead, 1)
			require.NotEqual(t, yamlFile, broken)
			_, err := registryfile.Parse([]byte(broken))
			require.Error(t, err)
		})
	}
}
