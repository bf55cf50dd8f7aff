package supervision

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// Change is one change of a child's state.
type Change struct {
	Path, Row  string
	From, To   State
	Generation uint64
	// Fault is what the generation failed of, if it did; beside Repair, what was repaired.
	Fault *Fault
	At    time.Time
	// NextTry is when a child that waits is started again.
	NextTry time.Time
	// Abandoned tells that the generation that left would not stop.
	Abandoned bool
	// Repair is how long the child had been broken: it is set when it runs again after a fault.
	Repair time.Duration
}

// changeFeed tells subscribers of changes, each in the order in which they happened. Changes are
// noted under the lock of whoever decides, and told when no lock is held.
type changeFeed struct {
	active atomic.Int32

	mu      sync.Mutex
	waiting []Change
	telling bool
	subs    map[int]func(Change)
	nextID  int
}

// Watch calls f for every later change of a child's state, one after the other, in the
// goroutine that caused one of them; f must not block.
func (s *System) Watch(f func(Change)) (cancel func()) {
	d := &s.changes
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.subs == nil {
		d.subs = map[int]func(Change){}
	}
	id := d.nextID
	d.nextID++
	d.subs[id] = f
	d.active.Add(1)
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.subs, id)
		d.active.Add(-1)
	})
}

// note queues a change; the caller may hold its own lock, and calls tell without it.
func (d *changeFeed) note(c Change) {
	if d.active.Load() == 0 {
		return
	}
	d.mu.Lock()
	d.waiting = append(d.waiting, c)
	d.mu.Unlock()
}

// tell hands out what was noted, unless another goroutine is at it, which then goes on.
func (d *changeFeed) tell() {
	if d.active.Load() == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.telling {
		return
	}
	d.telling = true
	for len(d.waiting) > 0 {
		batch := d.waiting
		d.waiting = nil
		d.hand(batch)
	}
	d.telling = false
}

// hand gives changes to the subscribers of now; it is called with the lock held and lets go
// of it meanwhile.
func (d *changeFeed) hand(batch []Change) {
	for _, c := range batch {
		for _, f := range d.inOrder() {
			d.mu.Unlock()
			contain(func() { f(c) })
			d.mu.Lock()
		}
	}
}

// inOrder is the subscribers, oldest first.
func (d *changeFeed) inOrder() (fs []func(Change)) {
	for id := range d.nextID {
		if f := d.subs[id]; f != nil {
			fs = append(fs, f)
		}
	}
	return fs
}

// contain runs a subscriber, whose own panic is none of the child's business.
func contain(f func()) {
	defer func() {
		if v := recover(); v != nil {
			panics.Add(1)
		}
	}()
	f()
}

// failedOf returns the fault of the generation gen in this place, or nil.
func (s *slot) failedOf(gen uint64) *Fault {
	if f := s.fault.Load(); f != nil && f.Generation == gen {
		return f
	}
	return nil
}

// changed notes a move of a child and raises the alarm for one that stays down.
func (s *System) changed(sl *slot, spec *Spec, m core.Move, at time.Time) {
	c := Change{
		Path: sl.path, Row: spec.Row, From: m.From, To: m.To, Generation: m.Gen, At: at,
		NextTry: m.NextTry, Abandoned: m.Abandoned, Repair: m.Repair,
	}
	switch {
	case m.Repair > 0:
		c.Fault = sl.fault.Load()
	case m.To != core.Starting:
		c.Fault = sl.failedOf(m.Gen)
	}
	s.changes.note(c)
}
