package identity

import (
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// systemNow is the clock of the machine.
func systemNow() time.Time { return supervision.RealClock().Now() }
