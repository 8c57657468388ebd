package app

// AgentAuth are the use cases of Agent Auth v1. Safe for concurrent use.
type AgentAuth struct{}

// NewAgentAuth returns the use cases over their ports.
func NewAgentAuth() *AgentAuth { return &AgentAuth{} }

// ClientAuthenticator finds the client of a client token. Safe for concurrent use.
type ClientAuthenticator struct{}

// NewClientAuthenticator returns an authenticator over stored client tokens.
func NewClientAuthenticator() *ClientAuthenticator { return &ClientAuthenticator{} }
