package supervision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// Limits of a system.
const (
	// watchdogTick is how often every child is checked for a hang.
	watchdogTick = time.Second
	// deadLettersLogged is how many dead letters are logged; the rest is only counted.
	deadLettersLogged = 20
)

// ErrStart is returned when the tree ended before it had started.
var ErrStart = errors.New("the tree did not start")

// ErrNoChild is returned when there is no such child now.
var ErrNoChild = errors.New("no such child")

// Config is what a System needs; zero fields mean the real clock and the default logger.
type Config struct {
	Clock Clock
	Log   *slog.Logger
	// Rand in [0,1) feeds back-off jitter; for tests that need equal runs.
	Rand func() float64
}

// Exit tells why the tree ended without being told to.
type Exit struct{ Fault Fault }

// StopReport tells what would not stop in time.
type StopReport struct {
	// Unstopped are the paths of children that were abandoned.
	Unstopped []string
	// Took is how long the stop lasted.
	Took time.Duration
}

// System is one tree and everything that watches it.
type System struct {
	clock  Clock
	log    *slog.Logger
	rand   func() float64
	ctx    context.Context
	cancel context.CancelFunc
	reg    *registry
	faults *FaultRing

	mu    sync.Mutex
	cells []*cell
	root  *cell
	spec  *Spec

	started   chan struct{}
	ended     chan struct{}
	exit      chan Exit
	startOnce sync.Once
	endOnce   sync.Once

	dead      atomic.Uint64
	abandoned atomic.Int64
	unstopped []string
}

// New makes an empty system.
func New(cfg Config) (*System, error) {
	if cfg.Clock == nil {
		cfg.Clock = RealClock()
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	s := &System{
		clock: cfg.Clock, log: cfg.Log, rand: cfg.Rand, reg: newRegistry(), faults: newFaultRing(),
		started: make(chan struct{}), ended: make(chan struct{}), exit: make(chan Exit, 1),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Start validates the tree and starts it left to right; it returns once every child has
// acknowledged its start. On an error the tree has stopped again.
func (s *System) Start(root Spec) error {
	if err := root.Validate(); err != nil {
		return err
	}
	if root.Kind != core.Supervisor {
		return fmt.Errorf("%w: %s: the root must be a supervisor", core.ErrSpec, root.ID)
	}
	c := s.build(&root, root.ID, 1, s)
	s.mu.Lock()
	if s.root != nil {
		s.mu.Unlock()
		return errors.New("cannot start the tree: it was started before")
	}
	s.root, s.spec = c, &root
	s.mu.Unlock()
	go s.watch()
	c.start()
	select {
	case <-s.started:
		return nil
	case <-s.ended:
		select {
		case e := <-s.exit:
			s.exit <- e
			return fmt.Errorf("%w: %w", ErrStart, e.Fault)
		default:
			return ErrStart
		}
	}
}

// build makes the cell of one spec.
func (s *System) build(spec *Spec, path string, gen uint64, o owner) *cell {
	sl := s.reg.slot(path)
	if spec.Kind == core.Worker {
		return newCell(s, sl, gen, spec, o, spec.Start())
	}
	if spec.Group.Strategy == core.Pool {
		p := s.reg.pool(path)
		if p == nil {
			p = newPool(s, path, spec)
			s.reg.setPool(path, p)
		}
		c := newCell(s, sl, gen, spec, o, p)
		return c
	}
	return newCell(s, sl, gen, spec, o, newSupervisor(s, spec, path))
}

// Stop ends the tree newest first and returns when nothing of it runs, or ctx ends.
func (s *System) Stop(ctx context.Context) StopReport {
	begin := s.clock.Now()
	s.mu.Lock()
	root := s.root
	s.mu.Unlock()
	if root != nil {
		root.stop()
		select {
		case <-s.ended:
		case <-ctx.Done():
			s.noteUnstopped()
			root.abandon()
			s.end()
		}
	}
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	return StopReport{Unstopped: s.unstopped, Took: s.clock.Now().Sub(begin)}
}

func (s *System) noteUnstopped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.cells {
		if c.spec.Kind == core.Worker {
			s.unstopped = append(s.unstopped, c.slot.path)
		}
	}
}

// Done yields the reason when the tree ended because a fault escalated past the root.
func (s *System) Done() <-chan Exit { return s.exit }

// Ref addresses a child by its path; it may exist already, later, or never.
func (s *System) Ref(path string) Ref { return Ref{s.reg.slot(path)} }

// Send queues a message; false means that nobody took it.
func (s *System) Send(to Ref, msg any) bool {
	if to.s == nil {
		s.deadLetter("", msg, "it was sent to nobody")
		return false
	}
	c := to.s.cell.Load()
	if c == nil {
		s.deadLetter(to.s.path, msg, "the child is not running")
		return false
	}
	return c.post(msg, false)
}

// Pool gives access to the pool at path.
func (s *System) Pool(path string) Pool { return Pool{s, path} }

// Faults is the record of every fault.
func (s *System) Faults() *FaultRing { return s.faults }

// DeadLetters is how many messages nobody took.
func (s *System) DeadLetters() uint64 { return s.dead.Load() }

// Abandoned is how many generations were left behind.
func (s *System) Abandoned() int64 { return s.abandoned.Load() }

// Clock is the system's clock.
func (s *System) Clock() Clock { return s.clock }

// Inject makes the next message of the worker at path end in a fault: for drills and tests.
func (s *System) Inject(path string, kind FaultKind) error {
	c := s.reg.slot(path).cell.Load()
	if c == nil || c.spec.Kind != core.Worker || kind >= core.NumFaultKinds {
		return fmt.Errorf("cannot inject %s into %s: %w", kind, path, ErrNoChild)
	}
	c.inject.Store(int32(kind) + 1)
	return nil
}

// Restart gives the worker or supervisor at path a new generation.
func (s *System) Restart(path string) error {
	if p, id := s.reg.poolOf(path); p != nil {
		return p.restart(id)
	}
	c := s.reg.slot(path).cell.Load()
	if c == nil {
		return fmt.Errorf("cannot restart %s: %w", path, ErrNoChild)
	}
	sup, ok := c.owner.(*supervisor)
	if !ok {
		return fmt.Errorf("cannot restart %s: it is the root; stop the process instead", path)
	}
	sup.restart(c)
	return nil
}

func (s *System) deadLetter(path string, msg any, why string) {
	if n := s.dead.Add(1); n <= deadLettersLogged {
		s.log.Debug("dead letter", "to", path, "message", fmt.Sprintf("%T", msg), "why", why)
	}
}

// record keeps, counts and logs a fault.
func (s *System) record(f Fault, c *cell) {
	c.slot.fault.Store(&f)
	first := s.faults.add(f)
	attrs := []any{"kind", f.Kind.String(), "path", f.Path, "generation", f.Generation, "in", f.Message, "err", f.Err}
	switch {
	case first && len(f.Stack) > 0:
		s.log.Error("fault", append(attrs, "stack", string(f.Stack))...)
	case first:
		s.log.Error("fault", attrs...)
	default:
		s.log.Debug("fault again", attrs...)
	}
}

func (s *System) track(c *cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.index = len(s.cells)
	s.cells = append(s.cells, c)
}

func (s *System) untrack(c *cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.cells) - 1
	if c.index > last || s.cells[c.index] != c {
		return
	}
	s.cells[c.index] = s.cells[last]
	s.cells[c.index].index = c.index
	s.cells[last] = nil
	s.cells = s.cells[:last]
}

// The system owns the root.

func (s *System) childReady(*cell) { s.startOnce.Do(func() { close(s.started) }) }

func (s *System) childFault(_ *cell, f Fault) {
	select {
	case s.exit <- Exit{f}:
	default:
	}
}

func (s *System) childExited(*cell, bool) { s.end() }

func (s *System) end() { s.endOnce.Do(func() { close(s.ended) }) }
