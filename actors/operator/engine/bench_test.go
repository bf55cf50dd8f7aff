package engine

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// crowdSize is how many manifests the measurements have.
const crowdSize = 100_000

// bytesAtRest is the most a manifest at rest may cost, in the engine and the tree below it: half of what it may cost all in all.
const bytesAtRest = 2048

// crowded is an engine with very many manifests on the machine's clock.
type crowded struct {
	b      *testing.B
	w      *world
	e      *Engine
	system *supervision.System
}

// bare is a world without books, so that what is measured is the engine's.
type bare struct{ *world }

func (b bare) reconcile(context.Context, Pass) Result { return Result{} }

// inUse is what the heap holds after a collection.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// cpu is what the process has used so far.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// crowd starts an engine over so many manifests and returns once all have had a pass and rest.
func crowdOf(b *testing.B, n int, pass func(context.Context, Pass) Result) (c *crowded, first time.Duration, bytes float64) {
	b.Helper()
	w := newWorld(supervision.RealClock())
	for i := range n {
		w.put(Key{Namespace: "ns", Name: fmt.Sprint("manifest-", i)})
	}
	before := inUse()
	h := Hooks{Reconcile: pass}
	c = &crowded{b: b, w: w, e: New("test", w, h, DefaultTimings, Limits{Concurrency: 64})}
	system, err := supervision.New(supervision.Config{Clock: w.clock, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	c.system = system
	began := time.Now()
	if err := system.Start(harness.Group("root", harness.OneForOne, c.e.Spec())); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { system.Stop(context.Background()) })
	c.await(func(s Stats) bool { return s.Manifests == n && s.Running+s.Waiting == 0 })
	first = time.Since(began)
	c.await(func(s Stats) bool { return s.Actors == 0 })
	return c, first, float64(inUse()-before) / float64(n)
}

func (c *crowded) await(until func(Stats) bool) {
	for end := time.Now().Add(2 * time.Minute); !until(c.e.Stats()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.b.Fatalf("still %+v", c.e.Stats())
		}
	}
}

// BenchmarkManifestsAtRest measures what a hundred thousand manifests cost that have nothing to do: the first pass of all, the bytes of
// each, and the part of one core that they take.
func BenchmarkManifestsAtRest(b *testing.B) {
	for range b.N {
		_, first, bytes := crowdOf(b, crowdSize, bare{}.reconcile)
		used, began := cpu(), time.Now()
		time.Sleep(10 * time.Second)
		share := float64(cpu()-used) / float64(time.Since(began)) * 100
		b.ReportMetric(first.Seconds(), "s/first-pass")
		b.ReportMetric(bytes, "B/manifest")
		b.ReportMetric(share, "%cpu")
		if bytes > bytesAtRest {
			b.Errorf("a manifest at rest costs %.0f bytes, more than %d", bytes, bytesAtRest)
		}
	}
}

// BenchmarkFromChangeToPass measures how long after a change its pass begins, one change a millisecond among a hundred thousand manifests.
func BenchmarkFromChangeToPass(b *testing.B) {
	began := make(chan time.Time, 1)
	var listening atomic.Bool
	c, _, _ := crowdOf(b, crowdSize, func(context.Context, Pass) Result {
		if listening.Load() {
			select {
			case began <- time.Now():
			default:
			}
		}
		return Result{}
	})
	var waits []time.Duration
	listening.Store(true)
	for i := range 5000 {
		at := time.Now()
		c.w.put(Key{Namespace: "ns", Name: fmt.Sprint("manifest-", i*17%crowdSize)})
		waits = append(waits, (<-began).Sub(at))
		time.Sleep(time.Millisecond)
	}
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds()), "us/p50")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds()), "us/p99")
	b.ReportMetric(0, "ns/op")
}
