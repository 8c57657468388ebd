package wiring

import (
	"context"

	"verbatim.internal/pkg/platform/migration"
	"verbatim.internal/services/auditview/internal/adapters/adminapi"
	"verbatim.internal/services/auditview/internal/adapters/postgres"
	"verbatim.internal/sql/auditview"
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
	Current int64    `json:"current"`
	Pending []string `json:"pending"`
}

// RelayState is shown and never gates: what is parked is no reason to refuse reads.
type RelayState struct {
	ParkedStreams  int   `json:"parked_streams"`
	ParkedMessages int64 `json:"parked_messages"`
}

type readiness struct {
	reads databaseOfReads
	store *postgres.Store
}

var _ adminapi.Readiness = readiness{}

// Ready implements adminapi.Readiness: the database answers and has every migration.
func (r readiness) Ready(ctx context.Context) (any, bool) {
	report := Readiness{Status: "not_ready", Database: "unreachable", Migrations: Migrations{Pending: []string{}}}
	state, err := migration.Status(ctx, r.reads.Pool, auditview.FS)
	if err != nil {
		return report, false
	}
	report.Database = "ok"
	report.Migrations.Current = state.Current
	report.Migrations.Pending = append(report.Migrations.Pending, state.Pending...)
	if len(state.Pending) > 0 {
		return report, false
	}
	report.Status = "ready"
	if parked, err := r.store.Parked(ctx); err == nil {
		report.Relay.ParkedStreams = len(parked)
		for _, p := range parked {
			report.Relay.ParkedMessages += p.Count
		}
	}
	return report, true
}
