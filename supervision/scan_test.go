package supervision

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// crowd starts a system with a pool of idle members, whose handlers need nothing.
func crowd(tb testing.TB, count int) *System {
	tb.Helper()
	s, err := New(Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	p, tmpl := testSpec("pool", core.Supervisor), testSpec("member", core.Worker)
	idle := func() Handler { return HandlerFunc(func(Context, any) error { return nil }) }
	tmpl.Start = idle
	p.Group.Strategy, p.Template = core.Pool, &tmpl
	root := testSpec("root", core.Supervisor)
	root.Children = []Spec{p}
	if err := s.Start(root); err != nil {
		tb.Fatal(err)
	}
	for i := range count {
		s.Pool("root/pool").Ensure(fmt.Sprint(i), idle)
	}
	for !s.allReady() {
		time.Sleep(time.Millisecond)
	}
	tb.Cleanup(func() { s.Stop(tb.Context()) })
	return s
}

func (s *System) allReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.cells {
		if c.watched.Load() {
			return false
		}
	}
	return true
}

// BenchmarkScan is one look of the watchdog at 100,000 idle children.
func BenchmarkScan(b *testing.B) {
	s := crowd(b, 100_000)
	now := time.Now().UnixNano()
	b.ReportAllocs()
	best := time.Hour
	for b.Loop() {
		began := time.Now()
		s.scan(now)
		best = min(best, time.Since(began))
	}
	b.ReportMetric(float64(best.Nanoseconds()), "ns/best")
}

// TestScanAllocatesNothing holds that looking for hangs makes no garbage.
func TestScanAllocatesNothing(t *testing.T) {
	s := crowd(t, 1000)
	now := time.Now().UnixNano()
	if n := testing.AllocsPerRun(100, func() { s.scan(now) }); n > 0 {
		t.Errorf("%v allocations for one look, want 0", n)
	}
}
