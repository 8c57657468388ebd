// Package clock is the one place that reads the machine's clock.
package clock

import "time"

// Now returns the machine's time in UTC, with its monotonic reading for durations.
func Now() time.Time { return time.Now().UTC() }
