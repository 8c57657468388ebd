package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
	"verbatim.internal/test/integration/internal/kit"
)

// Texts are in the archive's events and in the read model, tokens nowhere at all:
// not in logs (which every test of this package checks at its end), metrics,
// errors, the outbox, or what operators are shown.
func TestTextsAndSecretsStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{HTTP: true})
	id := d.NewArchive(t, kit.SessionID(1), kit.SessionID(2))
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-1", 1, 20)...)
	d.WaitFor(t, id, 20)

	// Refused and failing requests that carry texts and tokens, too.
	changed := kit.Turn("turn-1", 1, 20)
	changed[3].Content += " changed"
	conflict, err := d.Append(t.Context(), kit.SessionID(1), id, changed...)
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, conflict.Status)
	bearer := d.Bearer(kit.SessionID(1))
	invalid := d.Ingest.Must(kit.Request{
		Method: http.MethodPost, Path: kit.ArchivesPath + "/" + id + "/events?access_token=" + bearer, Bearer: bearer,
		Body: []byte(`{"events":[{"event_id":"e","` + kit.Canary + `":"` + bearer + `"}]}`),
	})
	require.Equal(t, http.StatusBadRequest, invalid.Status)

	// A message that can never be applied, made of texts and tokens, is parked.
	require.NoError(t, kit.Exec(t, d.IngestDB.OwnerDSN, `insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		values (0, 'archive', 'poison', 1, 'verbatim.archive.created.v1', '{"header":"`+kit.Canary+`"}', 0, now())`))
	var relay auditview.Relay
	kit.Eventually(t, patience, func() error {
		relay, err = auditview.RelayStatus(t.Context(), config.Secret(d.AuditviewDB.ServiceDSN))
		if err == nil && len(relay.Parked) == 0 {
			err = fmt.Errorf("nothing is parked")
		}
		return err
	})
	waiting, err := ingest.RelayStatus(t.Context(), config.Secret(d.IngestDB.ServiceDSN))
	require.NoError(t, err)

	shown := []string{string(conflict.Body), string(invalid.Body), fmt.Sprintf("%+v %+v", relay, waiting)}
	for _, url := range d.MetricsURLs() {
		shown = append(shown, get(t, url+"/metrics"))
	}
	for _, endpoint := range []*kit.Endpoint{d.Ingest, d.Auditview} {
		shown = append(shown, string(endpoint.Must(kit.Request{Method: http.MethodGet, Path: "/readyz"}).Body))
	}
	for _, text := range shown {
		for _, secret := range append(d.Secrets(), kit.Canary) {
			assert.NotContains(t, text, secret)
		}
	}
	list := d.Auditview.Must(kit.Request{Method: http.MethodGet, Path: "/admin/api/conversation-audits", Bearer: d.Bearer(kit.MetadataViewer)})
	assert.NotContains(t, string(list.Body), kit.Canary, "a list has no text")
}

// Every table of both databases is searched: a token, a code and a verifier are in none,
// a text only where texts live. What a run was asked and answered is no such place.
func TestTheDatabasesHoldNoTokenAndTextsInOnePlaceEach(t *testing.T) {
	t.Parallel()
	d := kit.Start(t, kit.Options{})
	id := d.NewArchive(t, kit.SessionID(1), kit.SessionID(2))
	d.MustAppend(t, kit.SessionID(1), id, kit.Turn("turn-1", 1, 20)...)
	d.WaitFor(t, id, 20)
	agent := d.SignIn(t, "app", "orders")
	agent.Refresh(t)
	run := agent.OpenTurn(t, "orders", kit.NewTurn("conversation-1", "turn-1"))
	events := kit.ToolCall(kit.UUID(), "2026-06-08T09:00:01Z")
	events[0].Metadata["arguments"] = kit.Canary
	events[1].Metadata["path"] = "/v1/orders?q=" + kit.Canary
	agent.MustRecordTrace(t, run.RunID, events...)
	agent.MustComplete(t, run.RunID, kit.NewCompletion("turn-1"))
	kit.Eventually(t, patience, func() error {
		trace := d.Admin(fmt.Sprintf("/threads/%d/agent-runs/%s/trace", run.ThreadID, run.RunID))
		if !strings.Contains(string(trace.Body), `"event":"run.completed"`) {
			return fmt.Errorf("status %d, the run's end is not there", trace.Status)
		}
		return nil
	})
	for dsn, home := range map[string]string{
		d.IngestDB.AdminDSN:    "bz_agent_conversation_events",
		d.AuditviewDB.AdminDSN: "archive_events",
	} {
		conn := kit.Connect(t, dsn)
		rows, err := conn.Query(t.Context(), `select table_name::text from information_schema.tables where table_schema = 'public'`)
		require.NoError(t, err)
		var tables []string
		for rows.Next() {
			var table string
			require.NoError(t, rows.Scan(&table))
			tables = append(tables, table)
		}
		require.NoError(t, rows.Err())
		require.Contains(t, tables, home)
		for _, table := range tables {
			holds := func(text string) (found bool) {
				query := `select exists (select from ` + table + ` x where strpos(x::text, $1) > 0)`
				require.NoError(t, conn.QueryRow(t.Context(), query, text).Scan(&found))
				return found
			}
			assert.Equal(t, table == home, holds(kit.Canary), "a text in %s", table)
			for _, secret := range d.Secrets() {
				assert.False(t, holds(secret), "a secret in %s", table)
			}
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "go_goroutines", "these are metrics")
	return string(body)
}
