package hotloop

import (
	"math/bits"
	"time"
)

// Busy remembers in which of the last busySpan seconds something was written. It tells a controller that never rests from others, and
// holds nobody back. The zero value has never been busy.
type Busy struct {
	last       int64
	bits       uint64
	continuous bool
}

// Note marks the second of a write that changed something.
func (b *Busy) Note(now time.Time) {
	b.age(now)
	b.bits |= 1
}

// Seconds is how many of the last seconds were busy.
func (b *Busy) Seconds(now time.Time) int {
	b.age(now)
	return bits.OnesCount64(b.bits)
}

// Turned tells whether writing goes on and on, and whether that is news.
func (b *Busy) Turned(now time.Time) (continuous, news bool) {
	continuous = b.Seconds(now) >= busySeconds
	news = continuous != b.continuous
	b.continuous = continuous
	return continuous, news
}

// age lets seconds pass.
func (b *Busy) age(now time.Time) {
	second := now.Unix()
	b.bits = shifted(b.bits, second-b.last)
	b.last = max(b.last, second)
}

// shifted moves busy seconds on and drops those that are too old. A clock that goes back moves nothing.
func shifted(bits uint64, passed int64) uint64 {
	switch {
	case passed <= 0:
		return bits
	case passed >= busySpan:
		return 0
	}
	return bits << uint(passed) & (1<<busySpan - 1)
}
