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
	// active is how many subscribers there are, pending how many changes wait to be told.
	active, pending atomic.Int32

	mu      sync.Mutex
	waiting []Change
	telling bool
	subs    subscribers[Change]
}

// Watch calls f for every later change of a child's state, one after the other, in the
// goroutine that caused one of them; f must not block.
func (s *System) Watch(f func(Change)) (cancel func()) {
	d := &s.changes
	d.mu.Lock()
	defer d.mu.Unlock()
	remove := d.subs.add(f)
	d.active.Add(1)
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		remove()
		d.active.Add(-1)
	})
}

// note queues a change that somebody wants to know of; the caller may hold its own lock, and
// calls tell without it.
func (d *changeFeed) note(c Change) {
	if d.active.Load() == 0 && !c.unasked() {
		return
	}
	d.mu.Lock()
	d.waiting = append(d.waiting, c)
	d.pending.Add(1)
	d.mu.Unlock()
}

// unasked tells whether a child is down for good though nobody asked for that.
func (c *Change) unasked() bool { return c.To == core.Dead }

// tellChanges hands out what was noted, unless another goroutine is at it, which then goes on.
func (s *System) tellChanges() {
	d := &s.changes
	if d.pending.Load() == 0 {
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
		d.pending.Add(-int32(len(batch)))
		s.hand(batch)
	}
	d.telling = false
}

// hand gives changes to the subscribers of now; it is called with the feed's lock held and
// lets go of it meanwhile.
func (s *System) hand(batch []Change) {
	d := &s.changes
	for _, c := range batch {
		subs := d.subs.all
		d.mu.Unlock()
		if c.unasked() {
			s.alarm(c)
		}
		tell(subs, c)
		d.mu.Lock()
	}
}

// alarm counts and logs a stop that nobody asked for.
func (s *System) alarm(c Change) {
	s.unasked.Add(1)
	attrs := []any{"path", c.Path, "generation", c.Generation}
	if c.Fault != nil {
		attrs = append(attrs, "kind", c.Fault.Kind.String(), "err", c.Fault.Err, "stackHash", c.Fault.StackHash())
	}
	s.log.Error("child stays down by its policy", attrs...)
}

// UnaskedStops is how many children have gone down for good by their policy, which nobody had
// asked for.
func (s *System) UnaskedStops() uint64 { return s.unasked.Load() }

// failedOf returns the fault of the generation gen in this place, or nil.
func (s *slot) failedOf(gen uint64) *Fault {
	if f := s.fault.Load(); f != nil && f.Generation == gen {
		return f
	}
	return nil
}

// changed notes a move of a child.
func (s *System) changed(sl *slot, spec *Spec, m core.Move, at time.Time) {
	c := Change{
		Path: sl.path, Row: spec.Row, From: m.From, To: m.To, Generation: m.Gen, At: at,
		NextTry: m.NextTry, Abandoned: m.Abandoned, Repair: m.Repair,
	}
	if c.Fault = sl.failedOf(m.Gen); m.Repair > 0 {
		c.Fault = sl.fault.Load()
	}
	s.changes.note(c)
}
