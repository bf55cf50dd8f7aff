package faultmatrix

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/nodeactor/nodeactor/supervision"
)

// jumpingClock is a clock whose wall jumps, as when somebody sets the machine's time; like the
// machine's, it goes on measuring durations by its monotonic reading.
type jumpingClock struct {
	supervision.Clock
	base, from time.Time
	jump       atomic.Int64
}

// machineTime has a monotonic reading, which times of a bubble do not have.
var machineTime = time.Now()

func newJumpingClock() *jumpingClock {
	return &jumpingClock{Clock: supervision.RealClock(), base: machineTime, from: time.Now()}
}

// Now implements supervision.Clock.
func (c *jumpingClock) Now() time.Time {
	t := c.base.Add(time.Since(c.from))
	return shiftWall(t, time.Duration(c.jump.Load()))
}

// shiftWall moves the wall reading alone by whole seconds, which package time has no function
// for: the seconds since 1885 lie above the 30 bits of nanoseconds.
func shiftWall(t time.Time, by time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall += uint64(int64(by/time.Second)) << 30
	return t
}

// TestJumpingClock holds the clock to what a machine's does.
func TestJumpingClock(t *testing.T) {
	c := newJumpingClock()
	before := c.Now()
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		c.jump.Store(int64(jump))
		after := c.Now()
		if wall := after.Round(0).Sub(before.Round(0)); (wall - jump).Abs() > time.Minute {
			t.Errorf("the wall moved by %v, not %v", wall, jump)
		}
		if passed := after.Sub(before); passed < 0 || passed > time.Minute {
			t.Errorf("%v are said to have passed", passed)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c.Sleep(ctx, time.Hour) == nil {
		t.Error("it sleeps after its context's end")
	}
}
