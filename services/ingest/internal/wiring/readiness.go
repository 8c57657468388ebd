package wiring

import (
	"context"
	"time"

	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/services/ingest/internal/adapters/outbox"
	"verbatim.internal/services/ingest/internal/adapters/postgres"
	"verbatim.internal/sql"
)

// Readiness is the answer of /readyz.
type Readiness struct {
	Status     string     `json:"status"`   // ready or not_ready
	Database   string     `json:"database"` // ok or unreachable
	Migrations Migrations `json:"migrations"`
	Relay      RelayState `json:"relay"`
}

// Migrations tells what of the schema is there.
type Migrations struct {
	Current        int64    `json:"current"`
	Pending        []string `json:"pending"`
	Archive        bool     `json:"archive"`
	MemberBindings bool     `json:"member_bindings"`
}

// RelayState is shown and never gates: a lagging relay is no reason to refuse writes.
type RelayState struct {
	Partitions  int   `json:"partitions"`   // read by this replica
	WaitingRows int64 `json:"waiting_rows"` // counted up to countAtMost
}

const (
	// readyPatience bounds the whole answer, relayPatience the part that only informs.
	readyPatience = 2 * time.Second
	relayPatience = 500 * time.Millisecond
	countAtMost   = 10_000
)

// readiness is true when the database answers and has the registry and the
// outbox. Without the archive's tables the service is ready too: it answers
// capabilities, and says what is missing.
func readiness(db databases, schema *postgres.Schema, relay *relay) func(context.Context) (any, bool) {
	return func(ctx context.Context) (any, bool) {
		ctx, cancel := context.WithTimeout(ctx, readyPatience)
		defer cancel()
		r := Readiness{Status: "not_ready", Database: "unreachable", Migrations: Migrations{Pending: []string{}}}
		base, err := schema.Base(ctx)
		if err != nil {
			return r, false
		}
		r.Database = "ok"
		caps, err := schema.Probe(ctx)
		if err != nil {
			return r, false
		}
		r.Migrations.Archive, r.Migrations.MemberBindings = caps.Archive, caps.MemberBindings
		if state, err := migration.Status(ctx, db.operations.Pool, sql.FS); err == nil {
			r.Migrations.Current = state.Current
			r.Migrations.Pending = append(r.Migrations.Pending, state.Pending...)
		}
		if !base {
			return r, false
		}
		r.Status = "ready"
		r.Relay.Partitions = len(relay.leases.Held())
		asking, stop := context.WithTimeout(ctx, relayPatience)
		defer stop()
		if waiting, err := outbox.CountWaiting(asking, db.operations.Pool, countAtMost); err == nil {
			r.Relay.WaitingRows = waiting
		}
		return r, true
	}
}
