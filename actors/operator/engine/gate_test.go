package engine

import (
	"math/rand"
	"testing"
	"time"
)

// timings are those of the tests: a fallback that is soon.
var timings = func() Timings {
	t := DefaultTimings
	t.Resync = 30 * time.Second
	return t
}()

// ms is a time on the test's axis.
func ms(n int) time.Time { return time.Unix(1000, 0).Add(time.Duration(n) * time.Millisecond) }

// startedGate is a gate whose first pass began at 0 and ended at 10 ms.
func startedGate(t *testing.T) *gate {
	t.Helper()
	g := newGate(&timings, 0.5, ms(0))
	if !g.begin(ms(0)) {
		t.Fatal("the first pass is not due at once")
	}
	g.end(ms(10), Succeeded, 0)
	return g
}

func TestFirstWakeAfterQuietStartsAtOnce(t *testing.T) {
	g := startedGate(t)
	g.wake(ms(1000))
	if !g.begin(ms(1000)) {
		t.Error("not started at once")
	}
}

// TestF049_ABurstIsALeadingAndATrailingPass: 100 wakes within the window are one leading and one trailing pass.
func TestF049_ABurstIsALeadingAndATrailingPass(t *testing.T) {
	g := startedGate(t)
	passes := 0
	for at := 1000; at < 2000; at++ {
		if at < 1040 && at%2 == 0 {
			for range 5 {
				g.wake(ms(at))
			}
		}
		if g.begin(ms(at)) {
			passes++
			g.end(ms(at), Succeeded, 0)
		}
	}
	if passes != 2 {
		t.Errorf("%d passes", passes)
	}
}

func TestWakesWhileRunningBecomeOnePass(t *testing.T) {
	g := startedGate(t)
	g.wake(ms(1000))
	g.begin(ms(1000))
	for range 100 {
		g.wake(ms(1500))
	}
	if g.begin(ms(1500)) {
		t.Fatal("two passes at a time")
	}
	g.end(ms(2000), Succeeded, 0)
	if !g.begin(ms(2000)) {
		t.Fatal("the pending pass is not due")
	}
	g.end(ms(2010), Succeeded, 0)
	if g.begin(ms(3000)) {
		t.Error("a third pass")
	}
}

func TestF049_APassRunsWithoutAnyChange(t *testing.T) {
	g := startedGate(t)
	if g.begin(ms(29_000)) || !g.begin(ms(30_010)) {
		t.Error("the fallback is not after 30 s")
	}
}

// TestF051_OneRequeueSlot: what a pass asks for replaces what was asked for before.
func TestF051_OneRequeueSlot(t *testing.T) {
	g := startedGate(t)
	for i := range 5 {
		g.wake(ms(1000 + 100*i))
		if !g.begin(ms(1000 + 100*i)) {
			t.Fatal("not started")
		}
		g.end(ms(1000+100*i), Succeeded, time.Second)
	}
	passes := 0
	for at := 1401; at < 20_000; at++ {
		if g.begin(ms(at)) {
			passes++
			g.end(ms(at), Succeeded, 0)
		}
	}
	if passes != 1 {
		t.Errorf("%d passes were pending", passes)
	}
}

func TestBackOffDoublesAndResets(t *testing.T) {
	g := startedGate(t)
	at := ms(100_000)
	for _, want := range []int{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		g.due = at
		g.begin(at)
		g.end(at, Failed, 0)
		if got := g.due.Sub(at); got != time.Duration(want)*time.Second {
			t.Fatalf("waits %v, want %d s", got, want)
		}
		at = g.due
	}
	g.begin(at)
	g.end(at, Succeeded, 0)
	at = g.due
	g.begin(at)
	g.end(at, Failed, 0)
	if got := g.due.Sub(at); got != time.Second {
		t.Errorf("after a success waits %v", got)
	}
}

func TestWakesCutABackOffDownToASecond(t *testing.T) {
	g := startedGate(t)
	for range 5 {
		g.due = ms(100_000)
		g.begin(ms(100_000))
		g.end(ms(100_000), Failed, 0)
	}
	g.wake(ms(100_010))
	if g.begin(ms(100_900)) || !g.begin(ms(101_000)) {
		t.Error("not a second after the failure")
	}
}

func TestConflictsRetrySoonAndThenFail(t *testing.T) {
	g := startedGate(t)
	at := ms(1000)
	g.due = at
	for range timings.Conflicts - 1 {
		g.begin(at)
		g.end(at, Conflicted, 0)
		if g.due.Sub(at) != timings.Debounce || g.failures != 0 {
			t.Fatalf("retried after %v, %d failures", g.due.Sub(at), g.failures)
		}
		at = g.due
	}
	g.begin(at)
	g.end(at, Conflicted, 0)
	if g.failures != 1 || g.due.Sub(at) != time.Second {
		t.Errorf("%d failures, retried after %v", g.failures, g.due.Sub(at))
	}
}

func TestJitterStaysWithinAFifth(t *testing.T) {
	for range 100 {
		g := newGate(&timings, rand.Float64(), ms(0))
		if d := g.spread(30*time.Second, 0.2); d < 24*time.Second || d > 36*time.Second {
			t.Fatalf("spread to %v", d)
		}
	}
}

// FuzzGate holds the promises under any order of events: one pass at a time, no wake lost, always something due.
func FuzzGate(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 0, 0, 1})
	f.Fuzz(playGate)
}

// TestGateUnderRandomEvents plays what the fuzzer would find first.
func TestGateUnderRandomEvents(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 5000 {
		events := make([]byte, 40)
		random.Read(events)
		playGate(t, events)
	}
}

func playGate(t *testing.T, events []byte) {
	g := newGate(&timings, 0.5, ms(0))
	now, unseen := 0, false
	for _, e := range events {
		switch e % 5 {
		case 0:
			now += int(e)
		case 1:
			g.wake(ms(now))
			unseen = true
		case 2:
			if running := g.running; g.begin(ms(now)) {
				if running {
					t.Fatal("two passes at a time")
				}
				unseen = false
			}
		default:
			if g.running {
				g.end(ms(now), Outcome(e%4), time.Duration(e)*time.Millisecond)
			}
		}
		if !g.running && unseen && g.due.After(ms(now).Add(timings.RetryFloor)) {
			t.Fatalf("a wake waits %v: %v", g.due.Sub(ms(now)), events)
		}
	}
}
