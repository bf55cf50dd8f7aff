package kubelet

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeactor/nodeactor/supervision"
)

// wallClock gives the Event correlator the time; it asks for nothing else.
type wallClock struct{ clock.PassiveClock }

// Now is the time.
func (wallClock) Now() time.Time { return supervision.RealClock().Now() }

// Since is the time since t.
func (w wallClock) Since(t time.Time) time.Duration { return w.Now().Sub(t) }
