package identity

import "time"

// systemNow is the clock of the machine.
func systemNow() time.Time { return time.Now() }
