package core

import "time"

// budget counts restarts in a sliding window with a ring of fixed size: it holds the times
// of the last Max restarts and nothing else.
type budget struct {
	intensity Intensity
	// ring holds Unix nanoseconds; full tells whether its places have all been used.
	ring []int64
	next int
	full bool
}

// allows tells whether one more restart at now is within the intensity.
func (b *budget) allows(now time.Time) bool {
	if b.intensity.Max <= 0 {
		return false
	}
	return !b.full || now.UnixNano()-b.ring[b.next] >= int64(b.intensity.Within)
}

// note remembers a restart.
func (b *budget) note(now time.Time) {
	if b.ring == nil {
		b.ring = make([]int64, b.intensity.Max)
	}
	b.ring[b.next] = now.UnixNano()
	if b.next++; b.next == len(b.ring) {
		b.next, b.full = 0, true
	}
}

// budgets are the two limits of a group: a burst, and what may be sustained over a longer
// time.
type budgets struct{ burst, sustained budget }

func newBudgets(g GroupSpec) budgets {
	return budgets{burst: budget{intensity: g.Intensity}, sustained: budget{intensity: g.Sustained}}
}

// spend notes a restart at now and tells whether both limits bear it. A refused restart is
// not noted.
func (b *budgets) spend(now time.Time) bool {
	if !b.burst.allows(now) || !b.sustained.allows(now) {
		return false
	}
	b.burst.note(now)
	b.sustained.note(now)
	return true
}
