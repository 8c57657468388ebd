package wiring

import (
	"verbatim.internal/services/ingest/internal/adapters/postgres"
	"verbatim.internal/services/ingest/internal/adapters/system"
	"verbatim.internal/services/ingest/internal/app"
)

func newRuns(store *postgres.UnitOfWork) *app.Runs {
	return app.NewRuns(postgres.NewRuns(store), system.Clock{}, system.IDs{})
}
