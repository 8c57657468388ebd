package registryfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/services/ingest/internal/registryfile"
)

// noID is for sessions that name themselves.
func noID() identity.UUID { panic("an id is drawn, though one is given") }

// entries returns the file as JSON, entry by entry, each without its key when it has one.
func entries(t *testing.T, kind, key string) (keys []string, bodies [][]byte) {
	t.Helper()
	var file map[string][]map[string]any
	asJSON, err := yaml.YAMLToJSON([]byte(yamlFile))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(asJSON, &file))
	for _, entry := range file[kind] {
		keys = append(keys, fmt.Sprint(entry[key]))
		delete(entry, key)
		body, err := json.Marshal(entry)
		require.NoError(t, err)
		bodies = append(bodies, body)
	}
	return keys, bodies
}

// Both doors lead to the same entries.
func TestABodyIsTheFilesEntry(t *testing.T) {
	t.Parallel()
	r, err := registryfile.Parse([]byte(yamlFile))
	require.NoError(t, err)

	keys, bodies := entries(t, "clients", "app_id")
	client, err := registryfile.ParseClient(keys[0], bodies[0])
	require.NoError(t, err)
	require.Equal(t, r.Clients[0], client)

	keys, bodies = entries(t, "routes", "route_key")
	route, err := registryfile.ParseRoute(keys[0], bodies[0])
	require.NoError(t, err)
	require.Equal(t, r.Routes[0], route)

	_, bodies = entries(t, "sessions", "")
	session, err := registryfile.ParseSession(bodies[0], noID)
	require.NoError(t, err)
	require.Equal(t, r.Sessions[0], session)

	_, bodies = entries(t, "sessions", "session_id")
	drawn := func() identity.UUID { return "423e4567-e89b-42d3-a456-426614174001" }
	session, err = registryfile.ParseSession(bodies[0], drawn)
	require.NoError(t, err)
	require.Equal(t, drawn(), session.ID)
}

func TestABodyThatBreaksARuleIsRefusedWithoutQuotingIt(t *testing.T) {
	t.Parallel()
	const quoted = "quoted-by-nobody"
	_, err := registryfile.ParseClient(quoted+" ", []byte(`{"name":"","token":"`+quoted+`"}`))
	require.Equal(t, refusal.InvalidRequest, refusal.CodeOf(err))
	require.NotContains(t, err.Error(), quoted)
	require.ErrorContains(t, err, "app_id is not a resource key; name has 1 to 191 characters; a token is bhk_")

	_, err = registryfile.ParseRoute("orders", []byte(`{"name":"a","audience":{"tenants":["a"]}}`))
	require.ErrorIs(t, err, httpapi.ErrInvalid, "lists that would admit everybody")
	_, err = registryfile.ParseRoute("orders", []byte(`{"name":"a","audience":{"enabled":true,"tenant":["a"]}}`))
	require.ErrorIs(t, err, httpapi.ErrInvalid)

	_, err = registryfile.ParseRuns([]byte(`{"runs":[` + strings.Repeat(`{},`, 199) + `{}]}`))
	require.ErrorContains(t, err, "and ")
	require.Less(t, len(err.Error()), 1000)
	_, err = registryfile.ParseRuns([]byte(`{"runs":[` + strings.Repeat(`{},`, 200) + `{}]}`))
	require.ErrorIs(t, err, httpapi.ErrInvalid)
}

func FuzzBodies(f *testing.F) {
	f.Add("shop", []byte(`{"name":"Shop","allowed_routes":["*"],"enabled":false}`))
	f.Add("orders", []byte(`{"name":"Orders","audience":{"enabled":true,"roles":["a"]},"instructions":"x"}`))
	f.Add("", []byte(`{"client_app_id":"shop","principal":{"id":"op"},"access_expires_at":"2099-01-01T00:00:00Z"}`))
	f.Add("", []byte(`{"runs":[{"run_id":"223e4567-e89b-42d3-a456-426614174001","thread_id":1}]}`))
	f.Fuzz(func(t *testing.T, key string, body []byte) {
		known := func(err error) {
			if err != nil && refusal.CodeOf(err) != refusal.InvalidRequest {
				require.ErrorIs(t, err, httpapi.ErrInvalid)
			}
		}
		_, err := registryfile.ParseClient(key, body)
		known(err)
		_, err = registryfile.ParseRoute(key, body)
		known(err)
		_, err = registryfile.ParseSession(body, func() identity.UUID { return "423e4567-e89b-42d3-a456-426614174001" })
		known(err)
		runs, err := registryfile.ParseRuns(body)
		known(err)
		require.True(t, err != nil || len(runs) >= 1 && len(runs) <= 200)
	})
}
