package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest"
	"verbatim.internal/test/integration/internal/kit"
)

// commit writes, in one transaction as ingest does, what a message of the linked run is
// about, the run's version and the outbox row.
func commit(t *testing.T, d *kit.Deployment, version int, messageType, payload, statement string, args ...any) {
	t.Helper()
	conn := kit.Connect(t, d.IngestDB.ServiceDSN)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `update bz_agent_client_runs set stream_version = $2 where run_id = $1`, linkedRun, version)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `insert into outbox (partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
		values ($1, 'run', $2, $3, $4, $5, 0, now())`, transport.Partition(linkedRun), linkedRun, version, messageType, payload)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
}

// commitTrace commits trace events of the linked run.
func commitTrace(t *testing.T, d *kit.Deployment, version, first, last int) {
	t.Helper()
	commit(t, d, version, "verbatim.run.trace_recorded.v1", fmt.Sprintf(`{"first_position":%d,"last_position":%d}`, first, last),
		`insert into bz_agent_run_trace_events
		select $1, n, 'event-' || n, 'tool.called', '2026-03-04T05:06:07.25Z', gen_random_uuid(), '{"tool":"orders.search"}', 1, sha256('x'), now()
		from generate_series($2::int, $3::int) as n`, linkedRun, first, last)
}

// projected returns every byte that auditview has of runs and of changes of the registry.
func projected(t *testing.T, d *kit.Deployment) map[string]string {
	t.Helper()
	conn := kit.Connect(t, d.AuditviewDB.AdminDSN)
	content := map[string]string{}
	for _, table := range []string{"runs", "run_trace_events", "registry_changes"} {
		var rows string
		err := conn.QueryRow(t.Context(), `select coalesce(string_agg(t::text, e'\n' order by t::text), '') from `+table+` t`).Scan(&rows)
		require.NoError(t, err)
		content[table] = rows
	}
	return content
}

func awaitRun(t *testing.T, d *kit.Deployment, version int) {
	t.Helper()
	kit.Eventually(t, recoveryLimit, func() error {
		n := kit.Count(t, d.AuditviewDB.AdminDSN, `select coalesce((select version from streams where stream_id = $1), 0)`, linkedRun)
		if n != version {
			return fmt.Errorf("the run is at version %d", n)
		}
		return nil
	})
}

// What auditview has of runs and changes of the registry comes back, by a gap that heals
// and by a rebuild, as the messages had brought it one by one.
func TestRunsAndChangesOfTheRegistryComeBack(t *testing.T) {
	t.Parallel()
	for name, http := range map[string]bool{"in process": false, "http": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := kit.Start(t, kit.Options{Registry: linkedRegistry(), HTTP: http})
			change := kit.UUID()
			require.NoError(t, kit.Exec(t, d.IngestDB.ServiceDSN, `insert into bz_registry_changes
				(change_id, kind, name, action, fields, changes, actor_kind, actor_name, recorded_at)
				values ($1, 'route', 'orders', 'updated', '{name}', '[{"field":"name","from":"A","to":"K\u00e4ufer"}]', 'controller', 'console', now())`, change))
			require.NoError(t, kit.Exec(t, d.IngestDB.ServiceDSN, `insert into outbox
				(partition, stream_kind, stream_id, version, type, payload, text_bytes, created_at)
				values ($1, 'registry_change', $2, 1, 'verbatim.registry_change.recorded.v1', '{}', 0, now())`, transport.Partition(change), change))
			commitTrace(t, d, 2, 1, 1200)
			commit(t, d, 3, "verbatim.run.completed.v1", `{}`, `insert into bz_agent_run_completions
				select run_id, thread_id, 'message-1', sha256('request'), sha256('content'), 'completed', 'model-4.1', null,
					'{"cost_usd":0.0125,"total_tokens":1200}', now()
				from bz_agent_client_runs where run_id = $1`, linkedRun)
			awaitRun(t, d, 3)
			lose := func() {
				loseReadModel(t, d)
				if http { // auditview has another port now
					d.StopIngest()
					d.StartIngest()
				}
			}

			lose()
			commitTrace(t, d, 4, 1201, 1203)
			awaitRun(t, d, 4)
			healed := projected(t, d)
			assert.Equal(t, 1203, strings.Count(healed["run_trace_events"], "orders.search"))
			assert.Contains(t, healed["runs"], `,completed,model-4.1,,"{""cost_usd"":0.0125,""total_tokens"":1200}",`)

			rebuild := func() map[string]string {
				_, err := ingest.Rebuild(t.Context(), config.Secret(d.IngestDB.ServiceDSN), "")
				require.NoError(t, err)
				kit.Eventually(t, recoveryLimit, func() error {
					if n := kit.Count(t, d.IngestDB.AdminDSN, `select count(*) from outbox`); n > 0 {
						return fmt.Errorf("%d rows wait", n)
					}
					return nil
				})
				return projected(t, d)
			}
			whole := rebuild()
			assert.Equal(t, healed["runs"], whole["runs"])
			assert.Equal(t, healed["run_trace_events"], whole["run_trace_events"])
			assert.Contains(t, whole["registry_changes"], change)
			assert.Contains(t, whole["registry_changes"], `K\\u00e4ufer`)
			lose()
			assert.Equal(t, whole, rebuild())
		})
	}
}
