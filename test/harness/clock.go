package harness

import (
	"math"
	"time"
	"unsafe"
)

// epoch is when virtual time begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// forever is a limit that is never reached.
const forever = math.MaxInt64

// never is how long nobody waits: such timers keep nothing from being at rest.
const never = 1 << 61

// stamp is the time after so many nanoseconds, on a wall clock that was moved. As with the
// machine's clock, the move is not seen by Sub.
func stamp(passed, moved int64) time.Time {
	wall := epoch.Add(time.Duration(passed + moved))
	if !monotonicKnown {
		return wall
	}
	return monotonic(wall, passed+1)
}

// layout is that of time.Time with a monotonic reading, which can be had in no other way than
// from the machine's clock.
type layout struct {
	wall uint64
	ext  int64
	loc  *time.Location
}

// Parts of layout.wall.
const (
	hasMonotonic = 1 << 63
	secondsShift = 30
	// wallBegin is the year 1885, in seconds since 1970.
	wallBegin = -2682288000
)

// monotonic adds a monotonic reading to a time.
func monotonic(t time.Time, reading int64) time.Time {
	l := layout{wall: hasMonotonic | uint64(t.Unix()-wallBegin)<<secondsShift | uint64(t.Nanosecond()), ext: reading}
	return *(*time.Time)(unsafe.Pointer(&l))
}

// monotonicKnown tells whether this version of Go still lays times out that way. If not,
// moves of the wall clock are seen by Sub.
var monotonicKnown = func() bool {
	if unsafe.Sizeof(time.Time{}) != unsafe.Sizeof(layout{}) {
		return false
	}
	a, b := monotonic(epoch, 1), monotonic(epoch.Add(time.Hour), 1+int64(time.Second))
	return a.Round(0).Equal(epoch) && b.Round(0).Equal(epoch.Add(time.Hour)) && b.Sub(a) == time.Second
}()
