package registryv1_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/registryv1"
)

var update = flag.Bool("update", false, "write the golden files")

var at = time.Date(2026, 3, 4, 5, 6, 7, 890123000, time.UTC)

func updated() registryv1.Change {
	return registryv1.Change{
		ChangeID: "523e4567-e89b-42d3-a456-426614174001", Number: 42,
		Kind: registryv1.KindRoute, Name: "customers", Action: registryv1.ActionUpdated,
		Fields: []string{"instructions", "name", "allowed_routes"},
		Changes: []registryv1.FieldChange{
			{Field: "name", From: jsontext.Value(`"店 <A>"`), To: jsontext.Value(`"Cust\u006fmers"`)},
			{Field: "allowed_routes", From: jsontext.Value(`null`), To: jsontext.Value(`["customers","orders"]`)},
		},
		Actor: registryv1.Actor{Kind: registryv1.ActorController, Name: "console"}, RecordedAt: at,
	}
}

func created() registryv1.Change {
	return registryv1.Change{
		ChangeID: "523e4567-e89b-42d3-a456-426614174002", Number: 1,
		Kind: registryv1.KindSession, Name: "123e4567-e89b-42d3-a456-426614174001", Action: registryv1.ActionCreated,
		Fields: []string{}, Changes: []registryv1.FieldChange{},
		Actor: registryv1.Actor{Kind: registryv1.ActorOperator}, RecordedAt: at,
	}
}

func TestChangesHaveStableBytes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]registryv1.Change{"updated": updated(), "created": created()} {
		data, err := registryv1.Marshal(c)
		require.NoError(t, err)
		path := filepath.Join("testdata", name+".json")
		if *update {
			require.NoError(t, os.WriteFile(path, data, 0o600))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), string(data))
		back, err := registryv1.Unmarshal(want)
		require.NoError(t, err)
		require.Equal(t, c, back)
	}
}

func TestValuesKeepTheirBytes(t *testing.T) {
	t.Parallel()
	data, err := registryv1.Marshal(updated())
	require.NoError(t, err)
	require.Contains(t, string(data), `"Cust\u006fmers"`)
}

func TestUnmarshalIsStrict(t *testing.T) {
	t.Parallel()
	data, err := registryv1.Marshal(updated())
	require.NoError(t, err)
	for name, change := range map[string]func(string) string{
		"unknown member":   func(s string) string { return strings.Replace(s, `{"change_id"`, `{"token":"secret","change_id"`, 1) },
		"duplicate member": func(s string) string { return strings.Replace(s, `"kind":`, `"kind":"run","kind":`, 1) },
		"other case":       func(s string) string { return strings.Replace(s, `"fields"`, `"Fields"`, 1) },
		"trailing data":    func(s string) string { return s + "{}" },
		"a list":           func(s string) string { return "[" + s + "]" },
		"invalid UTF-8":    func(s string) string { return strings.Replace(s, "console", "\xff", 1) },
		"cut off":          func(s string) string { return s[:len(s)-1] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := registryv1.Unmarshal(jsontext.Value(change(string(data))))
			require.ErrorIs(t, err, registryv1.ErrData)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	for field, changes := range map[string][]func(*registryv1.Change){
		"change_id": {
			func(c *registryv1.Change) { c.ChangeID = "x" },
			func(c *registryv1.Change) { c.ChangeID = strings.ToUpper(c.ChangeID) },
		},
		"number": {func(c *registryv1.Change) { c.Number = 0 }},
		"kind":   {func(c *registryv1.Change) { c.Kind = "token" }},
		"name": {
			func(c *registryv1.Change) { c.Name = "" },
			func(c *registryv1.Change) { c.Name = strings.Repeat("x", 192) },
			func(c *registryv1.Change) { c.Name = "\xff" },
		},
		"action": {func(c *registryv1.Change) { c.Action = "deleted" }},
		"fields": {
			func(c *registryv1.Change) { c.Fields[0] = "Name" },
			func(c *registryv1.Change) { c.Fields = slices.Repeat([]string{"name"}, 65) },
		},
		"changes": {
			func(c *registryv1.Change) { c.Changes[0].Field = "" },
			func(c *registryv1.Change) { c.Changes[0].From = nil },
			func(c *registryv1.Change) { c.Changes[0].To = jsontext.Value(`{`) },
			func(c *registryv1.Change) { c.Changes[1].To = jsontext.Value(`["a", "b"]`) },
			func(c *registryv1.Change) { c.Changes = slices.Repeat(c.Changes[:1], 65) },
		},
		"actor.kind": {func(c *registryv1.Change) { c.Actor.Kind = "administrator" }},
		"actor.name": {
			func(c *registryv1.Change) { c.Actor.Name = "" },
			func(c *registryv1.Change) { c.Actor.Kind = registryv1.ActorOperator },
			func(c *registryv1.Change) { c.Actor.Kind = registryv1.ActorSystem },
			func(c *registryv1.Change) { c.Actor.Name = strings.Repeat("x", 192) },
		},
		"recorded_at": {
			func(c *registryv1.Change) { c.RecordedAt = time.Time{} },
			func(c *registryv1.Change) { c.RecordedAt = at.Add(1) },
			func(c *registryv1.Change) { c.RecordedAt = at.In(time.FixedZone("", 3600)) },
		},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			for _, change := range changes {
				c := updated()
				require.NoError(t, c.Validate())
				change(&c)
				_, err := registryv1.Marshal(c)
				var broken *registryv1.FieldError
				require.ErrorAs(t, err, &broken)
				require.Equal(t, field, broken.Field)
			}
		})
	}
}

func TestEverybodyMayBeAnActor(t *testing.T) {
	t.Parallel()
	for kind, name := range map[string]string{
		registryv1.ActorOperator: "", registryv1.ActorSystem: "", registryv1.ActorController: "console",
		registryv1.ActorClient: "crm-demo", registryv1.ActorSession: created().Name,
	} {
		c := created()
		c.Actor = registryv1.Actor{Kind: kind, Name: name}
		require.NoError(t, c.Validate())
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, name := range []string{"updated", "created"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := registryv1.Unmarshal(data)
		if err != nil {
			return
		}
		once, err := registryv1.Marshal(c)
		require.NoError(t, err)
		back, err := registryv1.Unmarshal(once)
		require.NoError(t, err)
		twice, err := registryv1.Marshal(back)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice)) // a list that is null is written as an empty one
	})
}
