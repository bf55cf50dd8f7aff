package operator

import (
	"context"

	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
)

// passKey finds the pass in its context.
type passKey struct{}

// running is what the context of a pass carries.
type running struct {
	env   Env
	reads map[string]bool
}

// Fence returns the fence of the pass that a context belongs to, for effects that carry it; false when there is none.
func Fence(ctx context.Context) (lease.Fence, bool) {
	p, ok := ctx.Value(passKey{}).(*running)
	if !ok || p.env.Fence.Epoch == 0 {
		return lease.Fence{}, false
	}
	return p.env.Fence, true
}

// Fenced asks, before an effect that must not come too late, whether the pass may still have effects: ErrFenced is returned when the
// lease has another holder or the pass was given up. The answer holds for the moment at which it was given; only an effect that carries
// the epoch to something that compares it is safe whatever happens.
func Fenced(ctx context.Context) error {
	if supervision.CheckFence(ctx) != nil {
		return ErrFenced
	}
	p, ok := ctx.Value(passKey{}).(*running)
	if !ok {
		return ErrNotInPass
	}
	if p.env.Check == nil {
		return nil
	}
	return p.env.Check(ctx)
}
