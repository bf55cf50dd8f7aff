package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// listed tells the actor that the first list is in.
type listed struct{}

// Spec is the supervised child that runs the cache. It is ready once indexes hold what the store held when it started, so that
// whoever starts after it finds everything.
func Spec(c *Cache) supervision.Spec {
	spec := catalog.Row("cache")
	spec.Start = func() supervision.Handler { return &actor{cache: c} }
	return spec
}

// actor runs the cache's loop as its job.
type actor struct{ cache *Cache }

// Receive implements supervision.Handler.
func (a *actor) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		ctx.DeferReady()
		ctx.Go(supervision.Job{Name: "follow", BeatWithin: silence, Run: a.run(ctx)})
		ctx.Go(supervision.Job{Name: "first list", Deadline: firstList, Run: func(c context.Context, _ func()) (any, error) {
			return listed{}, errors.Join(a.cache.WaitFor(c, 1), a.cache.Sync(c))
		}})
	case supervision.JobDone:
		return a.ended(ctx, msg)
	}
	return nil
}

func (a *actor) run(ctx supervision.Context) func(context.Context, func()) (any, error) {
	clock := ctx.Clock()
	return func(c context.Context, beat func()) (any, error) { return nil, a.cache.Run(c, clock, beat) }
}

// ended acknowledges the start after the first list; any other end of a job is a fault.
func (a *actor) ended(ctx supervision.Context, done supervision.JobDone) error {
	if _, ok := done.Value.(listed); ok && done.Err == nil {
		ctx.Ready()
		return nil
	}
	if ctx.Context().Err() != nil {
		return nil
	}
	return fmt.Errorf("cannot keep the cache up to date: %s: %w", done.Name, done.Err)
}
