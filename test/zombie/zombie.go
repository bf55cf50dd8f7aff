// Package zombie lets tests hold that a generation which was given up has no effect any more.
package zombie

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

const (
	// beatWithin and stopWithin are the windows of the actor that hangs.
	beatWithin = 50 * time.Millisecond
	stopWithin = 50 * time.Millisecond
	// limit bounds waiting for what must happen.
	limit = 30 * time.Second
)

// Wake runs effect in a job of an actor's second generation, whose first hung in the same job and was left behind; then
// the first one wakes and does it, too, in a context that says of its end nothing but what its fence says. The errors are
// those of the second generation and of the first.
func Wake(t *testing.T, effect func(ctx context.Context, generation uint64) error) (second, first error) {
	t.Helper()
	results, wake := map[uint64]chan error{1: make(chan error, 1), 2: make(chan error, 1)}, make(chan struct{})
	s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Start(tree(func(ctx supervision.Context, msg any) error {
		if _, ok := msg.(supervision.Started); !ok || ctx.Generation() > 2 {
			return nil
		}
		ctx.Go(job(ctx.Generation(), wake, results[ctx.Generation()], effect))
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	second = await(t, "the second generation", results[2])
	if s.Abandoned() != 1 {
		t.Fatalf("%d generations were left behind, want 1: %v", s.Abandoned(), s.Faults().Recent())
	}
	close(wake)
	return second, await(t, "the first generation", results[1])
}

// job hangs in the first generation until it is woken.
func job(generation uint64, wake <-chan struct{}, result chan<- error, effect func(context.Context, uint64) error) supervision.Job {
	j := supervision.Job{Name: "effect", Deadline: limit}
	if generation == 1 {
		j.Deadline, j.BeatWithin = 0, beatWithin
	}
	j.Run = func(ctx context.Context, _ func()) (any, error) {
		if generation == 1 {
			<-wake
			ctx = context.WithoutCancel(ctx)
		}
		result <- effect(ctx, generation)
		return nil, nil
	}
	return j
}

func await(t *testing.T, who string, result <-chan error) error {
	t.Helper()
	select {
	case err := <-result:
		return err
	case <-time.After(limit):
		t.Fatalf("%s has done nothing", who)
		return nil
	}
}

func tree(receive supervision.HandlerFunc) supervision.Spec {
	hangs := harness.Actor("hangs", receive)
	hangs.StopTimeout = stopWithin
	root := harness.Group("root", harness.OneForOne, hangs)
	root.StopTimeout = limit
	return root
}
