package supervision

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// Pool is the handle of a pool at a path; it stays valid over restarts of the pool.
type Pool struct {
	sys  *System
	path string
}

// Ensure starts a child unless it is there already, and returns its address. It is cheap
// when the child exists. While the pool itself is down the child is not started.
func (p Pool) Ensure(id string, start func() Handler) Ref {
	if in := p.sys.reg.pool(p.path); in != nil {
		return in.ensure(id, start)
	}
	return Ref{}
}

// Stop ends a child for good; nothing happens when there is none.
func (p Pool) Stop(id string) {
	if in := p.sys.reg.pool(p.path); in != nil {
		in.stopChild(id)
	}
}

// Send queues a message for a child; false means that nobody took it.
func (p Pool) Send(id string, msg any) bool {
	in := p.sys.reg.pool(p.path)
	if in == nil {
		return false
	}
	c := in.current(id)
	if c == nil {
		p.sys.deadLetter(p.path+"/"+id, msg, "there is no such child in the pool")
		return false
	}
	return c.post(msg, false)
}

// Len is how many children there are, those in back-off included.
func (p Pool) Len() int {
	if in := p.sys.reg.pool(p.path); in != nil {
		in.mu.Lock()
		defer in.mu.Unlock()
		return len(in.members)
	}
	return 0
}

// Each calls f with the ID of every child until it returns false.
func (p Pool) Each(f func(id string) bool) {
	in := p.sys.reg.pool(p.path)
	if in == nil {
		return
	}
	in.mu.Lock()
	ids := slices.Collect(maps.Keys(in.members))
	in.mu.Unlock()
	for _, id := range ids {
		if !f(id) {
			return
		}
	}
}

// member is one child of a pool, over all its generations.
type member struct {
	id    string
	slot  *slot
	start func() Handler
	// solo is a group of one, which gives each member a budget of its own.
	core.Solo
	cell *cell
	// leaving members go when they have exited; again asks for a new life after that.
	leaving bool
	again   func() Handler
}

// pool is the supervisor of children that come and go.
type pool struct {
	sys  *System
	spec *Spec
	path string

	mu      sync.Mutex
	self    *cell
	members map[string]*member
	nextGen uint64
	ending  bool
	held    bool
}

func newPool(sys *System, path string, spec *Spec) *pool {
	return &pool{sys: sys, path: path, spec: spec, members: map[string]*member{}}
}

// Receive implements Handler.
func (p *pool) Receive(ctx Context, msg any) error {
	switch msg.(type) {
	case Started:
		p.mu.Lock()
		p.self, p.ending, p.held = ctx.(*cell), false, true
		p.members = map[string]*member{}
		p.mu.Unlock()
		p.self.hold()
	case Stopping:
		p.endAll()
	}
	return nil
}

// endAll stops every member at once: they do not depend on each other.
func (p *pool) endAll() {
	p.mu.Lock()
	p.ending = true
	members := slices.Collect(maps.Values(p.members))
	p.mu.Unlock()
	for _, m := range members {
		p.leave(m)
	}
	p.letGo()
}

// letGo lets the pool exit once it is ending and empty.
func (p *pool) letGo() {
	p.mu.Lock()
	free := p.ending && p.held && len(p.members) == 0
	if free {
		p.held = false
	}
	self := p.self
	p.mu.Unlock()
	if free {
		self.release()
	}
}

func (p *pool) ensure(id string, start func() Handler) Ref {
	p.mu.Lock()
	if p.self == nil || p.ending {
		p.mu.Unlock()
		return Ref{}
	}
	m := p.members[id]
	if m != nil {
		if m.leaving {
			m.again = start
		}
		p.mu.Unlock()
		return Ref{m.slot}
	}
	m = &member{id: id, slot: &slot{path: p.path + "/" + id}, start: start}
	p.members[id] = m
	c := p.next(m)
	p.mu.Unlock()
	c.start()
	return Ref{m.slot}
}

// next makes the next generation of a member; the lock is held.
func (p *pool) next(m *member) *cell {
	p.nextGen++
	m.Begin(p.sys.clock.Now())
	m.cell = newCell(p.sys, m.slot, p.nextGen, p.spec.Template, p, m.start())
	return m.cell
}

func (p *pool) current(id string) *cell {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.members[id]; m != nil {
		return m.cell
	}
	return nil
}

// slotOf returns the slot of a member, or one that nobody will ever be in.
func (p *pool) slotOf(id string) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.members[id]; m != nil {
		return m.slot
	}
	return &slot{path: p.path + "/" + id}
}

func (p *pool) stopChild(id string) {
	p.mu.Lock()
	m := p.members[id]
	p.mu.Unlock()
	if m != nil {
		p.leave(m)
	}
}

// leave ends a member for good.
func (p *pool) leave(m *member) {
	p.mu.Lock()
	m.leaving, m.again = true, nil
	c := m.cell
	p.mu.Unlock()
	if c == nil {
		p.gone(m)
		return
	}
	p.stopCell(c)
}

// stopCell stops a generation and abandons it if it takes too long.
func (p *pool) stopCell(c *cell) {
	c.stop()
	p.sys.clock.AfterFunc(c.spec.StopTimeout, func() {
		if c.fenced.Load() {
			return
		}
		p.sys.log.Error("child abandoned: it would not stop", "path", c.slot.path, "generation", c.gen)
		c.abandon()
		p.childExited(c, false)
	})
}

// gone forgets a member, or gives it another life.
func (p *pool) gone(m *member) {
	p.mu.Lock()
	if m.again != nil && !p.ending {
		m.start, m.again, m.leaving = m.again, nil, false
		c := p.next(m)
		p.mu.Unlock()
		c.start()
		return
	}
	if p.members[m.id] == m {
		delete(p.members, m.id)
	}
	p.mu.Unlock()
	p.letGo()
}

func (p *pool) memberOf(c *cell) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := c.slot.path[len(p.path)+1:]; ; {
		if m := p.members[id]; m != nil && m.cell == c {
			return m
		}
		return nil
	}
}

func (p *pool) restart(id string) error {
	p.mu.Lock()
	m := p.members[id]
	if m == nil {
		p.mu.Unlock()
		return fmt.Errorf("cannot restart %s/%s: %w", p.path, id, ErrNoChild)
	}
	c := m.cell
	p.mu.Unlock()
	if c == nil {
		p.revive(m)
		return nil
	}
	p.mu.Lock()
	m.again, m.leaving = m.start, true
	p.mu.Unlock()
	p.stopCell(c)
	return nil
}

// The pool owns its members.

func (p *pool) childReady(c *cell) {
	if m := p.memberOf(c); m != nil {
		p.mu.Lock()
		m.State = core.Running
		p.mu.Unlock()
	}
}

func (p *pool) childFault(c *cell, f Fault) {
	m := p.memberOf(c)
	if m == nil {
		return
	}
	p.mu.Lock()
	m.Faulted(p.spec.Template.ChildSpec, p.spec.Group.Intensity, f.Kind, p.sys.clock.Now())
	p.mu.Unlock()
	p.stopCell(c)
	if p.spec.Template.Policy[f.Kind].Do == core.DoEscalate {
		p.self.failKind(f.Kind, f, nil, "escalation from "+f.Path)
	}
}

func (p *pool) childExited(c *cell, normal bool) {
	m := p.memberOf(c)
	if m == nil {
		return
	}
	p.mu.Lock()
	m.cell = nil
	if m.leaving || normal || p.ending {
		p.mu.Unlock()
		p.gone(m)
		return
	}
	delay, up := m.AfterExit(p.spec.Template.ChildSpec, p.sys.rand())
	p.mu.Unlock()
	if up {
		p.sys.clock.AfterFunc(delay, func() { p.revive(m) })
	}
}

// revive starts the next generation of a member whose wait is over.
func (p *pool) revive(m *member) {
	p.mu.Lock()
	if m.cell != nil || m.leaving || p.ending || p.members[m.id] != m {
		p.mu.Unlock()
		return
	}
	c := p.next(m)
	m.Restarts++
	p.mu.Unlock()
	c.start()
}

// abandonChildren fences every member.
func (p *pool) abandonChildren() {
	p.mu.Lock()
	p.ending = true
	members := slices.Collect(maps.Values(p.members))
	p.members = map[string]*member{}
	p.mu.Unlock()
	for _, m := range members {
		if m.cell != nil {
			m.cell.abandon()
		}
	}
}
