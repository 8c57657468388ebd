package app

// Runs are the use cases of agents that open runs. Safe for concurrent use.
type Runs struct{}

// NewRuns returns the use cases over their ports.
func NewRuns() *Runs { return &Runs{} }
