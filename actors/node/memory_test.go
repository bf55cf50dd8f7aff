package node

import (
	"runtime"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// trimming is a trimmer of a node that has booted.
func trimming(t *testing.T) *trimmer {
	t.Helper()
	t.Setenv("GOGC", "")
	trimmer := startTrimmer(supervision.RealClock())
	t.Cleanup(trimmer.stop)
	trimmer.mu.Lock()
	defer trimmer.mu.Unlock()
	trimmer.paced = true
	return trimmer
}

func (t *trimmer) state() (busy bool, trims int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy, t.trims
}

// until looks at a trimmer again and again, until what is looked for is there.
func until(t *testing.T, trimmer *trimmer, what string, there func(busy bool, trims int) bool) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); !there(trimmer.state()); time.Sleep(quietLook / 100) {
		if time.Now().After(limit) {
			busy, trims := trimmer.state()
			t.Fatalf("not %s: busy is %v, trimmed %d times", what, busy, trims)
		}
	}
}

// TestMemoryOfALoadIsGivenBack makes garbage until it is known to be a load, and waits until its memory is the system's again. From the first
// collection on the heap, which is small, is collected less often.
func TestMemoryOfALoadIsGivenBack(t *testing.T) {
	trimmer := trimming(t)
	var held [][]byte
	collected := read("/gc/cycles/total:gc-cycles")
	for busy, begin := false, time.Now(); !busy || time.Since(begin) < 2*quietLook; busy, _ = trimmer.state() {
		if held = append(held, make([]byte, 1<<20)); len(held) > 64 {
			held = nil
			time.Sleep(time.Millisecond)
		}
	}
	if busy, trims := trimmer.state(); !busy || trims != 0 {
		t.Fatalf("while garbage is made: busy is %v, trimmed %d times", busy, trims)
	}
	if pace := read("/gc/gogc:percent"); pace <= restPercent {
		t.Errorf("under load the heap may grow by %d %% only, after %d collections", pace, read("/gc/cycles/total:gc-cycles")-collected)
	}
	held = nil
	until(t, trimmer, "trimmed and at rest", func(busy bool, trims int) bool { return trims == 1 && !busy })
	if pace := read("/gc/gogc:percent"); pace != restPercent {
		t.Errorf("after the load the heap may grow by %d %%", pace)
	}
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(quietLook / 10) {
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapIdle-m.HeapReleased < 16<<20 {
			return
		}
	}
	t.Error("the memory was not given back")
}

// TestACollectionAloneIsNoLoad: the pace of a load is set at the first collection, and taken back when nothing comes of it.
func TestACollectionAloneIsNoLoad(t *testing.T) {
	trimmer := trimming(t)
	runtime.GC()
	until(t, trimmer, "busy", func(busy bool, _ int) bool { return busy })
	if pace := read("/gc/gogc:percent"); pace <= restPercent {
		t.Errorf("after a collection the heap may grow by %d %% only", pace)
	}
	until(t, trimmer, "at rest", func(busy bool, _ int) bool { return !busy })
	if _, trims := trimmer.state(); trims != 0 || read("/gc/gogc:percent") != restPercent {
		t.Errorf("trimmed %d times, the heap may grow by %d %%", trims, read("/gc/gogc:percent"))
	}
}

func TestPaceOfHeaps(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 4 << 20: 800, 32 << 20: 400, 128 << 20: 100, 256 << 20: 50, 4 << 30: 50} {
		if got := percentOf(live); got != want {
			t.Errorf("a heap of %d bytes may grow by %d %%, want %d %%", live, got, want)
		}
	}
}
