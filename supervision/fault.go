package supervision

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of the fault ring.
const (
	// ringSize is how many faults are kept for people to look at, and how many signatures.
	ringSize = 1000
	// countsLimit is how many (path, kind) pairs are counted apart.
	countsLimit = 10_000
)

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
	// sig is the signature, once it was computed.
	sig uint64
}

// StackHash names the cause of the fault in a few characters: faults from one place of the
// code have the same, whichever child and generation they are of.
func (f Fault) StackHash() string { return fmt.Sprintf("%08x", f.signature()>>32) }

// Error makes a Fault usable as an error.
func (f Fault) Error() string {
	return fmt.Sprintf("%s of %s#%d in %s: %v", f.Kind, f.Path, f.Generation, f.Message, f.Err)
}

// Unwrap returns the cause.
func (f Fault) Unwrap() error { return f.Err }

// signature tells faults of one cause from others: by where the stack was, or else by what
// the error says.
func (f Fault) signature() uint64 {
	if f.sig != 0 {
		return f.sig
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d|%s", f.Kind, f.Message)
	if frames := functions(f.Stack); len(frames) > 0 {
		h.Write(frames)
	} else {
		fmt.Fprintf(h, "|%s|%v", f.Path, f.Err)
	}
	return h.Sum64()
}

// functions reduces a stack to the names in it: addresses and goroutine numbers change.
func functions(stack []byte) (names []byte) {
	for line := range bytes.Lines(stack) {
		if i := bytes.LastIndexByte(line, '('); i > 0 && line[0] != '\t' {
			names = append(names, line[:i]...)
		}
	}
	return names
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
	subs   subscribers[Fault]
}

func newFaultRing() *FaultRing {
	return &FaultRing{counts: map[FaultKey]uint64{}, seen: map[uint64]bool{}}
}

// add stores f and tells whether its signature is new.
func (r *FaultRing) add(f Fault) (first bool) {
	sig := f.signature()
	r.mu.Lock()
	if len(r.ring) < ringSize {
		r.ring = append(r.ring, f)
	} else {
		r.ring[r.next] = f
	}
	r.next = (r.next + 1) % ringSize
	r.counts[r.key(f)]++
	first = !r.seen[sig]
	if len(r.seen) > ringSize {
		clear(r.seen)
	}
	r.seen[sig] = true
	subs := r.subs.all
	r.mu.Unlock()
	tell(subs, f)
	return first
}

// key is what a fault is counted under. When there are too many paths, those of a group
// share one key.
func (r *FaultRing) key(f Fault) FaultKey {
	k := FaultKey{f.Path, f.Kind}
	if _, ok := r.counts[k]; ok || len(r.counts) < countsLimit {
		return k
	}
	return FaultKey{f.Path[:strings.LastIndexByte(f.Path, '/')+1] + "*", f.Kind}
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
	remove := r.subs.add(f)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		remove()
	}
}

// panics counts every panic of the process that was contained, of actors or not.
var panics atomic.Uint64

// Panics is how many panics were contained since the process started.
func Panics() uint64 { return panics.Load() }

// CountPanic counts a panic that code outside the tree contained, such as that of a
// request handler.
func CountPanic() { panics.Add(1) }
