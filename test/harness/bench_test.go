package harness_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// relay passes numbers on to the next child until they are used up.
func relay(next string) supervision.HandlerFunc {
	return func(ctx supervision.Context, msg any) error {
		if n, ok := msg.(int); ok && n > 0 {
			ctx.Send(ctx.System().Ref(next), n-1)
		}
		return nil
	}
}

// wideTree has 6 groups of 10 children.
func wideTree() supervision.Spec {
	var groups []supervision.Spec
	for g := range 6 {
		var children []supervision.Spec
		for c := range 10 {
			children = append(children, harness.Actor(fmt.Sprint("c", c), relay(fmt.Sprintf("root/g%d/c%d", (g+1)%6, (c+1)%10))))
		}
		groups = append(groups, harness.Group(fmt.Sprint("g", g), harness.OneForOne, children...))
	}
	return harness.Group("root", harness.RestForOne, groups...)
}

// BenchmarkSeed is one seed of a tree with 60 children: start, 300 messages, stop.
func BenchmarkSeed(b *testing.B) {
	steps := uint64(0)
	tree := wideTree()
	b.ReportAllocs()
	harness.Sim(b, func(k *harness.Kit) {
		k.Tree(tree)
		for c := range 3 {
			k.Send(fmt.Sprintf("root/g0/c%d", c), 100)
		}
		k.Settle()
		steps += k.Steps()
	}, harness.Seeds(b.N), harness.Once())
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(float64(steps)/float64(b.N), "steps/seed")
}

// BenchmarkSmallSeed is one seed of a tree with three children: start, six messages, stop.
func BenchmarkSmallSeed(b *testing.B) {
	b.ReportAllocs()
	harness.Sim(b, func(k *harness.Kit) {
		k.Tree(harness.Group("root", harness.OneForOne, harness.Actor("a", relay("root/b")), harness.Actor("b", relay("root/c")), harness.Actor("c", relay("root/a"))))
		k.Send("root/a", 5)
		k.Settle()
	}, harness.Seeds(b.N), harness.Once())
}

// BenchmarkSteps is messages alone.
func BenchmarkSteps(b *testing.B) {
	harness.Sim(b, func(k *harness.Kit) {
		k.Tree(wideTree())
		b.ResetTimer()
		for c := range 3 {
			k.Send(fmt.Sprintf("root/g0/c%d", c), b.N/3)
		}
		k.Settle()
		b.StopTimer()
	}, harness.Seeds(1), harness.Once(), harness.Steps(1<<40))
}

// BenchmarkSleep is a client that sleeps: each sleep blocks a step.
func BenchmarkSleep(b *testing.B) {
	harness.Sim(b, func(k *harness.Kit) {
		k.Go("sleeper", func(ctx context.Context) {
			for range b.N {
				_ = k.Clock().Sleep(ctx, time.Millisecond)
			}
		})
		k.Steady(time.Duration(b.N+1) * time.Millisecond)
	}, harness.Seeds(1), harness.Once(), harness.Steps(1<<40))
}
