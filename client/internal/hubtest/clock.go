package hubtest

import "time"

func systemTime() time.Time { return time.Now() }
