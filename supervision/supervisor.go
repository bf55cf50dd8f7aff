package supervision

import (
	"sync"

	"github.com/nodeactor/nodeactor/supervision/core"
)

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

	// mu guards what introspection reads beside the actor.
	mu    sync.Mutex
	group *core.Group
	cells []*cell
	fault []*Fault

	self *cell
}

func newSupervisor(sys *System, spec *Spec, path string) *supervisor {
	specs := make([]core.ChildSpec, len(spec.Children))
	for i := range spec.Children {
		specs[i] = spec.Children[i].ChildSpec
	}
	return &supervisor{
		sys: sys, spec: spec, path: path, group: core.NewGroup(spec.Group, specs, sys.rand),
		cells: make([]*cell, len(specs)), fault: make([]*Fault, len(specs)),
	}
}

// Receive implements Handler.
func (s *supervisor) Receive(ctx Context, msg any) error {
	switch m := msg.(type) {
	case Started:
		s.self = ctx.(*cell)
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
	s.mu.Lock()
	if e.fault != nil && e.Child < len(s.fault) {
		s.fault[e.Child] = e.fault
	}
	actions := append([]core.Action(nil), s.group.Step(s.sys.clock.Now(), e.Event)...)
	s.mu.Unlock()
	for _, a := range actions {
		s.do(a)
	}
}

func (s *supervisor) do(a core.Action) {
	switch a.Kind {
	case core.StartChild:
		s.startChild(a)
	case core.StopChild:
		s.at(a.Child).stop()
		s.later(a, core.StopElapsed)
	case core.AbandonChild:
		s.sys.log.Error("child abandoned: it would not stop", "path", s.at(a.Child).slot.path, "generation", a.Gen)
		s.at(a.Child).abandon()
	case core.Wait:
		s.later(a, core.BackoffElapsed)
	case core.GroupReady:
		s.self.Ready()
	case core.GroupStopped:
		s.self.release()
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
	spec := &s.spec.Children[a.Child]
	c := s.sys.build(spec, s.path+"/"+spec.ID, a.Gen, s)
	s.mu.Lock()
	s.cells[a.Child] = c
	s.mu.Unlock()
	s.later(a, core.StartElapsed)
	c.start()
}

// later posts an event about a child after the action's delay.
func (s *supervisor) later(a core.Action, kind core.EventKind) {
	e := groupEvent{Event: core.Event{Kind: kind, Child: a.Child, Gen: a.Gen}}
	s.sys.clock.AfterFunc(a.Delay, func() { s.self.post(e, true) })
}

func (s *supervisor) escalate(a core.Action) {
	s.mu.Lock()
	f := s.fault[a.Child]
	s.mu.Unlock()
	if f == nil {
		s.self.failKind(a.Fault, ErrDone, nil, "escalation")
		return
	}
	s.self.failKind(f.Kind, *f, nil, "escalation from "+f.Path)
}

// restart asks for a new generation of a child.
func (s *supervisor) restart(c *cell) {
	if i := s.indexOf(c); i >= 0 {
		s.self.post(groupEvent{Event: core.Event{Kind: core.ChildRestart, Child: i, Gen: c.gen}}, true)
	}
}

func (s *supervisor) indexOf(c *cell) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.cells {
		if s.cells[i] == c {
			return i
		}
	}
	return -1
}

// The supervisor owns its children: each report becomes a message to itself.

func (s *supervisor) report(c *cell, e core.Event, f *Fault) {
	if i := s.indexOf(c); i >= 0 {
		e.Child, e.Gen = i, c.gen
		s.self.post(groupEvent{e, f}, true)
	}
}

func (s *supervisor) childReady(c *cell) { s.report(c, core.Event{Kind: core.ChildReady}, nil) }

func (s *supervisor) childFault(c *cell, f Fault) {
	s.report(c, core.Event{Kind: core.ChildFault, Fault: f.Kind}, &f)
}

func (s *supervisor) childExited(c *cell, normal bool) {
	s.report(c, core.Event{Kind: core.ChildExited, Normal: normal}, nil)
}

// abandonChildren fences everything below, newest first.
func (s *supervisor) abandonChildren() {
	s.mu.Lock()
	cells := append([]*cell(nil), s.cells...)
	s.mu.Unlock()
	for i := len(cells) - 1; i >= 0; i-- {
		if cells[i] != nil {
			cells[i].abandon()
		}
	}
}
