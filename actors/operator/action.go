package operator

import (
	"fmt"
	"time"
)

// Action is what a pass that ended well asks for next. The zero value asks for nothing.
type Action struct {
	requeue bool
	after   time.Duration
	at      time.Time
}

// None asks for nothing: the next change or the resync brings the next pass.
func None() Action { return Action{} }

// Requeue asks for another pass after d, if no change brings it earlier. A pass that asks for a time in the past has failed with
// ErrRequeuePast; less than 50 ms are taken for 50 ms.
func Requeue(d time.Duration) Action { return Action{requeue: true, after: d} }

// RequeueAt asks for another pass at a time by the clock of the process.
func RequeueAt(t time.Time) Action { return Action{requeue: true, at: t} }

// wait is how long after now the pass is asked for; false when none is.
func (a Action) wait(now time.Time) (time.Duration, bool, error) {
	if !a.requeue {
		return 0, false, nil
	}
	wait := a.after
	if !a.at.IsZero() {
		wait = a.at.Sub(now)
	}
	if wait <= 0 {
		return 0, false, fmt.Errorf("cannot run again after %s: %w", wait, ErrRequeuePast)
	}
	return max(wait, minRequeue), true, nil
}
