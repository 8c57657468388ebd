package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/services/ingest/internal/app"
)

// schemaFreshness is how long an answer about the schema holds.
const schemaFreshness = time.Second

// probe asks the catalog for the tables of 057, the columns of 058 and the sequence of
// 063, by what is there and not by what a migration table says.
const probe = `
	select
		to_regclass('bz_agent_conversation_audits') is not null
			and to_regclass('bz_agent_conversation_members') is not null
			and to_regclass('bz_agent_conversation_events') is not null
			and to_regclass('bz_agent_conversation_run_links') is not null,
		4 = (select count(*) from pg_attribute
			where not attisdropped and attnum > 0 and (
				attrelid = to_regclass('bz_agent_conversation_audits') and attname = 'membership_version'
				or attrelid = to_regclass('bz_agent_conversation_members') and attname in ('client_app_id', 'route_key', 'client_name'))),
		to_regclass('bz_authorization_epoch') is not null`

// Schema implements [app.Schema]. It asks the database when somebody wants to know
// and the last answer is older than a second.
type Schema struct {
	pool  *pgxpool.Pool
	clock app.Clock

	mu    sync.Mutex
	caps  app.Capabilities
	until time.Time
}

// NewSchema returns a live view of the pool's database.
func NewSchema(pool *pgxpool.Pool, clock app.Clock) *Schema {
	return &Schema{pool: pool, clock: clock}
}

// Capabilities implements [app.Schema].
func (s *Schema) Capabilities(ctx context.Context) (app.Capabilities, error) {
	s.mu.Lock()
	caps, fresh := s.caps, s.clock.Now().Before(s.until)
	s.mu.Unlock()
	if fresh {
		return caps, nil
	}
	return s.Probe(ctx)
}

// Probe asks the database now, whatever was known.
func (s *Schema) Probe(ctx context.Context) (app.Capabilities, error) {
	var caps app.Capabilities
	if err := s.pool.QueryRow(ctx, probe).Scan(&caps.Archive, &caps.MemberBindings, &caps.Epoch); err != nil {
		return app.Capabilities{}, err
	}
	caps.MemberBindings = caps.MemberBindings && caps.Archive
	s.mu.Lock()
	s.caps, s.until = caps, s.clock.Now().Add(schemaFreshness)
	s.mu.Unlock()
	return caps, nil
}

// Base reports whether the tables that everything stands on are there: registry and outbox.
func (s *Schema) Base(ctx context.Context) (bool, error) {
	var there bool
	err := s.pool.QueryRow(ctx, `select to_regclass('bz_agent_session_tokens') is not null and to_regclass('outbox') is not null`).Scan(&there)
	return there, err
}
