package node

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// quietLook is how often a node looks, after a collection, whether it is under load, and quietBytes how much it allocates in that time at most
	// when not.
	quietLook, quietBytes = 500 * time.Millisecond, 8 << 20
	// loadRoom is how many bytes of garbage a node under load makes at least before it is collected: collections of its small heap, several a
	// second, would be one part in ten of its work. The trimmer gives the memory back when the load ends.
	loadRoom = 128 << 20
	// restPercent is the runtime's own pace, in percent of the live heap, which holds without load. leastPercent is the least under load: a
	// large heap makes garbage of half its size, not of all of it.
	restPercent, leastPercent = 100, 50
)

// trimmer gives back to the system, once a load has ended, the memory that only the load needed: the runtime would keep a good part of it
// and collect the load's garbage minutes later.
//
// It costs nothing without load: the collections themselves wake it. Each is taken for the first sign of a load until that is known better, so
// that a load of half a second already is collected once and not three times.
type trimmer struct {
	clock supervision.Clock

	mu      sync.Mutex
	stopped bool
	paced   bool   // booted: before, the fewer garbage the better, because it would leave the heap of the idle node with holes
	busy    bool   // under load, or it is not known yet
	loaded  bool   // it was a load
	allocs  uint64 // in all, at the last look
	trims   int
	percent int // of the live heap that may become garbage, as it was set; 0 = the user has set one
}

// startTrimmer watches the collections of this process until the trimmer is stopped.
func startTrimmer(clock supervision.Clock) *trimmer {
	t := &trimmer{clock: clock, percent: restPercent}
	if os.Getenv("GOGC") != "" {
		t.percent = 0
	}
	t.watch()
	return t
}

// watch calls collected after the next collection: then nobody holds the sentinel any more.
func (t *trimmer) watch() {
	sentinel := new([64]byte)
	runtime.AddCleanup(sentinel, (*trimmer).collected, t)
}

func (t *trimmer) collected() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	t.watch()
	if !t.busy {
		t.busy, t.loaded, t.allocs = true, false, allocated()
		t.clock.AfterFunc(quietLook, t.look)
	}
	t.pace()
}

// pace sets how much garbage is made before the next collection. The lock is held.
func (t *trimmer) pace() {
	want := restPercent
	if t.busy && t.paced && !t.stopped {
		want = percentOf(read("/gc/heap/live:bytes"))
	}
	// Setting it stops the world for a moment.
	if t.percent == 0 || want == t.percent || t.percent*9 < want*10 && want*9 < t.percent*10 && want != restPercent {
		return
	}
	t.percent = want
	debug.SetGCPercent(want)
}

// percentOf is the pace under load for a heap of which so many bytes are live.
func percentOf(live uint64) int {
	return max(leastPercent, int(100*loadRoom/max(live, loadRoom/8)))
}

// look ends a load, or what was none.
func (t *trimmer) look() {
	if t.over() {
		giveBack()
	}
}

// over tells whether a load has ended just now. Until it has, or when there was none, there is nothing to give back.
func (t *trimmer) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	allocs := allocated()
	made := allocs - t.allocs
	t.allocs = allocs
	if made >= quietBytes {
		t.loaded = true
		t.clock.AfterFunc(quietLook, t.look)
		return false
	}
	t.busy = false
	t.pace()
	if t.loaded {
		t.trims++
	}
	return t.loaded
}

// booted tells that the node has started: it gives back what that took, a little later, and from now on loads set the pace.
func (t *trimmer) booted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paced = true
	t.clock.AfterFunc(trimAfter, giveBack)
}

func (t *trimmer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.pace()
}

// giveBack returns to the system what is not needed right now.
func giveBack() {
	debug.FreeOSMemory()
	forgetProgram()
}

// allocated is how many bytes this process has allocated in all.
func allocated() uint64 { return read("/gc/heap/allocs:bytes") }

// read reads a metric of the runtime.
func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
