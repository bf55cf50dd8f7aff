package core

import (
	"math"
	"time"
)

// Backoff is an exponential delay: Initial × Factor^(failures-1), at most Cap, shortened
// by up to Jitter (0..1) of itself. Failures are forgotten after Reset of service.
type Backoff struct {
	Initial time.Duration
	Factor  float64
	Cap     time.Duration
	Jitter  float64
	Reset   time.Duration
}

func (b Backoff) valid() bool {
	return b.Initial > 0 && b.Factor >= 1 && b.Cap >= b.Initial && b.Jitter >= 0 && b.Jitter < 1 && b.Reset > 0
}

// Delay is the wait before the restart that follows the given count of failures in a row;
// rnd in [0,1) chooses within the jitter.
func (b Backoff) Delay(failures int, rnd float64) time.Duration {
	d := float64(b.Initial) * math.Pow(b.Factor, float64(max(failures-1, 0)))
	d = min(d, float64(b.Cap))
	return time.Duration(d * (1 - b.Jitter*rnd))
}
