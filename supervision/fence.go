package supervision

import (
	"context"
	"errors"
)

// ErrFenced is returned when a generation that is no longer current wants an effect.
var ErrFenced = errors.New("fenced: this generation was replaced")

// Fence belongs to one generation and guards its effects.
type Fence struct{ c *cell }

// Check returns ErrFenced when the generation is no longer the current one. The zero Fence
// belongs to no generation and is always closed.
func (f Fence) Check() error {
	if f.c == nil || f.c.fenced.Load() {
		return ErrFenced
	}
	return nil
}

type fenceKey struct{}

// fenced returns a context that carries the generation's fence into whatever is called with it.
func (c *cell) fencedContext(parent context.Context) context.Context {
	return context.WithValue(parent, fenceKey{}, Fence{c})
}

// FenceFrom returns the fence of the generation that a context belongs to: that of a job, or
// Context's own. Without one it returns the zero Fence.
func FenceFrom(ctx context.Context) Fence {
	f, _ := ctx.Value(fenceKey{}).(Fence)
	return f
}

// CheckFence returns ErrFenced when ctx belongs to a generation that was replaced, and nil
// when it belongs to a current one or to none: for code that is called from both.
func CheckFence(ctx context.Context) error {
	if f, ok := ctx.Value(fenceKey{}).(Fence); ok {
		return f.Check()
	}
	return nil
}
