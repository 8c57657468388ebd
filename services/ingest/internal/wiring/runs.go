package wiring

import "verbatim.internal/services/ingest/internal/app"

func newRuns() *app.Runs { return app.NewRuns() }
