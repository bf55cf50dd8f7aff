package supervision

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// Node is what can be seen of one child at one moment. Children that are parked, dead or done
// stay, and so do those of which an abandoned generation still runs.
type Node struct {
	Path, Row  string
	Supervisor bool
	State      State
	// Since is when State was entered; NextTry when a child that waits is started again.
	Since, NextTry time.Time
	Generation     uint64
	Restarts       int
	// Mailbox is how many messages wait, OldestFor for how long the oldest of them has, to
	// within a tick of the watchdog (a second or less); Handled how many this generation has taken.
	Mailbox   int
	OldestFor time.Duration
	Handled   uint64
	// Jobs is how many jobs run, JobNames what they are called.
	Jobs     int
	JobNames []string
	// BusyWith and BusyFor tell of the message that is being handled.
	BusyWith string
	BusyFor  time.Duration
	// LastBeat is the latest sign of life of a job, zero when none runs.
	LastBeat time.Time
	// Hung is set while a message or job has been silent for too long.
	Hung      bool
	LastFault *Fault
	// StackHash is that of LastFault.
	StackHash string
	// Abandoned is how many generations were left behind and still run; Zombies lists them.
	Abandoned int
	Zombies   []Zombie
	Children  []Node
}

// Zombie is a generation that was left behind because it would not stop, or because its
// supervisor was, and still runs.
type Zombie struct {
	Generation uint64
	// Since is when it was left behind; Fault what it had failed of before, if it had.
	Since time.Time
	Fault *Fault
	// Stack shows what it was doing then; StackHash names the place.
	Stack     string
	StackHash string
}

// Tree is the whole tree at one moment; the parts are read one after the other.
type Tree struct{ Root Node }

// Walk calls f for each node, parents first, until it returns false.
func (t Tree) Walk(f func(n Node) bool) { walk(t.Root, f) }

func walk(n Node, f func(Node) bool) bool {
	if !f(n) {
		return false
	}
	for _, c := range n.Children {
		if !walk(c, f) {
			return false
		}
	}
	return true
}

// Inspect reads the whole tree, members of pools included.
func (s *System) Inspect() Tree {
	v, root := s.reading()
	if root == nil {
		return Tree{}
	}
	return Tree{Root: v.top(root)}
}

// view is one reading of the tree.
type view struct {
	left map[string][]*zombie
	// state and since are those of the root.
	state State
	since time.Time
	// shallow leaves out what is below a node.
	shallow bool
}

// reading begins a reading; root is nil before the start.
func (s *System) reading() (v *view, root *cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &view{left: maps.Clone(s.left), state: s.state, since: s.since}, s.root
}

// top reads the root.
func (v *view) top(root *cell) Node {
	n := v.cell(root)
	n.State, n.Since = v.state, v.since
	return n
}

// cell reads one cell and what is below it.
func (v *view) cell(c *cell) Node {
	n := v.place(c.slot, c.spec)
	n.Generation, n.Handled = c.gen, c.taken()
	c.mu.Lock()
	looked := c.sys.dog.now.Load()
	n.OldestFor = max(c.inbox.oldestFor(looked), c.control.oldestFor(looked))
	n.Mailbox, n.Hung = c.inbox.n+c.control.n, c.reported || c.lateStart
	if c.current != nil {
		n.BusyWith = fmt.Sprintf("%T", c.current)
	}
	if busy := c.busySince(); busy != 0 {
		n.BusyFor = time.Duration(c.sys.watched() - busy)
	}
	v.jobs(&n, c)
	h := c.handler
	c.mu.Unlock()
	if v.shallow {
		return n
	}
	switch h := h.(type) {
	case *supervisor:
		n.Children = v.group(h)
	case *pool:
		n.Children = v.pool(h)
	}
	return n
}

// place reads what is known of a child whether or not it runs.
func (v *view) place(sl *slot, spec *Spec) Node {
	n := Node{Path: sl.path, Row: spec.Row, Supervisor: spec.Kind == core.Supervisor, Generation: sl.gen.Load(), LastFault: sl.fault.Load()}
	if n.LastFault != nil {
		n.StackHash = n.LastFault.StackHash()
	}
	for _, z := range v.left[sl.path] {
		n.Zombies = append(n.Zombies, z.Zombie)
	}
	n.Abandoned = len(n.Zombies)
	return n
}

// jobs reads the jobs of a cell, whose lock is held.
func (v *view) jobs(n *Node, c *cell) {
	n.Jobs = len(c.jobs)
	for _, j := range c.jobs {
		n.JobNames = append(n.JobNames, j.name)
		n.Hung = n.Hung || j.reported
		if beat := c.sys.shown(j.lastBeat.Load()); beat.After(n.LastBeat) {
			n.LastBeat = beat
		}
	}
}

// snapshot copies what a supervisor knows of its children.
func (s *supervisor) snapshot() (states []core.Child, cells []*cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.group.Children()), slices.Clone(s.cells)
}

// group reads the children of a supervisor.
func (v *view) group(s *supervisor) []Node {
	states, cells := s.snapshot()
	out := make([]Node, len(states))
	for i := range states {
		out[i] = v.child(s, i, cells[i], &states[i])
	}
	return out
}

// child reads one child of a supervisor.
func (v *view) child(s *supervisor, i int, c *cell, st *core.Child) (n Node) {
	if c != nil {
		n = v.cell(c)
	} else {
		n = v.place(s.slots[i], &s.spec.Children[i])
	}
	n.State, n.Since, n.NextTry = st.State, st.Since, st.NextTry
	n.Generation, n.Restarts = st.Gen, st.Restarts
	return n
}

// pool reads the members of a pool, and those it has forgotten of which something still runs.
func (v *view) pool(p *pool) []Node {
	p.mu.Lock()
	out := make([]Node, 0, len(p.members))
	for id := range v.ids(p) {
		if n, ok := v.member(p, id); ok {
			out = append(out, n)
		}
	}
	p.mu.Unlock()
	slices.SortFunc(out, func(a, b Node) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// ids are those of a pool's members and of those it has forgotten of which something still
// runs. The pool's lock is held.
func (v *view) ids(p *pool) iter.Seq[string] {
	return func(yield func(string) bool) {
		for id := range p.members {
			if !yield(id) {
				return
			}
		}
		for path := range v.left {
			if id, ok := strings.CutPrefix(path, p.path+"/"); ok && p.members[id] == nil && !yield(id) {
				return
			}
		}
	}
}

// member reads one member of a pool, whose lock is held; false when there is none.
func (v *view) member(p *pool, id string) (n Node, ok bool) {
	m := p.members[id]
	if m == nil {
		return v.forgotten(p, id)
	}
	if m.cell != nil {
		n = v.cell(m.cell)
	} else {
		n = v.place(&m.slot, p.spec.Template)
	}
	n.State, n.Since, n.NextTry, n.Restarts = m.State, m.Since(), m.NextTry(), m.Restarts
	return n, true
}

// forgotten reads a member that is not one any more, but of which something still runs.
func (v *view) forgotten(p *pool, id string) (n Node, ok bool) {
	zs := v.left[p.path+"/"+id]
	if len(zs) == 0 {
		return n, false
	}
	n = v.place(zs[0].cell.slot, p.spec.Template)
	n.State, n.Since = core.Idle, zs[0].Since
	return n, true
}
