package supervision

import (
	"errors"
	"fmt"
	"sync"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// errAbandoned is returned when more children than allowed would not stop.
var errAbandoned = errors.New("too many abandoned children")

// errEnded is returned when a permanent child ends by itself.
var errEnded = errors.New("a permanent child ended by itself")

// groupEvent carries an event of the pure core through the supervisor's mailbox, and the
// fault that may have to be escalated.
type groupEvent struct {
	core.Event
	fault *Fault
}

// supervisor is the actor that carries out what core.Group decides. It does nothing else,
// so that it is always free to supervise.
type supervisor struct {
	sys  *System
	spec *Spec
	path string
	self *cell

	// mu guards what is read beside the actor.
	mu    sync.Mutex
	group *core.Group
	cells []*cell
	slots []*slot
	fault []*Fault
	// lost is the path of what was abandoned last.
	lost string
	// disowned: the children are nobody's any more.
	disowned bool
}

func newSupervisor(sys *System, spec *Spec, path string) *supervisor {
	specs := make([]core.ChildSpec, len(spec.Children))
	for i := range spec.Children {
		specs[i] = spec.Children[i].ChildSpec
	}
	s := &supervisor{
		sys: sys, spec: spec, path: path, group: core.NewGroup(spec.Group, specs, sys.rand),
		cells: make([]*cell, len(specs)), fault: make([]*Fault, len(specs)),
	}
	for i := range specs {
		s.slots = append(s.slots, sys.reg.slot(s.pathOf(i)))
		s.group.Resume(i, s.slots[i].gen.Load())
	}
	return s
}

func (s *supervisor) pathOf(i int) string { return s.path + "/" + s.spec.Children[i].ID }

// Receive implements Handler.
func (s *supervisor) Receive(ctx Context, msg any) error {
	switch m := msg.(type) {
	case Started:
		s.self.hold()
		ctx.DeferReady()
		s.step(groupEvent{Event: core.Event{Kind: core.GroupStart}})
	case Stopping:
		s.step(groupEvent{Event: core.Event{Kind: core.GroupStop}})
	case groupEvent:
		s.step(m)
	}
	return nil
}

func (s *supervisor) step(e groupEvent) {
	actions := s.decide(e)
	s.sys.tellChanges()
	for _, a := range actions {
		s.do(a)
	}
}

// decide asks the group, unless it has been disowned: then its children stop in their own time,
// and none is started any more.
func (s *supervisor) decide(e groupEvent) []core.Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disowned {
		return nil
	}
	if e.fault != nil && e.Child < len(s.fault) {
		s.fault[e.Child] = e.fault
	}
	now := s.sys.Steady()
	actions := append([]core.Action(nil), s.group.Step(now, e.Event)...)
	for _, m := range s.group.Moves() {
		s.sys.changed(s.slots[m.Child], &s.spec.Children[m.Child], m, now)
	}
	return actions
}

func (s *supervisor) do(a core.Action) {
	switch a.Kind {
	case core.StartChild:
		s.startChild(a)
	case core.StopChild:
		s.at(a.Child).stop()
		s.later(a, core.StopElapsed)
	case core.AbandonChild:
		s.abandonChild(a)
	case core.Wait:
		s.later(a, core.BackoffElapsed)
	case core.GroupReady:
		s.self.Ready()
	case core.GroupStopped:
		s.self.release()
	case core.GroupDone:
		s.self.end(true)
	case core.Escalate:
		s.escalate(a)
	}
}

func (s *supervisor) at(i int) *cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cells[i]
}

func (s *supervisor) startChild(a core.Action) {
	s.mu.Lock()
	if s.disowned {
		s.mu.Unlock()
		return
	}
	c := s.sys.build(&s.spec.Children[a.Child], s.pathOf(a.Child), a.Gen, s)
	s.cells[a.Child] = c
	s.mu.Unlock()
	c.start()
}

// abandonChild gives a child up. One that exited in the last moment has been given up by
// the core all the same, so it counts as returned.
func (s *supervisor) abandonChild(a core.Action) {
	s.lose(s.pathOf(a.Child))
	if !s.sys.giveUp(s.at(a.Child)) {
		s.childReturned(nil)
	}
}

// later posts an event about a child after the action's delay.
func (s *supervisor) later(a core.Action, kind core.EventKind) {
	e := groupEvent{Event: core.Event{Kind: kind, Child: a.Child, Gen: a.Gen}}
	s.sys.clock.AfterFunc(a.Delay, func() { s.self.postControl(e) })
}

// escalate fails the supervisor with the fault that its child could not be healed of.
func (s *supervisor) escalate(a core.Action) {
	s.mu.Lock()
	f, lost := s.fault[a.Child], s.lost
	s.mu.Unlock()
	if a.Overrun || f == nil {
		s.self.failKind(Hang, fmt.Errorf("%w, the last is %s", errAbandoned, lost), nil, "escalation")
		return
	}
	s.self.failKind(a.Fault, *f, nil, "escalation from "+f.Path)
}

// restart asks for a new generation of a child.
func (s *supervisor) restart(i int) {
	s.self.postControl(groupEvent{Event: core.Event{Kind: core.ChildRestart, Child: i}})
}

func (s *supervisor) lose(path string) {
	s.mu.Lock()
	s.lost = path
	s.mu.Unlock()
}

// overrun fails the whole group because too much was abandoned below it, path last.
func (s *supervisor) overrun(path string) {
	s.lose(path)
	s.self.postControl(groupEvent{Event: core.Event{Kind: core.GroupFault, Fault: Hang}})
}

// The supervisor owns its children: each report becomes a message to itself.

func (s *supervisor) report(c *cell, e core.Event, f *Fault) {
	s.mu.Lock()
	i := len(s.cells) - 1
	for i >= 0 && s.cells[i] != c {
		i--
	}
	s.mu.Unlock()
	if i >= 0 {
		e.Child, e.Gen = i, c.gen
		s.self.postControl(groupEvent{e, f})
	}
}

func (s *supervisor) childReady(c *cell) { s.report(c, core.Event{Kind: core.ChildReady}, nil) }

func (s *supervisor) childFault(c *cell, f Fault) {
	s.report(c, core.Event{Kind: core.ChildFault, Fault: f.Kind}, &f)
}

// childExited takes the end of a permanent child for a fault, because nobody asked for it.
func (s *supervisor) childExited(c *cell, normal bool) {
	var f *Fault
	if normal && c.spec.Restart == core.Permanent {
		ended := c.fault(ErrorReturn, errEnded, nil, "its end")
		s.sys.record(ended, c.slot)
		f = &ended
	}
	s.report(c, core.Event{Kind: core.ChildExited, Normal: normal}, f)
}

func (s *supervisor) childReturned(*cell) {
	s.self.postControl(groupEvent{Event: core.Event{Kind: core.ZombieReturned}})
}

// disownChildren fences everything below, newest first; each then stops in its own time.
func (s *supervisor) disownChildren() {
	s.mu.Lock()
	cells := append([]*cell(nil), s.cells...)
	s.noteDisowned()
	s.mu.Unlock()
	s.sys.tellChanges()
	for i := len(cells) - 1; i >= 0; i-- {
		if cells[i] != nil {
			cells[i].disown()
		}
	}
}

// noteDisowned notes that nobody looks after the children any more. The lock is held.
func (s *supervisor) noteDisowned() {
	if s.disowned {
		return
	}
	s.disowned = true
	for i, c := range s.group.Children() {
		if c.State != core.Idle {
			m := core.Move{Child: i, Gen: c.Gen, From: c.State, To: core.Idle, Abandoned: true}
			s.sys.changed(s.slots[i], &s.spec.Children[i], m, s.sys.clock.Now())
		}
	}
}
