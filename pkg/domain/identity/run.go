package identity

import "time"

// Run is one authorized execution. It never changes once it is stored.
type Run struct {
	RunID                UUID
	SessionID            UUID
	Binding              Binding
	ThreadID             int64 // 1 to 2^53-1
	ClientConversationID string
	ClientTurnID         string
	CreatedAt            time.Time
}
