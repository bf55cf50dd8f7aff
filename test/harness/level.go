package harness

import (
	"context"
	"sync"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// Pace of the levels that have no scheduler of their own.
const (
	// pollEvery is how often a condition is looked at.
	pollEvery = time.Millisecond
	// quietFor is how long nothing may happen on the machine's clock to count as settled.
	quietFor = 20 * time.Millisecond
	// steadyParts is which part of the given time nothing may happen in to count as rest.
	steadyParts = 10
)

// level is what the levels of a kit differ in.
type level interface {
	// executor is nil where goroutines run the systems.
	executor() supervision.Executor
	clock() supervision.Clock
	// settle returns when only time can make something happen.
	settle()
	advance(d time.Duration)
	// steady returns true once nothing happens any more, false when max has passed before.
	steady(max time.Duration) bool
	// await lets time pass until the condition holds; it is for the test.
	await(max time.Duration, until func() bool) bool
	// wait blocks its caller until the condition holds; c wakes it where goroutines run. block
	// does the same without being told.
	wait(c *cond, until func() bool) bool
	block(until func() bool)
	spawn(name string, f func())
	// close ends what is left, and returns its names.
	close() []string
}

// cond tells those who wait that something they may wait for has changed.
type cond struct {
	mu      sync.Mutex
	changed chan struct{}
}

// signal wakes those who wait; where a scheduler looks for itself nobody does.
func (c *cond) signal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

func (c *cond) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// wakeOn signals when ctx ends, where nobody looks by himself.
func (k *Kit) wakeOn(ctx context.Context, c *cond) (stop func() bool) {
	if k.level.executor() != nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, c.signal)
}

// The seeded level.

func (s *sched) executor() supervision.Executor { return s }

func (s *sched) clock() supervision.Clock { return s }

func (s *sched) settle() { s.drive(goal{calm: true, limit: forever}) }

func (s *sched) advance(d time.Duration) { s.drive(goal{limit: s.now.Load() + int64(d)}) }

func (s *sched) steady(max time.Duration) bool {
	return s.drive(goal{rest: true, limit: s.now.Load() + int64(max)})
}

func (s *sched) await(max time.Duration, until func() bool) bool {
	return s.drive(goal{until: until, limit: s.now.Load() + int64(max)})
}

func (s *sched) block(until func() bool) { s.Wait(until) }

func (s *sched) wait(_ *cond, until func() bool) bool { return s.Wait(until) }

func (s *sched) spawn(name string, f func()) { s.add(item{call: f, name: name}) }

// concurrent is what the levels with goroutines have in common.
type concurrent struct {
	k   *Kit
	wg  sync.WaitGroup
	now supervision.Clock
}

func (c *concurrent) executor() supervision.Executor { return nil }

func (c *concurrent) clock() supervision.Clock { return c.now }

func (c *concurrent) wait(on *cond, until func() bool) bool {
	for {
		changed := on.wait()
		if until() {
			return true
		}
		<-changed
	}
}

func (c *concurrent) await(max time.Duration, until func() bool) bool {
	for end := c.now.Now().Add(max); !until(); {
		if c.now.Now().After(end) {
			return false
		}
		_ = c.now.Sleep(context.Background(), pollEvery)
		c.k.level.settle()
	}
	return true
}

func (c *concurrent) block(until func() bool) {
	for !until() {
		_ = c.now.Sleep(context.Background(), pollEvery)
	}
}

func (c *concurrent) spawn(_ string, f func()) { c.wg.Go(f) }

func (c *concurrent) close() []string {
	c.wg.Wait()
	return nil
}

// calmFor waits until nothing has happened for so long, at most until the deadline.
func (c *concurrent) calmFor(quiet, max time.Duration) bool {
	since, seen := time.Duration(0), c.k.activity()
	for passed := time.Duration(0); passed < max; passed += pollEvery {
		_ = c.now.Sleep(context.Background(), pollEvery)
		since += pollEvery
		if now := c.k.activity(); now != seen {
			since, seen = 0, now
		}
		if since >= quiet && !c.k.busy() {
			return true
		}
	}
	return false
}

func (c *concurrent) steady(max time.Duration) bool { return c.calmFor(max/steadyParts, max) }

// bubble is the level in a bubble of testing/synctest.
type bubble struct{ concurrent }

func (b *bubble) settle() { synctest.Wait() }

func (b *bubble) advance(d time.Duration) {
	_ = b.now.Sleep(context.Background(), d)
	synctest.Wait()
}

// real is the level on the machine's clock.
type real struct{ concurrent }

func (r *real) settle() { r.calmFor(quietFor, time.Minute) }

func (r *real) advance(d time.Duration) {
	_ = r.now.Sleep(context.Background(), d)
	r.settle()
}
