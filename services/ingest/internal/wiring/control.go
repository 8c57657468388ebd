package wiring

import (
	"log/slog"
	"net/http"

	"verbatim.internal/services/ingest/internal/adapters/controlapi"
	"verbatim.internal/services/ingest/internal/adapters/postgres"
	"verbatim.internal/services/ingest/internal/adapters/system"
	"verbatim.internal/services/ingest/internal/app"
	"verbatim.internal/services/ingest/internal/config"
)

// newControl returns the registry over HTTP. Its writes have a pool of their own: a
// revocation must not queue behind the appends that it is to stop.
func newControl(cfg config.Config, log *slog.Logger, db databases, relay *relay) http.Handler {
	control := app.NewControl(
		postgres.NewRegistry(db.control.Gorm, relay.waker), postgres.NewRegistryReader(db.operations.Gorm), system.Clock{},
	)
	return controlapi.New(controlapi.Options{Control: control, IDs: system.IDs{}, RequestTimeout: cfg.RequestTimeout, Log: log})
}
