package harness

import (
	"math"
	"time"
)

// epoch is when virtual time begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// forever is a limit that is never reached.
const forever = math.MaxInt64

// stamp is the time after so many nanoseconds, on a wall clock that was moved.
func stamp(begin time.Time, passed, moved int64) time.Time {
	return begin.Add(time.Duration(passed + moved))
}
