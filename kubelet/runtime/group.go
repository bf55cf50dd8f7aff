package runtime

import "context"

// TEMPORARY until supervision.Group is there.
type group struct {
	ctx    context.Context
	cancel context.CancelFunc
}

func (e *Engine) newGroup(ctx context.Context, name string) *group {
	ctx, cancel := context.WithCancel(ctx)
	return &group{ctx, cancel}
}

func (g *group) Go(name string, run func(context.Context) error) { go func() { _ = run(g.ctx) }() }
func (g *group) Cancel()                                         { g.cancel() }
