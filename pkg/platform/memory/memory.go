// Package memory sets how a service's process trades memory for time.
package memory

import (
	"os"
	"runtime/debug"
)

const (
	// growth is how much garbage may stand beside what lives, in percent of that. What lives
	// between requests is a few megabytes, so that collecting at the usual 100 would cost
	// more than it frees.
	growth = 200
	// Limit is the heap, in bytes, from which on memory counts more than time.
	Limit = 96 << 20
)

// Tune sets both for a program that serves, unless its environment has GOGC or
// GOMEMLIMIT, which then count. Call it first in main.
func Tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(Limit)
	}
}
