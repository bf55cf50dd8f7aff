package supervision

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// Node is what can be seen of one child at one moment.
type Node struct {
	Path, Row  string
	Supervisor bool
	State      State
	Generation uint64
	Restarts   int
	// Mailbox is how many messages wait, Jobs how many jobs run.
	Mailbox, Jobs int
	// BusyWith and BusyFor tell of the message that is being handled.
	BusyWith string
	BusyFor  time.Duration
	// LastBeat is the latest sign of life of a job, zero when none runs.
	LastBeat time.Time
	// Hung is set while a message or job has been silent for too long.
	Hung      bool
	LastFault *Fault
	Children  []Node
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
	s.mu.Lock()
	root := s.root
	s.mu.Unlock()
	if root == nil {
		return Tree{}
	}
	n := root.node()
	n.State = core.Running
	select {
	case <-s.ended:
		n.State = core.Idle
	case <-s.started:
	default:
		n.State = core.Starting
	}
	return Tree{Root: n}
}

// node reads one cell and what is below it.
func (c *cell) node() Node {
	n := Node{Path: c.slot.path, Row: c.spec.Row, Supervisor: c.spec.Kind == core.Supervisor, Generation: c.gen, LastFault: c.slot.fault.Load()}
	now := c.sys.clock.Now().UnixNano()
	c.mu.Lock()
	n.Mailbox, n.Jobs, n.Hung = c.inbox.n+c.control.n, len(c.jobs), c.reported || c.lateStart
	if c.current != nil {
		n.BusyWith = fmt.Sprintf("%T", c.current)
	}
	if busy := c.busySince(); busy != 0 {
		n.BusyFor = time.Duration(now - busy)
	}
	for _, j := range c.jobs {
		n.Hung = n.Hung || j.reported
		if beat := time.Unix(0, j.lastBeat.Load()); beat.After(n.LastBeat) {
			n.LastBeat = beat
		}
	}
	h := c.handler
	c.mu.Unlock()
	switch h := h.(type) {
	case *supervisor:
		n.Children = h.nodes()
	case *pool:
		n.Children = h.nodes()
	}
	return n
}

func (s *supervisor) nodes() []Node {
	s.mu.Lock()
	states := append([]core.Child(nil), s.group.Children()...)
	cells := append([]*cell(nil), s.cells...)
	s.mu.Unlock()
	out := make([]Node, len(states))
	for i, st := range states {
		if cells[i] != nil {
			out[i] = cells[i].node()
		} else {
			out[i] = Node{Path: s.path + "/" + st.Spec.ID, Row: st.Spec.Row, Supervisor: st.Spec.Kind == core.Supervisor}
		}
		out[i].State, out[i].Generation, out[i].Restarts = st.State, st.Gen, st.Restarts
	}
	return out
}

func (p *pool) nodes() []Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Node, 0, len(p.members))
	for _, m := range p.members {
		n := Node{Path: m.slot.path, Row: p.spec.Template.Row, LastFault: m.slot.fault.Load()}
		if m.cell != nil {
			n = m.cell.node()
		}
		n.State, n.Restarts = m.State, m.Restarts
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b Node) int { return cmp.Compare(a.Path, b.Path) })
	return out
}
