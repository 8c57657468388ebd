package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// traceVector is an execution as an orchestrator tells of it, and what must come of it.
type traceVector struct {
	Name      string                    `json:"name"`
	Lineage   map[string]*string        `json:"lineage"`
	Tasks     map[string]map[string]any `json:"tasks"`
	Approvals map[string]map[string]any `json:"approvals"`
	Events    []kit.ExecutionEvent      `json:"events"`
	Records   []json.RawMessage         `json:"records"`
	Replay    []string                  `json:"replay"`
}

func traceVectors(t *testing.T) []traceVector {
	t.Helper()
	raw, err := os.ReadFile("testdata/audit-trace.json")
	require.NoError(t, err)
	var file struct {
		Vectors []traceVector `json:"vectors"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	require.NotEmpty(t, file.Vectors)
	return file.Vectors
}

func (v traceVector) swarmID() string { return *v.Lineage["swarm_id"] }

// opening is the lineage but for the id in the path; what is unknown is null.
func (v traceVector) opening() map[string]*string {
	opening := maps.Clone(v.Lineage)
	delete(opening, "swarm_id")
	return opening
}

// records returns the bytes of the records: those of the file, in one line each.
func (v traceVector) records(t *testing.T) (records []string) {
	t.Helper()
	for _, raw := range v.Records {
		var line bytes.Buffer
		require.NoError(t, json.Compact(&line, raw))
		records = append(records, line.String())
	}
	return records
}

// call is something that an orchestrator tells.
type call struct {
	body  any
	parts []string
}

// calls returns what tells the vector, in an order of the seed's choice. Only the order of
// the events is the vector's: they come in batches of any size, some repeated, and all
// that is told of a task or an approval comes at any time, some of it in parts before
// the whole.
func (v traceVector) calls(random *rand.Rand) []call {
	var calls []call
	for rest := v.Events; len(rest) > 0; {
		n := 1 + random.IntN(len(rest))
		batch := call{map[string]any{"events": rest[:n]}, []string{"events"}}
		calls = append(calls, slices.Repeat([]call{batch}, 1+random.IntN(2))...)
		rest = rest[n:]
	}
	between := func(from int, c call) (at int) {
		at = from + random.IntN(len(calls)-from+1)
		calls = slices.Insert(calls, at, c)
		return at + 1
	}
	for _, facts := range []struct {
		kind string
		all  map[string]map[string]any
	}{{kit.Tasks, v.Tasks}, {kit.Approvals, v.Approvals}} {
		for _, id := range slices.Sorted(maps.Keys(facts.all)) {
			whole, at := facts.all[id], 0
			for range random.IntN(3) {
				part := maps.Clone(whole)
				maps.DeleteFunc(part, func(name string, _ any) bool { return name == "decision" || random.IntN(2) == 0 })
				at = between(at, call{part, []string{facts.kind, id}})
			}
			for range 1 + random.IntN(2) {
				at = between(at, call{whole, []string{facts.kind, id}})
			}
		}
	}
	return calls
}

// tell opens an execution and tells the vector in an order of the seed's choice.
func (v traceVector) tell(t *testing.T, o *kit.Orchestrator, random *rand.Rand) {
	t.Helper()
	o.Open(t, v.opening())
	for _, c := range v.calls(random) {
		answer := o.Must(c.body, c.parts...)
		require.Equal(t, http.StatusOK, answer.Status, "%v: %s", c.parts, answer.Body)
	}
}

// await waits until the vector is served to the byte, and compares all that is served.
func (v traceVector) await(t *testing.T, view kit.View) {
	t.Helper()
	want := v.records(t)
	kit.Eventually(t, patience, func() error {
		got, err := view.Audit(0)
		if err == nil && !slices.Equal(want, got) {
			err = fmt.Errorf("served are %q, want %q", got, want)
		}
		return err
	})
	v.check(t, view)
}

// check compares the vector with the trace and its replay in pages of every size, and with
// the whole as a stream.
func (v traceVector) check(t *testing.T, view kit.View) {
	t.Helper()
	want := v.records(t)
	for _, limit := range []int{1, 2, 3, 7, len(want), 1000} {
		got, err := view.Audit(limit)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%d a page", limit)
		inJSON, asText, err := view.Replay(limit)
		require.NoError(t, err)
		assert.ElementsMatch(t, v.Replay, inJSON)
		assert.Equal(t, inJSON, asText)
		if len(v.Replay) > 0 {
			assert.Equal(t, v.Replay, inJSON, "%d a page", limit)
		}
	}
	got, err := view.Stream()
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// The vectors, told to ingest and read from auditview, byte by byte. Several clients tell
// the same execution, each in an order of its own.
func TestAuditTraceVectors(t *testing.T) {
	t.Parallel()
	const clients = 6
	for name, http := range map[string]bool{"in process": false, "over http": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := kit.Seed(t)
			registry := kit.NewRegistry(0)
			registry.Clients = nil
			for n := range clients {
				registry.Clients = append(registry.Clients, kit.NewClient(fmt.Sprintf("client-%d", n)))
			}
			d := kit.Start(t, kit.Options{HTTP: http, Registry: registry.Encode()})
			vectors := traceVectors(t)
			for n, client := range registry.Clients {
				random := kit.Choices(seed, n)
				for _, v := range vectors {
					v.tell(t, d.Orchestrator(client.AppID, v.swarmID()), random)
				}
			}
			for _, client := range registry.Clients {
				for _, v := range vectors {
					v.await(t, d.View(client.AppID, v.swarmID()))
				}
			}
			for _, v := range vectors {
				requireCandidates(t, kit.View{Auditview: d.Auditview, ID: v.swarmID()}, clients)
			}
		})
	}
}

// requireCandidates requires that an id means n executions.
func requireCandidates(t *testing.T, view kit.View, n int) {
	t.Helper()
	var list struct {
		Candidates []struct {
			ClientAppID string `json:"client_app_id"`
			SwarmID     string `json:"swarm_id"`
		} `json:"candidates"`
	}
	for _, what := range []string{"audit", "replay", "events", "logs", "lineage", "approvals", "grants", "diagnostics"} {
		view.Get(what, "").Decode(t, http.StatusMultipleChoices, &list)
		require.Len(t, list.Candidates, n, what)
	}
}
