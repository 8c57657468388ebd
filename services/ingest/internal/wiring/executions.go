package wiring

import (
	"verbatim.internal/services/ingest/internal/adapters/postgres"
	"verbatim.internal/services/ingest/internal/adapters/system"
	"verbatim.internal/services/ingest/internal/app"
)

func newExecutions(store *postgres.UnitOfWork) *app.Executions {
	return app.NewExecutions(postgres.NewExecutions(store), system.Clock{}, system.IDs{})
}
