package auditview_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/services/auditview/internal/historytest"
)

const changesPath = "/admin/api/registry-changes"

// change writes the change with a number.
func (r rows) change(number int64, kind, name, actorKind, actorName, changes string, fields ...string) {
	r.tb.Helper()
	action := "updated"
	if fields == nil {
		fields, action = []string{}, "created"
	}
	r.exec(`insert into registry_changes (change_id, number, kind, name, action, fields, changes, actor_kind, actor_name, recorded_at)
values (gen_random_uuid(), $1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		number, kind, name, action, fields, changes, actorKind, actorName, second(int(number)))
}

func numbersOf(r response) []float64 {
	numbers := []float64{}
	for _, item := range r.list("items") {
		n, _ := item["number"].(float64)
		numbers = append(numbers, n)
	}
	return numbers
}

func TestRegistryChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	empty := map[string]any{"schema": "verbatim.registry-changes.v1", "items": []any{}, "has_more": false, "next_before": nil}
	require.Equal(t, empty, b.get(t, metadata, changesPath).body)
	rows.change(3, "client", "crm-demo", "controller", "deployer", `[{"field":"name","from":"<CRM>","to":"CRM \u0026 more"},{"field":"enabled","from":null,"to":false}]`, "enabled", "name", "token")
	rows.change(2, "session", historytest.SessionID(1), "operator", "", `[]`)

	r := b.get(t, metadata, changesPath)
	require.Equal(t, http.StatusOK, r.status, r.text)
	items := r.list("items")
	require.Len(t, items, 2)
	for _, item := range items {
		require.Regexp(t, `^[0-9a-f-]{36}$`, item["change_id"])
		delete(item, "change_id")
	}
	require.Equal(t, []map[string]any{
		{
			"number": 3.0, "kind": "client", "name": "crm-demo", "action": "updated", "fields": []any{"enabled", "name", "token"},
			"changes": []any{
				map[string]any{"field": "name", "from": "<CRM>", "to": "CRM & more"},
				map[string]any{"field": "enabled", "from": nil, "to": false},
			},
			"actor": map[string]any{"kind": "controller", "name": "deployer"}, "recorded_at": "2026-03-04T05:06:10.123Z",
		},
		{
			"number": 2.0, "kind": "session", "name": historytest.SessionID(1), "action": "created", "fields": []any{}, "changes": []any{},
			"actor": map[string]any{"kind": "operator"}, "recorded_at": "2026-03-04T05:06:09.123Z",
		},
	}, items)
}

// What ingest sends is what is shown.
func TestRegistryChangesComeFromMessages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	created, updated := historytest.NewChange(1), historytest.NewChange(2)
	b.publish(t, historytest.ChangeMessage(t, updated, 0), historytest.ChangeMessage(t, created, 0))
	b.publish(t, historytest.ChangeMessage(t, updated, 1))
	require.Equal(t, []map[string]any{
		{
			"change_id": updated.ChangeID, "number": 2.0, "kind": "route", "name": "route-0", "action": "updated",
			"fields": []any{"instructions", "name"}, "changes": []any{map[string]any{"field": "name", "from": nil, "to": "Röute <2>"}},
			"actor": map[string]any{"kind": "controller", "name": "console"}, "recorded_at": "2026-03-04T05:06:09.123Z",
		},
		{
			"change_id": created.ChangeID, "number": 1.0, "kind": "client", "name": "client-1", "action": "created",
			"fields": []any{}, "changes": []any{}, "actor": map[string]any{"kind": "operator"}, "recorded_at": "2026-03-04T05:06:08.123Z",
		},
	}, b.get(t, metadata, changesPath).list("items"))
}

func TestRegistryChangesAreFiltered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	long := strings.Repeat("界", 191)
	for n, entry := range map[int64][2]string{1: {"client", "crm"}, 2: {"route", "crm"}, 3: {"client", "shop"}, 4: {"run", long}, 5: {"controller", "a b&c"}, 6: {"client", "crm"}} {
		rows.change(n, entry[0], entry[1], "system", "", `[]`)
	}
	for query, want := range map[string][]float64{
		"":                                  {6, 5, 4, 3, 2, 1},
		"?kind=client":                      {6, 3, 1},
		"?kind=session":                     {},
		"?name=crm":                         {6, 2, 1},
		"?name=cr":                          {},
		"?name=CRM":                         {},
		"?name=crm&kind=client":             {6, 1},
		"?name=crm&kind=run":                {},
		"?name=crm&kind=client&before=6":    {1},
		"?name=crm&kind=client&limit=1":     {6},
		"?before=3":                         {2, 1},
		"?before=1":                         {},
		"?name=" + url.QueryEscape("a b&c"): {5},
		"?name=" + url.QueryEscape(long):    {4},
		"?name=%27%20or%201%3D1%20--":       {},
	} {
		r := b.get(t, metadata, changesPath+query)
		require.Equal(t, http.StatusOK, r.status, r.text)
		require.Equal(t, want, numbersOf(r), query)
	}
	for _, query := range []string{
		"?kind=", "?kind=clients", "?kind=CLIENT", "?kind=client&kind=client", "?kind=%zz", "?kind=client%00",
		"?name=", "?name=a&name=a", "?name=%00", "?name=%ff", "?name=" + url.QueryEscape(long+"x"),
	} {
		b.get(t, metadata, changesPath+query).fails(t, http.StatusBadRequest, "invalid_request")
	}
}

func TestRegistryChangesArePagedWhileNewOnesArrive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.rows(t)
	const changes = 103
	for n := int64(1); n <= changes; n++ {
		rows.change(n, "client", fmt.Sprintf("client-%d", n%2), "operator", "", `[]`)
	}
	for query, want := range map[string]struct {
		count int
		next  any
	}{
		"":                         {50, 54.0},
		"?limit=0":                 {50, 54.0},
		"?limit=1000":              {100, 4.0},
		"?limit=3&before=4":        {3, nil},
		"?limit=2&before=4":        {2, 2.0},
		"?name=client-1":           {50, 5.0},
		"?before=9007199254740991": {50, 54.0},
	} {
		r := b.get(t, metadata, changesPath+query)
		require.Len(t, r.list("items"), want.count, query)
		require.Contains(t, r.body, "next_before")
		require.Equal(t, want.next, r.body["next_before"], query)
		require.Equal(t, want.next != nil, r.body["has_more"], query)
	}
	next, before, arriving := float64(changes), "", int64(changes)
	for more := true; more; {
		r := b.get(t, metadata, changesPath+"?kind=client&limit=10"+before)
		for _, n := range numbersOf(r) {
			require.InDelta(t, next, n, 0)
			next--
		}
		arriving++
		rows.change(arriving, "client", "new", "operator", "", `[]`)
		if more, _ = r.body["has_more"].(bool); more {
			before = fmt.Sprintf("&before=%.0f", r.body["next_before"])
		}
	}
	require.Zero(t, next)
}
