// Package clock is the one place of the command that reads the system's clock.
package clock

import "time"

// Now returns the current time in UTC.
func Now() time.Time { return time.Now().UTC() }
