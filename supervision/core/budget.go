package core

import "time"

// budget counts restarts in a sliding window with a ring of fixed size: it holds the times
// of the last Max restarts and nothing else.
type budget struct {
	intensity Intensity
	ring      []time.Time
	next      int
}

// spend notes a restart at now and tells whether it is still within the intensity. A refused
// restart is not noted.
func (b *budget) spend(now time.Time) bool {
	if b.intensity.Max <= 0 {
		return false
	}
	if b.ring == nil {
		b.ring = make([]time.Time, b.intensity.Max)
	}
	oldest := b.ring[b.next]
	if !oldest.IsZero() && now.Sub(oldest) < b.intensity.Within {
		return false
	}
	b.ring[b.next] = now
	b.next = (b.next + 1) % len(b.ring)
	return true
}
