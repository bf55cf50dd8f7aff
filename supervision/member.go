package supervision

import (
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
	// disarm stops the timer of the stop or wait in progress.
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
	c := newCell(p.sys, &m.slot, p.nextGen, p.spec.Template, m)
	c.build = m.start
	m.slot.cell.Store(c)
	return c
}

// stopTimer ends the timer of a stop or wait. The lock is held.
func (m *member) stopTimer() {
	if m.disarm != nil {
		m.disarm()
		m.disarm = nil
	}
}

// moved notes the change from the state before to the one the member is in now. The lock is
// held; System.tellChanges follows without it.
func (m *member) moved(from State, gen uint64, extra core.Move) {
	if from == m.State {
		return
	}
	p := m.pool()
	extra.From, extra.To, extra.Gen, extra.NextTry = from, m.State, gen, m.NextTry()
	p.sys.changed(&m.slot, p.spec.Template, extra, m.Since())
}

// move changes the state of a member whose generation is or was gen, and notes that. The lock
// is held.
func (m *member) move(to State, gen uint64, abandoned bool) {
	from := m.State
	m.Enter(to, m.pool().sys.Steady())
	m.moved(from, gen, core.Move{Abandoned: abandoned})
}

// begin notes the start of the generation c. The lock is held.
func (m *member) begin(c *cell) {
	m.stopTimer()
	from := m.State
	m.cell = c
	m.Begin(m.pool().sys.Steady())
	m.moved(from, c.gen, core.Move{})
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
	if c == nil {
		m.forget(core.Idle)
		return
	}
	p.mu.Unlock()
	m.stopCell(c)
}

// forget takes a member that is gone out of the pool; as says what became of it. It releases the lock: an Ensure must find either a
// member that gets a successor, or none.
func (m *member) forget(as State) {
	p := m.pool()
	if p.members[m.id()] == m {
		m.stopTimer()
		m.move(as, m.slot.gen.Load(), false)
		delete(p.members, m.id())
	}
	p.mu.Unlock()
	p.sys.tellChanges()
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
		m.move(core.Stopping, c.gen, false)
		m.disarm = p.sys.clock.AfterFunc(c.spec.StopTimeout, func() { m.stopElapsed(c) })
	}
	p.mu.Unlock()
	p.sys.tellChanges()
	c.stop()
}

func (m *member) stopElapsed(c *cell) {
	if m.pool().sys.giveUp(c) {
		m.pool().tooManyAbandoned(c)
		m.gone(c, false, true)
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
func (m *member) revive(gen uint64) bool {
	p := m.pool()
	p.mu.Lock()
	if m.cell != nil || m.leaving || p.ending || m.slot.gen.Load() != gen || p.members[m.id()] != m {
		p.mu.Unlock()
		return false
	}
	m.begin(m.make())
	m.Restarts++
	c := m.cell
	p.mu.Unlock()
	p.sys.tellChanges()
	c.start()
	return true
}

// wake ends the wait of a member.
func (m *member) wake() bool {
	p := m.pool()
	p.mu.Lock()
	waits := m.State == core.Parked || m.State == core.BackingOff
	gen := m.slot.gen.Load()
	p.mu.Unlock()
	return waits && m.revive(gen)
}

// A member owns its generations.

func (m *member) childReady(c *cell) {
	p := m.pool()
	p.mu.Lock()
	if from := m.State; m.cell == c && m.next == nil {
		repair := m.Ready(p.sys.Steady())
		m.moved(from, c.gen, core.Move{Repair: repair})
	}
	p.mu.Unlock()
	p.sys.tellChanges()
}

func (m *member) childFault(c *cell, f Fault) {
	p := m.pool()
	p.mu.Lock()
	if m.cell != c {
		p.mu.Unlock()
		return
	}
	from := m.State
	escalate := m.Faulted(&p.spec.Template.ChildSpec, &p.spec.Group, f.Kind, p.sys.Steady())
	m.moved(from, c.gen, core.Move{})
	self := p.self
	p.mu.Unlock()
	m.stopCell(c)
	if escalate {
		self.failKind(f.Kind, f, nil, "escalation from "+f.Path)
	}
}

func (m *member) childExited(c *cell, normal bool) { m.gone(c, normal, false) }

// gone decides what a member becomes whose generation c does not run any more, or is
// abandoned.
func (m *member) gone(c *cell, normal, abandoned bool) {
	p := m.pool()
	p.mu.Lock()
	if m.cell != c {
		p.mu.Unlock()
		return
	}
	m.cell = nil
	m.stopTimer()
	if p.ending || p.members[m.id()] != m {
		m.dropNext()
	}
	switch {
	case m.next != nil:
		m.promote(c.gen, abandoned)
	case m.leaving || normal || p.ending || p.members[m.id()] != m:
		m.forget(map[bool]State{true: core.Done, false: core.Idle}[normal])
	default:
		m.recover(c.gen, abandoned)
	}
}

// promote starts the successor; it releases the lock.
func (m *member) promote(gen uint64, abandoned bool) {
	p := m.pool()
	c := m.next
	m.next = nil
	m.move(core.Idle, gen, abandoned)
	m.begin(c)
	m.Restarts++
	p.mu.Unlock()
	p.sys.tellChanges()
	c.start()
}

// recover waits for the next generation as the policy says; it releases the lock.
func (m *member) recover(gen uint64, abandoned bool) {
	p := m.pool()
	from := m.State
	delay, up := m.AfterExit(&p.spec.Template.ChildSpec, p.sys.Steady(), p.sys.rand())
	m.moved(from, gen, core.Move{Abandoned: abandoned})
	if up && p.members[m.id()] == m {
		gen := m.slot.gen.Load()
		m.disarm = p.sys.clock.AfterFunc(delay, func() { m.revive(gen) })
	}
	p.mu.Unlock()
	p.sys.tellChanges()
}

func (m *member) childReturned(c *cell) {
	if c.spec.Expendable {
		return
	}
	p := m.pool()
	p.mu.Lock()
	p.zombies = max(p.zombies-1, 0)
	p.mu.Unlock()
}
