package supervision_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// counter counts what it receives and answers nobody.
type counter struct{ n *atomic.Int64 }

func (c counter) Receive(_ supervision.Context, msg any) error {
	if _, ok := msg.(int); ok {
		c.n.Add(1)
	}
	return nil
}

func benchSystem(tb testing.TB, spec supervision.Spec) *supervision.System {
	tb.Helper()
	s := quietSystem(tb)
	if err := s.Start(sup("root", core.OneForOne, spec)); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Stop(context.Background()) })
	return s
}

// cpu reports the CPU time for each operation since begin, which says more than the clock where
// others use the machine, too.
func cpu(b *testing.B, begin time.Duration) {
	b.Helper()
	b.ReportMetric(float64(cpuTime(b)-begin)/float64(b.N), "cpu-ns/op")
}

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSend is one message through reference, mailbox and guard.
func BenchmarkSend(b *testing.B) {
	var handled atomic.Int64
	child := spec("child", func() supervision.Handler { return counter{&handled} })
	child.Mailbox.Limit = core.MaxMailbox
	s := benchSystem(b, child)
	ref, msg := s.Ref("root/child"), any(1)
	b.ReportAllocs()
	begin := cpuTime(b)
	for b.Loop() {
		for !s.Send(ref, msg) {
			runtime.Gosched()
		}
	}
	for handled.Load() < int64(b.N) {
		runtime.Gosched()
	}
	cpu(b, begin)
}

// BenchmarkContextSend is the same from one actor to another, as a handler sends.
func BenchmarkContextSend(b *testing.B) {
	const batch = 1000
	next := make(chan struct{})
	child := spec("child", func() supervision.Handler {
		return supervision.HandlerFunc(func(_ supervision.Context, msg any) error {
			if n, ok := msg.(int); ok && n == batch {
				next <- struct{}{}
			}
			return nil
		})
	})
	child.Mailbox.Limit = core.MaxMailbox
	sender := spec("sender", func() supervision.Handler {
		var to supervision.Ref
		one, last := any(1), any(batch)
		return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
			switch msg.(type) {
			case supervision.Stopping:
				return nil
			case supervision.Started:
				to = ctx.System().Ref("root/group/child")
				return nil
			}
			for range batch - 1 {
				ctx.Send(to, one)
			}
			ctx.Send(to, last)
			return nil
		})
	})
	s := benchSystem(b, sup("group", core.OneForOne, child, sender))
	ref, msg := s.Ref("root/group/sender"), any(0)
	b.ReportAllocs()
	b.ResetTimer()
	begin := cpuTime(b)
	for sent := 0; sent < b.N; sent += batch {
		s.Send(ref, msg)
		<-next
	}
	cpu(b, begin)
}

// BenchmarkPingPong is a round trip between two actors that wake each other.
func BenchmarkPingPong(b *testing.B) {
	done := make(chan struct{})
	player := func(id, other string) supervision.Spec {
		return spec(id, func() supervision.Handler {
			var to supervision.Ref
			return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
				left, ok := msg.(*int)
				if !ok {
					to = ctx.System().Ref("root/group/" + other)
					return nil
				}
				if *left--; *left <= 0 {
					close(done)
					return nil
				}
				ctx.Send(to, left)
				return nil
			})
		})
	}
	s := benchSystem(b, sup("group", core.OneForOne, player("a", "b"), player("b", "a")))
	b.ReportAllocs()
	b.ResetTimer()
	left, begin := 2*b.N, cpuTime(b)
	s.Send(s.Ref("root/group/a"), &left)
	<-done
	cpu(b, begin)
}

// idle is the smallest useful actor.
type idle struct{ name string }

func (idle) Receive(supervision.Context, any) error { return nil }

func manyIdle(tb testing.TB, count int) (s *supervision.System, bytesEach float64, took time.Duration) {
	tb.Helper()
	p := sup("pool", core.Pool)
	tmpl := spec("member", func() supervision.Handler { return idle{} })
	p.Template = &tmpl
	s = benchSystem(tb, p)
	pool := s.Pool("root/pool")
	ids := make([]string, count)
	for i := range ids {
		ids[i] = fmt.Sprintf("namespace-%d/manifest-%d", i%100, i)
	}
	before, begin := heap(), time.Now()
	for _, id := range ids {
		pool.Ensure(id, func() supervision.Handler { return &idle{name: id} })
	}
	for ready := 0; ready < count; {
		ready = 0
		s.Inspect().Walk(func(n supervision.Node) bool {
			if !n.Supervisor && n.State == core.Running {
				ready++
			}
			return true
		})
	}
	took = time.Since(begin)
	bytesEach = float64(heap()-before) / float64(count)
	runtime.KeepAlive(ids)
	return s, bytesEach, took
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkIdleChild tells what 100,000 idle children of a pool weigh: on the heap, and in the
// memory that the system gives the process.
func BenchmarkIdleChild(b *testing.B) {
	before := resident(b)
	for b.Loop() {
		_, each, took := manyIdle(b, 100_000)
		b.ReportMetric(each, "B/child")
		b.ReportMetric(float64(resident(b)-before)/1e6, "MB-resident")
		b.ReportMetric(float64(took.Nanoseconds())/100_000, "ns/start")
	}
}

// resident is what the process has in memory.
func resident(tb testing.TB) int {
	tb.Helper()
	debug.FreeOSMemory()
	raw, err := os.ReadFile("/proc/self/statm")
	var size, pages int
	if err == nil {
		_, err = fmt.Sscan(string(raw), &size, &pages)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestIdleChildrenAreCheap holds the limit that 100,000 manifests on one host rely on.
func TestIdleChildrenAreCheap(t *testing.T) {
	const limit = 1200
	s, each, took := manyIdle(t, 20_000)
	t.Logf("%.0f bytes each, started in %v", each, took)
	if each > limit {
		t.Errorf("an idle child takes %.0f bytes, want at most %d", each, limit)
	}
	if n := runtime.NumGoroutine(); n > 1000 {
		t.Errorf("%d goroutines for idle children", n)
	}
	if s.Pool("root/pool").Len() != 20_000 {
		t.Error("children are missing")
	}
}

// TestSendAllocatesNothing holds the path of one message free of garbage.
func TestSendAllocatesNothing(t *testing.T) {
	var handled atomic.Int64
	s := benchSystem(t, spec("child", func() supervision.Handler { return counter{&handled} }))
	ref, msg := s.Ref("root/child"), any(1)
	send := func() {
		want := handled.Load() + 1
		s.Send(ref, msg)
		for handled.Load() < want {
			runtime.Gosched()
		}
	}
	send()
	if n := testing.AllocsPerRun(1000, send); n >= 1 && !raceEnabled {
		t.Errorf("%v allocations for one message, want 0", n)
	}
}
