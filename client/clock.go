package client

import "time"

// systemTime is the one place that reads the machine's clock.
func systemTime() time.Time { return time.Now() }
