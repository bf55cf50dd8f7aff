package supervision

import (
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// member is one child of a pool, over all its generations. The pool's lock guards all of it
// but the slot.
type member struct {
	slot  slot
	start func() Handler
	core.Solo
	cell *cell
	// next is the successor that waits for cell to be gone.
	next *cell
	// disarm stops the timer of the stop in progress.
	disarm func() bool
	// leaving members are forgotten when they are gone.
	leaving bool
}

func (m *member) pool() *pool { return m.slot.pool }

func (m *member) id() string { return m.slot.path[len(m.slot.pool.path)+1:] }

// make makes the next generation and lets it queue messages; the lock is held.
func (m *member) make() *cell {
	p := m.pool()
	p.nextGen++
	m.slot.gen.Store(p.nextGen)
	m.Begin(p.sys.clock.Now())
	c := newCell(p.sys, &m.slot, p.nextGen, p.spec.Template, m)
	c.build = m.start
	m.slot.cell.Store(c)
	return c
}

// succeed gives a member that is just ending a successor. The lock is held.
func (m *member) succeed(start func() Handler) {
	gone := m.cell != nil && (m.leaving || m.cell.endingNormally())
	if gone && m.next == nil {
		m.start, m.leaving = start, false
		m.next = m.make()
	}
}

// dropNext gives the successor up. The lock is held.
func (m *member) dropNext() {
	if m.next == nil {
		return
	}
	m.next.abortBirth()
	m.next = nil
}

// leave ends a member for good.
func (m *member) leave() {
	p := m.pool()
	p.mu.Lock()
	m.leaving = true
	m.dropNext()
	c := m.cell
	p.mu.Unlock()
	if c != nil {
		m.stopCell(c)
		return
	}
	m.forget()
}

func (m *member) forget() {
	p := m.pool()
	p.mu.Lock()
	if p.members[m.id()] == m {
		delete(p.members, m.id())
	}
	p.mu.Unlock()
	p.letGo()
}

// stopCell stops a generation and abandons it if it takes too long.
func (m *member) stopCell(c *cell) {
	p := m.pool()
	p.mu.Lock()
	if m.cell != c {
		p.mu.Unlock()
		return
	}
	if m.disarm == nil {
		m.State = core.Stopping
		m.disarm = p.sys.clock.AfterFunc(c.spec.StopTimeout, func() { m.stopElapsed(c) })
	}
	p.mu.Unlock()
	c.stop()
}

func (m *member) stopElapsed(c *cell) {
	if m.pool().sys.giveUp(c) {
		m.pool().tooManyAbandoned(c)
		m.childExited(c, false)
	}
}

// restart gives the member a new generation whatever state it is in.
func (m *member) restart() {
	p := m.pool()
	p.mu.Lock()
	m.Forgive()
	c := m.cell
	if c != nil && m.next == nil && !m.leaving {
		m.next = m.make()
	}
	gen := m.slot.gen.Load()
	p.mu.Unlock()
	if c != nil {
		m.stopCell(c)
		return
	}
	m.revive(gen)
}

// revive starts the next generation of a member whose wait is over; gen is the one that
// ended.
func (m *member) revive(gen uint64) {
	p := m.pool()
	p.mu.Lock()
	if m.cell != nil || m.leaving || p.ending || m.slot.gen.Load() != gen || p.members[m.id()] != m {
		p.mu.Unlock()
		return
	}
	m.cell = m.make()
	m.Restarts++
	c := m.cell
	p.mu.Unlock()
	c.start()
}

// A member owns its generations.

func (m *member) childReady(c *cell) {
	p := m.pool()
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.cell == c && m.next == nil {
		m.Ready(p.sys.clock.Now())
	}
}

func (m *member) childFault(c *cell, f Fault) {
	p := m.pool()
	p.mu.Lock()
	if m.cell != c {
		p.mu.Unlock()
		return
	}
	escalate := m.Faulted(&p.spec.Template.ChildSpec, p.spec.Group.Intensity, f.Kind, p.sys.clock.Now())
	self := p.self
	p.mu.Unlock()
	m.stopCell(c)
	if escalate {
		self.failKind(f.Kind, f, nil, "escalation from "+f.Path)
	}
}

func (m *member) childExited(c *cell, normal bool) {
	p := m.pool()
	p.mu.Lock()
	if m.cell != c {
		p.mu.Unlock()
		return
	}
	m.cell = nil
	if m.disarm != nil {
		m.disarm()
		m.disarm = nil
	}
	if p.ending || p.members[m.id()] != m {
		m.dropNext()
	}
	switch {
	case m.next != nil:
		m.promote()
	case m.leaving || normal || p.ending:
		p.mu.Unlock()
		m.forget()
	default:
		m.recover()
	}
}

// promote starts the successor; it releases the lock.
func (m *member) promote() {
	p := m.pool()
	m.cell, m.next = m.next, nil
	m.Restarts++
	m.Begin(p.sys.clock.Now())
	c := m.cell
	p.mu.Unlock()
	c.start()
}

// recover waits for the next generation as the policy says; it releases the lock.
func (m *member) recover() {
	p := m.pool()
	delay, up := m.AfterExit(&p.spec.Template.ChildSpec, p.sys.clock.Now(), p.sys.rand())
	gen := m.slot.gen.Load()
	listed := p.members[m.id()] == m
	p.mu.Unlock()
	if up && listed {
		m.wait(delay, gen)
	}
}

func (m *member) wait(delay time.Duration, gen uint64) {
	m.pool().sys.clock.AfterFunc(delay, func() { m.revive(gen) })
}

func (m *member) childReturned(*cell) {
	p := m.pool()
	p.mu.Lock()
	p.zombies = max(p.zombies-1, 0)
	p.mu.Unlock()
}
