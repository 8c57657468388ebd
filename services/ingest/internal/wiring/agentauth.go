package wiring

import (
	"verbatim.internal/services/ingest/internal/adapters/postgres"
	"verbatim.internal/services/ingest/internal/adapters/system"
	"verbatim.internal/services/ingest/internal/app"
)

func newAgentAuth(db databases, relay *relay) *app.AgentAuth {
	return app.NewAgentAuth(postgres.NewAgentAuth(db.auth.Gorm, relay.waker), postgres.NewAgentAuthReader(db.operations.Gorm),
		system.Clock{}, system.IDs{})
}

func newClientAuthenticator(db databases) *app.ClientAuthenticator {
	return app.NewClientAuthenticator(postgres.NewClientTokens(db.operations.Pool))
}
