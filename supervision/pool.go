package supervision

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// Pool is the handle of a pool at a path; it stays valid over restarts of the pool.
type Pool struct {
	sys  *System
	path string
}

// Ensure starts a child unless it is there already, and returns its address. It is cheap
// when the child exists. A child that is just ending gets a successor, which starts when the
// old one is gone and keeps what is sent to it until then. While the pool itself is down the
// child is not started.
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

// Wake lets a child that is parked or backing off try again now, and tells whether it did.
// Its failures are not forgotten: if it fails again it waits as long as before.
func (p Pool) Wake(id string) bool {
	if in := p.sys.reg.pool(p.path); in != nil {
		if m := in.member(id); m != nil {
			return m.wake()
		}
	}
	return false
}

// Send queues a message for a child; false means that nobody took it.
func (p Pool) Send(id string, msg any) bool {
	p.sys.sent(p.path+"/"+id, msg)
	in := p.sys.reg.pool(p.path)
	if in == nil {
		return p.sys.deadLetter(p.path+"/"+id, msg, whyAbsent)
	}
	c := in.current(id)
	if c == nil {
		return p.sys.deadLetter(p.path+"/"+id, msg, whyAbsent)
	}
	return c.post(msg)
}

// Len is how many children there are, those in back-off included.
func (p Pool) Len() int {
	in := p.sys.reg.pool(p.path)
	if in == nil {
		return 0
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.members)
}

// Each calls f with the ID of every child until it returns false.
func (p Pool) Each(f func(id string) bool) {
	in := p.sys.reg.pool(p.path)
	if in == nil {
		return
	}
	in.mu.Lock()
	members := in.listed()
	in.mu.Unlock()
	for _, m := range members {
		if !f(m.id()) {
			return
		}
	}
}

// pool is the supervisor of children that come and go. Unlike a group's, its decisions are
// taken where an event happens, under mu, because Ensure must answer at once.
type pool struct {
	sys  *System
	spec *Spec
	path string

	mu      sync.Mutex
	self    *cell
	members map[string]*member
	nextGen uint64
	zombies int
	// ending: no child may start any more. held: the pool's own exit waits for its children.
	ending, held bool
}

func newPool(sys *System, path string, spec *Spec) *pool {
	return &pool{sys: sys, path: path, spec: spec, members: map[string]*member{}}
}

// Receive implements Handler.
func (p *pool) Receive(ctx Context, msg any) error {
	switch msg.(type) {
	case Started:
		p.begin(ctx.(*cell))
	case Stopping:
		p.endAll(ctx.(*cell))
	}
	return nil
}

func (p *pool) begin(self *cell) {
	p.mu.Lock()
	p.self, p.ending, p.held, p.zombies = self, false, true, 0
	p.members = map[string]*member{}
	p.mu.Unlock()
	self.hold()
}

// endAll stops every member at once: they do not depend on each other. A generation of the
// pool that was disowned has none any more; they may be its successor's by now.
func (p *pool) endAll(self *cell) {
	p.mu.Lock()
	if p.self != self {
		p.mu.Unlock()
		return
	}
	p.ending = true
	members := p.listed()
	p.mu.Unlock()
	for _, m := range members {
		m.leave()
	}
	p.letGo()
}

// listed returns the members; the lock is held. Their order is only defined where runs are
// repeatable: there can be very many.
func (p *pool) listed() []*member {
	all := slices.Collect(maps.Values(p.members))
	if p.sys.exec != nil {
		slices.SortFunc(all, func(a, b *member) int { return strings.Compare(a.slot.path, b.slot.path) })
	}
	return all
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
		return Ref{p.newSlot(id)}
	}
	if m := p.members[id]; m != nil {
		m.succeed(start)
		p.mu.Unlock()
		return Ref{&m.slot}
	}
	m := &member{slot: slot{path: p.path + "/" + id, pool: p}, start: start}
	p.members[m.id()] = m
	m.begin(m.make())
	c := m.cell
	p.mu.Unlock()
	p.sys.tellChanges()
	c.start()
	return Ref{&m.slot}
}

// newSlot is a place that nobody is in yet; it finds its child when there is one.
func (p *pool) newSlot(id string) *slot { return &slot{path: p.path + "/" + id, pool: p} }

// current returns the generation of a member that takes messages.
func (p *pool) current(id string) *cell {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.members[id]; m != nil {
		return m.slot.cell.Load()
	}
	return nil
}

// slotOf returns the slot of a member, or one that is empty until there is one.
func (p *pool) slotOf(id string) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.members[id]; m != nil {
		return &m.slot
	}
	return p.newSlot(id)
}

func (p *pool) member(id string) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.members[id]
}

func (p *pool) stopChild(id string) {
	if m := p.member(id); m != nil {
		m.leave()
	}
}

func (p *pool) restart(id string) error {
	m := p.member(id)
	if m == nil {
		return fmt.Errorf("cannot restart %s/%s: %w", p.path, id, ErrNoChild)
	}
	m.restart()
	return nil
}

// tooManyAbandoned notes an abandoned member and fails the pool beyond its limit.
func (p *pool) tooManyAbandoned(c *cell) {
	if c.spec.Expendable {
		return
	}
	p.mu.Lock()
	p.zombies++
	over, self := p.zombies > p.spec.Group.MaxAbandoned, p.self
	p.mu.Unlock()
	if over {
		self.failKind(Hang, fmt.Errorf("%w, the last is %s", errAbandoned, c.slot.path), nil, "abandoned")
	}
}

// disownChildren fences every member; each then stops in its own time.
func (p *pool) disownChildren() {
	p.mu.Lock()
	p.ending = true
	members := p.listed()
	p.members = map[string]*member{}
	for _, m := range members {
		m.dropNext()
		m.move(core.Idle, m.slot.gen.Load(), true)
	}
	p.mu.Unlock()
	p.sys.tellChanges()
	for _, m := range members {
		if c := m.slot.cell.Load(); c != nil {
			c.disown()
		}
	}
}
