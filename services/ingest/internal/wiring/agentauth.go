package wiring

import "verbatim.internal/services/ingest/internal/app"

func newAgentAuth() *app.AgentAuth { return app.NewAgentAuth() }

func newClientAuthenticator() *app.ClientAuthenticator { return app.NewClientAuthenticator() }
