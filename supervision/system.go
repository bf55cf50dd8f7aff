package supervision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// Limits of a system.
const (
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
	// Executor runs the system in place of goroutines, and Tap sees its messages; both are for
	// tests.
	Executor Executor
	Tap      Tap
}

// Exit tells why the tree ended without being told to.
type Exit struct {
	// Fault is what escalated past the root; its Kind and Err are only meaningful when
	// Finished is false.
	Fault Fault
	// Finished is true when the tree came to its normal end by itself.
	Finished bool
}

// StopReport tells what would not stop in time.
type StopReport struct {
	// Unstopped are the paths of children that were abandoned.
	Unstopped []string
	// Stacks shows by path what each of them was doing.
	Stacks map[string]string
	// Took is how long the stop lasted.
	Took time.Duration
}

// System is one tree and everything that watches it.
type System struct {
	clock  Clock
	epoch  time.Time
	log    *slog.Logger
	rand   func() float64
	exec   Executor
	tap    Tap
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
	zombies   atomic.Int64
	grave     atomic.Int64 // zombies that are not expendable
	gauges    gauges
	dog       watchdog
	stopping  bool
	unstopped []string
	stacks    map[string]string

	changes   changeFeed
	measuring atomic.Bool
	unasked   atomic.Uint64
	// left are the zombies by path; state is that of the root, since when it was entered. All
	// are guarded by mu.
	left  map[string][]*zombie
	state State
	since time.Time
}

// New makes an empty system.
func New(cfg Config) (*System, error) {
	if cfg.Clock == nil && cfg.Executor != nil {
		return nil, errExecutorClock
	}
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
		clock: cfg.Clock, log: cfg.Log, rand: cfg.Rand, exec: cfg.Executor, tap: cfg.Tap, reg: newRegistry(), faults: newFaultRing(),
		started: make(chan struct{}), ended: make(chan struct{}), exit: make(chan Exit, 1),
		stacks: map[string]string{}, left: map[string][]*zombie{}, gauges: gauges{handled: map[family]uint64{}},
	}
	s.dog.tick.Store(int64(slowestTick))
	s.epoch = s.clock.Now()
	s.dog.now.Store(s.epoch.UnixNano())
	base := context.Background()
	if s.exec != nil {
		base = WithExecutor(base, s.exec)
	}
	s.ctx, s.cancel = context.WithCancel(base)
	return s, nil
}

// Start validates the tree and starts it left to right; it returns once every child has
// acknowledged its start. On an error the tree has stopped again.
func (s *System) Start(root Spec) error {
	if err := s.Begin(root); err != nil {
		return err
	}
	s.waitStarted()
	if over(s.started) {
		return nil
	}
	return s.startError()
}

// Begin is Start without waiting for the children.
func (s *System) Begin(root Spec) error {
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
	s.rootMoves(core.Starting)
	s.watch()
	c.start()
	return nil
}

// startError says why the tree ended; the reason also stays on Done.
func (s *System) startError() error {
	select {
	case e := <-s.exit:
		s.exit <- e
		return fmt.Errorf("%w: %w", ErrStart, e.Fault)
	default:
		return ErrStart
	}
}

// build makes the cell of one spec and lets it take messages; it has to be started.
func (s *System) build(spec *Spec, path string, gen uint64, o owner) *cell {
	sl := s.reg.slot(path)
	sl.gen.Store(gen)
	c := newCell(s, sl, gen, spec, o)
	s.window(min(spec.HangAfter, spec.StartTimeout))
	switch {
	case spec.Kind == core.Worker:
	case spec.Group.Strategy == core.Pool:
		c.handler = s.poolAt(path, spec)
	default:
		sup := newSupervisor(s, spec, path)
		sup.self, c.handler = c, sup
	}
	sl.cell.Store(c)
	return c
}

// poolAt returns the pool of a path, which outlives the generations of its supervisor.
func (s *System) poolAt(path string, spec *Spec) *pool {
	s.window(min(spec.Template.HangAfter, spec.Template.StartTimeout))
	p := s.reg.pool(path)
	if p == nil {
		p = newPool(s, path, spec)
		s.reg.setPool(path, p)
	}
	return p
}

// Stop ends the tree newest first and returns when nothing of it runs, or ctx ends.
func (s *System) Stop(ctx context.Context) StopReport {
	begin := s.clock.Now()
	if s.BeginStop() && !s.waitEnded(ctx) {
		s.giveUpAll()
	}
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	return StopReport{Unstopped: slices.Clone(s.unstopped), Stacks: maps.Clone(s.stacks), Took: s.clock.Now().Sub(begin)}
}

// BeginStop begins what Stop waits for; false means that there is nothing to stop.
func (s *System) BeginStop() bool {
	s.mu.Lock()
	root := s.root
	s.stopping = true
	s.mu.Unlock()
	if root == nil {
		return false
	}
	s.rootMoves(core.Stopping)
	root.stop()
	return true
}

// giveUpAll abandons the tree because there is no time left.
func (s *System) giveUpAll() {
	s.mu.Lock()
	root, left := s.root, slices.Clone(s.cells)
	s.mu.Unlock()
	goroutines := s.allStacks()
	for _, c := range left {
		if c.spec.Kind == core.Worker {
			s.noteUnstopped(c, c.stackIn(goroutines))
		}
	}
	root.abandon(nil)
	s.end()
}

func (s *System) noteUnstopped(c *cell, stack []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		s.unstopped = append(s.unstopped, c.slot.path)
		s.stacks[c.slot.path] = string(stack)
	}
}

// giveUp abandons a child that would not stop in time, and the whole tree when the root's
// limit of such children is passed. It returns false when the child had exited after all.
func (s *System) giveUp(c *cell) bool {
	stack := c.stack()
	if !c.abandon(stack) {
		return false
	}
	s.log.Error("child abandoned: it would not stop", "path", c.slot.path, "generation", c.gen, "stack", string(stack))
	s.noteUnstopped(c, stack)
	s.mu.Lock()
	root := s.root
	s.mu.Unlock()
	if sup, ok := root.handler.(*supervisor); ok && s.grave.Load() > int64(sup.spec.Group.MaxAbandoned) {
		sup.overrun(c.slot.path)
	}
	return true
}

// countZombie counts an abandoned child that still runs.
func (s *System) countZombie(c *cell, n int64) {
	s.zombies.Add(n)
	if !c.spec.Expendable {
		s.grave.Add(n)
	}
}

// Done yields the reason when the tree ended because a fault escalated past the root.
func (s *System) Done() <-chan Exit { return s.exit }

// Ref addresses a child by its path; it may exist already, later, or never.
func (s *System) Ref(path string) Ref { return Ref{s.reg.slot(path)} }

// Send queues a message; false means that nobody took it.
func (s *System) Send(to Ref, msg any) bool {
	s.sent(to.Path(), msg)
	if to.s == nil {
		return s.deadLetter("", msg, whyNobody)
	}
	c := to.s.current()
	if c == nil {
		return s.deadLetter(to.s.path, msg, whyAbsent)
	}
	return c.post(msg)
}

// Pool gives access to the pool at path.
func (s *System) Pool(path string) Pool { return Pool{s, path} }

// Faults is the record of every fault.
func (s *System) Faults() *FaultRing { return s.faults }

// DeadLetters is how many messages nobody took.
func (s *System) DeadLetters() uint64 { return s.dead.Load() }

// Report records a fault of something that is not a child, such as a request handler, as if
// it were one: it is kept, counted and logged.
func (s *System) Report(f Fault) {
	if f.At.IsZero() {
		f.At = s.clock.Now()
	}
	s.record(f, nil)
}

// Abandoned is how many generations were left behind.
func (s *System) Abandoned() int64 { return s.abandoned.Load() }

// Steady is the time on a clock that nobody sets, in which Node tells its times: spans between
// two of its times are right even where the wall clock was moved meanwhile.
func (s *System) Steady() time.Time { return s.epoch.Add(s.clock.Now().Sub(s.epoch)) }

// Clock is the system's clock.
func (s *System) Clock() Clock { return s.clock }

// Inject gives the worker at path a message whose handling ends in a fault: for drills and
// tests. An injected hang lasts until the child is cancelled for it.
func (s *System) Inject(path string, kind FaultKind) error {
	sl := s.reg.find(path)
	if sl == nil || kind >= core.NumFaultKinds {
		return fmt.Errorf("cannot inject %s into %s: %w", kind, path, ErrNoChild)
	}
	c := sl.current()
	if c == nil || c.spec.Kind != core.Worker {
		return fmt.Errorf("cannot inject %s into %s: %w", kind, path, ErrNoChild)
	}
	c.postOwn(injection{kind})
	return nil
}

// Restart gives the worker or supervisor at path a new generation, whatever state it is in;
// what its strategy restarts together with it is restarted too.
func (s *System) Restart(path string) error {
	if p, id := s.reg.poolOf(path); p != nil {
		return p.restart(id)
	}
	if !strings.Contains(path, "/") {
		return fmt.Errorf("cannot restart %s: the root ends only with the process", path)
	}
	sup, i := s.parent(path)
	if sup == nil {
		return fmt.Errorf("cannot restart %s: %w", path, ErrNoChild)
	}
	sup.restart(i)
	return nil
}

// parent finds the supervisor of the child at path, and which of its children that is; nil
// when there is no such child now, or it is a member of a pool.
func (s *System) parent(path string) (sup *supervisor, i int) {
	at := strings.LastIndexByte(path, '/')
	above := s.reg.find(path[:max(at, 0)])
	if above == nil {
		return nil, 0
	}
	if sup = above.supervisor(); sup == nil {
		return nil, 0
	}
	i = slices.IndexFunc(sup.spec.Children, func(c Spec) bool { return c.ID == path[at+1:] })
	if i < 0 {
		return nil, 0
	}
	return sup, i
}

// supervisor returns the supervisor at a place, or nil.
func (s *slot) supervisor() *supervisor {
	c := s.cell.Load()
	if c == nil || c.spec.Kind != core.Supervisor {
		return nil
	}
	sup, _ := c.handler.(*supervisor)
	return sup
}

// deadLetter counts a message that nobody took; it returns false for the sender.
func (s *System) deadLetter(path string, msg any, why string) bool {
	if s.tap != nil {
		s.tap.DeadLetter(path, msg, why)
	}
	s.gauges.lost(why)
	if n := s.dead.Add(1); n <= deadLettersLogged {
		s.log.Debug("dead letter", "to", path, "message", fmt.Sprintf("%T", msg), "why", why)
	}
	return false
}

// record keeps, counts and logs a fault; its stack is logged once for each signature.
func (s *System) record(f Fault, sl *slot) {
	f.sig = f.signature()
	// What a generation failed of is its first fault: one more while it stops changes nothing.
	if sl != nil && sl.failedOf(f.Generation) == nil {
		sl.fault.Store(&f)
	}
	first := s.faults.add(f)
	attrs := []any{"kind", f.Kind.String(), "path", f.Path, "generation", f.Generation, "in", f.Message, "err", f.Err}
	if first && len(f.Stack) > 0 {
		attrs = append(attrs, "stack", string(f.Stack))
	}
	if f.Kind == BindFailure && !first {
		s.log.Debug("fault again", attrs...)
		return
	}
	s.log.Error("fault", attrs...)
}

func (s *System) track(c *cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.index = int32(len(s.cells))
	s.cells = append(s.cells, c)
}

func (s *System) untrack(c *cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := int32(len(s.cells) - 1)
	if c.index > last || s.cells[c.index] != c {
		return
	}
	s.gauges.handled[c.family()] += c.taken()
	s.cells[c.index] = s.cells[last]
	s.cells[c.index].index = c.index
	s.cells[last] = nil
	s.cells = s.cells[:last]
}

// The system owns the root.

func (s *System) childReady(*cell) {
	s.rootMoves(core.Running)
	s.startOnce.Do(func() { close(s.started) })
}

func (s *System) childFault(c *cell, f Fault) {
	s.rootMoves(core.Stopping)
	s.leave(Exit{Fault: f})
	c.stop()
}

func (s *System) childExited(_ *cell, normal bool) {
	if normal {
		s.leave(Exit{Finished: true})
	}
	s.end()
}

func (s *System) childReturned(*cell) {}

// leave publishes why the tree ended; the first reason counts.
func (s *System) leave(e Exit) {
	select {
	case s.exit <- e:
	default:
	}
}

// rootMoves notes and tells a change of the root's state, which only goes forward.
func (s *System) rootMoves(to State) {
	now := s.clock.Now()
	s.mu.Lock()
	from, root := s.state, s.root
	over := from == core.Idle && to != core.Starting || from == core.Stopping && to != core.Idle
	if over || from == to {
		s.mu.Unlock()
		return
	}
	s.state, s.since = to, now
	s.changed(root.slot, root.spec, core.Move{Gen: root.gen, From: from, To: to}, now)
	s.mu.Unlock()
	s.tellChanges()
}

func (s *System) end() {
	s.rootMoves(core.Idle)
	s.endOnce.Do(func() {
		close(s.ended)
		s.dog.rest()
	})
}
