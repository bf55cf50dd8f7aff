package node

import (
	"runtime"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// TestMemoryOfALoadIsGivenBack makes garbage until that counts as load, and waits until its memory is the system's again. Meanwhile the heap,
// which is small, is collected less often.
func TestMemoryOfALoadIsGivenBack(t *testing.T) {
	t.Setenv("GOGC", "")
	trimmer := startTrimmer(supervision.RealClock())
	defer trimmer.stop()
	trimmer.mu.Lock()
	trimmer.paced = true
	trimmer.mu.Unlock()
	look := func() (busy bool, trims int) {
		trimmer.mu.Lock()
		defer trimmer.mu.Unlock()
		return trimmer.busy, trimmer.trims
	}
	limit := time.Now().Add(30 * time.Second)
	var held [][]byte
	for busy := false; !busy && time.Now().Before(limit); busy, _ = look() {
		if held = append(held, make([]byte, 1<<20)); len(held) > 64 {
			held = nil
		}
	}
	if busy, trims := look(); !busy || trims != 0 {
		t.Fatalf("while garbage is made: busy is %v, trimmed %d times", busy, trims)
	}
	if pace := read("/gc/gogc:percent"); pace <= restPercent {
		t.Errorf("under load the heap may grow by %d %% only", pace)
	}
	held = nil
	for trims := 0; trims == 0 && time.Now().Before(limit); _, trims = look() {
		time.Sleep(quietLook / 10)
	}
	if busy, trims := look(); busy || trims != 1 {
		t.Errorf("after the load: busy is %v, trimmed %d times", busy, trims)
	}
	if pace := read("/gc/gogc:percent"); pace != restPercent {
		t.Errorf("after the load the heap may grow by %d %%", pace)
	}
	for time.Now().Before(limit) {
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapIdle-m.HeapReleased < 16<<20 {
			return
		}
		time.Sleep(quietLook / 10)
	}
	t.Error("the memory was not given back")
}

func TestPaceOfHeaps(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 4 << 20: 800, 32 << 20: 400, 128 << 20: 100, 256 << 20: 50, 4 << 30: 50} {
		if got := percentOf(live); got != want {
			t.Errorf("a heap of %d bytes may grow by %d %%, want %d %%", live, got, want)
		}
	}
}
