package node

import (
	"runtime"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// TestMemoryOfALoadIsGivenBack makes garbage until that counts as load, and waits until its memory is the system's again.
func TestMemoryOfALoadIsGivenBack(t *testing.T) {
	trimmer := startTrimmer(supervision.RealClock())
	defer trimmer.stop()
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
	held = nil
	for trims := 0; trims == 0 && time.Now().Before(limit); _, trims = look() {
		time.Sleep(quietLook / 10)
	}
	if busy, trims := look(); busy || trims != 1 {
		t.Errorf("after the load: busy is %v, trimmed %d times", busy, trims)
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
