package operator

import (
	"context"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// Now is the time by the clock of the process that runs the pass: the machine's, or that of a test.
func Now(ctx context.Context) time.Time {
	if p, ok := ctx.Value(passKey{}).(*running); ok {
		return p.env.Now()
	}
	return supervision.RealClock().Now()
}

// Sleep waits for d by the same clock, or returns the context's error earlier. A pass that has to wait for long asks to be run again instead.
func Sleep(ctx context.Context, d time.Duration) error {
	if p, ok := ctx.Value(passKey{}).(*running); ok && p.env.Sleep != nil {
		return p.env.Sleep(ctx, d)
	}
	return supervision.RealClock().Sleep(ctx, d)
}
