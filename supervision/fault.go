package supervision

import (
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"
)

// ringSize is how many faults are kept for people to look at.
const ringSize = 1000

// Fault is one thing that went wrong with one generation of one child.
type Fault struct {
	Kind       FaultKind
	Path       string
	Generation uint64
	// Message is the type of the message that was being handled, or "job NAME".
	Message string
	Err     error
	Stack   []byte
	// Since is when the message was taken, At when the fault was seen.
	Since, At time.Time
}

// Error makes a Fault usable as an error.
func (f Fault) Error() string {
	return fmt.Sprintf("%s of %s#%d in %s: %v", f.Kind, f.Path, f.Generation, f.Message, f.Err)
}

// signature tells faults of one cause from others.
func (f Fault) signature() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d|%s|%s|%v", f.Kind, f.Path, f.Message, f.Err)
	return h.Sum64()
}

// FaultKey counts faults of a kind at a path.
type FaultKey struct {
	Path string
	Kind FaultKind
}

// FaultRing keeps the last faults, counts all and tells subscribers.
type FaultRing struct {
	mu     sync.Mutex
	ring   []Fault
	next   int
	counts map[FaultKey]uint64
	seen   map[uint64]bool
	subs   map[int]func(Fault)
	nextID int
}

func newFaultRing() *FaultRing {
	return &FaultRing{counts: map[FaultKey]uint64{}, seen: map[uint64]bool{}, subs: map[int]func(Fault){}}
}

// add stores f and tells whether its signature is new.
func (r *FaultRing) add(f Fault) (first bool) {
	r.mu.Lock()
	if len(r.ring) < ringSize {
		r.ring = append(r.ring, f)
	} else {
		r.ring[r.next] = f
	}
	r.next = (r.next + 1) % ringSize
	r.counts[FaultKey{f.Path, f.Kind}]++
	sig := f.signature()
	first = !r.seen[sig]
	if len(r.seen) > ringSize {
		clear(r.seen)
	}
	r.seen[sig] = true
	subs := make([]func(Fault), 0, len(r.subs))
	for _, s := range r.subs {
		subs = append(subs, s)
	}
	r.mu.Unlock()
	for _, s := range subs {
		s(f)
	}
	return first
}

// forget makes the next fault of path count as new again: it had recovered in between.
func (r *FaultRing) forget(f Fault) {
	r.mu.Lock()
	delete(r.seen, f.signature())
	r.mu.Unlock()
}

// Recent returns the kept faults, oldest first; the slice is the caller's.
func (r *FaultRing) Recent() []Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < ringSize {
		return append([]Fault(nil), r.ring...)
	}
	return append(append([]Fault(nil), r.ring[r.next:]...), r.ring[:r.next]...)
}

// Counts returns how many faults there were of each kind at each path since the start.
func (r *FaultRing) Counts() map[FaultKey]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[FaultKey]uint64, len(r.counts))
	for k, v := range r.counts {
		out[k] = v
	}
	return out
}

// Subscribe calls f for each later fault, in the goroutine that saw it; f must not block.
func (r *FaultRing) Subscribe(f func(Fault)) (cancel func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.nextID
	r.nextID++
	r.subs[id] = f
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.subs, id)
	}
}

// panics counts every panic of the process that was contained, of actors or not.
var panics atomic.Uint64

// Panics is how many panics were contained since the process started.
func Panics() uint64 { return panics.Load() }

// CountPanic counts a panic that code outside the tree contained, such as that of a
// request handler.
func CountPanic() { panics.Add(1) }
