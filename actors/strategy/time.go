package strategy

import (
	"math"
	"time"
)

// Time is an instant: microseconds since 1970, UTC. It is what the API's precise times can hold, so a record that was stored and
// read back is the same record.
type Time int64

// The ends of time.
const (
	minTime Time = math.MinInt64
	maxTime Time = math.MaxInt64
)

// TimeOf gives the instant of t, cut to the microsecond.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// UTC gives the instant as the standard library has it.
func (t Time) UTC() time.Time { return time.UnixMicro(int64(t)).UTC() }

// String is the instant for people.
func (t Time) String() string { return t.UTC().Format(time.RFC3339Nano) }

// Add gives the instant d later; false when there is no such instant.
func (t Time) Add(d time.Duration) (Time, bool) {
	us := Time(d.Microseconds())
	sum := t + us
	return sum, (us >= 0) == (sum >= t)
}

// After is Add that stops at the ends of time.
func (t Time) After(d time.Duration) Time {
	sum, ok := t.Add(d)
	switch {
	case ok:
		return sum
	case d < 0:
		return minTime
	}
	return maxTime
}

// sub gives t-u in microseconds; false when that is more than a number holds.
func (t Time) sub(u Time) (int64, bool) {
	diff := t - u
	return int64(diff), (u <= 0) == (diff >= t)
}
