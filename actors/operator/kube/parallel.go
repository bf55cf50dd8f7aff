package kube

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/nodeactor/nodeactor/supervision"
)

// Parallel runs do for 0 to n-1, at most limit at a time, and waits for all it started. After a failure it starts no more and
// returns the first error; a panic is contained and comes back as an error. The context is passed on as it is, so that one
// failure does not cut off the others half way.
func Parallel(ctx context.Context, limit, n int, do func(ctx context.Context, i int) error) error {
	if n <= 0 {
		return nil
	}
	if n == 1 {
		return do(ctx, 0)
	}
	var next atomic.Int64
	var failure atomic.Pointer[error]
	group := supervision.NewGroup(context.WithoutCancel(ctx), "parallel", nil)
	for range min(limit, n) {
		group.Go("worker", func(context.Context) error {
			for i := next.Add(1) - 1; i < int64(n) && failure.Load() == nil && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := do(ctx, int(i)); err != nil {
					failure.CompareAndSwap(nil, &err)
				}
			}
			return nil
		})
	}
	panicked := group.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return errors.Join(panicked, ctx.Err())
}
