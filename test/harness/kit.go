package harness

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// stopWithin bounds how long a tree may take to stop at the end of a test.
const stopWithin = time.Hour

// Kit is everything one run of a test needs. Its methods are for the goroutine of the test,
// unless they say otherwise.
type Kit struct {
	t     testing.TB
	seed  uint64
	level level
	trace *trace
	rand  *rand.Rand
	dir   string
	// replay is the command that runs this once more.
	replay string

	systems    []*supervision.System
	probes     *supervision.System
	books      books
	injections injections
	holds      holds
	jobs       jobs
	expected   expectations
	observers  observers
	buggy      map[string]bool
	chances    *chances
	net        *Net

	ctx    context.Context
	cancel context.CancelFunc
	failed bool
	closed bool
}

// newKit makes a kit; its level is still to be chosen.
func newKit(t testing.TB, seed uint64, spoken bool) *Kit {
	k := &Kit{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0x6b6974))}
	began := time.Now()
	k.trace = &trace{spoken: spoken, clock: func() int64 { return int64(time.Since(began)) }}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// seeded chooses the seeded level.
func (k *Kit) seeded(o options) *Kit {
	s := newSched(k.seed, k.trace)
	s.patience, s.lag, s.most = o.patience, int64(o.lag), o.steps
	s.fail = func(why string) { k.Fatalf("%s", why) }
	s.inline = k.jobs.runs
	k.trace.clock = s.now.Load
	k.level = s
	k.ctx = supervision.WithExecutor(k.ctx, s)
	return k
}

// T is the test.
func (k *Kit) T() testing.TB { return k.t }

// Seed is what decides this run.
func (k *Kit) Seed() uint64 { return k.seed }

// Rand gives the test's own random numbers: they are the same for one seed.
func (k *Kit) Rand() *rand.Rand { return k.rand }

// Clock is the clock of the run; it may be used by any code of the test.
func (k *Kit) Clock() supervision.Clock { return k.level.clock() }

// Context ends with the run.
func (k *Kit) Context() context.Context { return k.ctx }

// Dir is a directory of this run alone.
func (k *Kit) Dir() string {
	if k.dir == "" {
		k.dir = k.t.TempDir()
	}
	return k.dir
}

// Config is for systems that the code under test makes by itself; give them to Adopt.
func (k *Kit) Config() supervision.Config {
	return supervision.Config{
		Clock: k.Clock(), Log: slog.New(slog.DiscardHandler), Rand: rand.New(rand.NewPCG(k.seed, 0x73797374)).Float64,
		Executor: k.level.executor(), Tap: tap{k},
	}
}

// Adopt watches a system that was made with Config: its faults and messages count, and the kit
// stops it at the end.
func (k *Kit) Adopt(s *supervision.System) {
	s.Faults().Subscribe(func(f supervision.Fault) {
		k.trace.add(event{kind: evFault, path: f.Path, gen: f.Generation, text: f.Kind.String() + " in " + f.Message})
		k.expected.came(f)
	})
	k.systems = append(k.systems, s)
}

func (k *Kit) newSystem() *supervision.System {
	s, err := supervision.New(k.Config())
	if err != nil {
		k.Fatalf("cannot make a system: %v", err)
	}
	k.Adopt(s)
	return s
}

func (k *Kit) start(s *supervision.System, root supervision.Spec) {
	if err := s.Start(root); err != nil {
		k.Fatalf("cannot start the tree: %v", err)
	}
}

// Tree starts a tree and returns once every child has acknowledged its start.
func (k *Kit) Tree(root supervision.Spec) *supervision.System {
	k.t.Helper()
	s := k.newSystem()
	k.start(s, root)
	return s
}

// Begin starts a tree and does not wait for it.
func (k *Kit) Begin(root supervision.Spec) *supervision.System {
	k.t.Helper()
	s := k.newSystem()
	if err := s.Begin(root); err != nil {
		k.Fatalf("cannot start the tree: %v", err)
	}
	return s
}

// System is the tree that was made last, probes aside.
func (k *Kit) System() *supervision.System {
	for i := len(k.systems) - 1; i >= 0; i-- {
		if k.systems[i] != k.probes {
			return k.systems[i]
		}
	}
	return nil
}

// Send sends a message to the child at path of the tree that was made last.
func (k *Kit) Send(path string, msg any) bool {
	s := k.System()
	return s.Send(s.Ref(path), msg)
}

// Go runs f beside the test, as a client of the actors would. In a seeded run it may wait for
// the clock, for ctx and for what the kit gives, and must end when ctx does.
func (k *Kit) Go(name string, f func(ctx context.Context)) {
	k.level.spawn(name, func() { f(k.ctx) })
}

// Settle returns when everything has come to rest that does not wait for time to pass.
func (k *Kit) Settle() { k.level.settle() }

// Advance lets time pass.
func (k *Kit) Advance(d time.Duration) { k.level.advance(d) }

// Steady lets time pass until nothing is left to happen, and fails when max does not suffice.
// Where a seed decides, that means no timer is left but the watchdog's; elsewhere, that
// nothing happened for a tenth of max.
func (k *Kit) Steady(max time.Duration) {
	k.t.Helper()
	if !k.level.steady(max) {
		k.Fatalf("not steady after %s%s", max, k.pending())
	}
}

// Jump moves the wall clock forward or back, as somebody who sets it would: Now shows other
// times from then on, while timers and spans of time go on as before. Only a seeded run has a
// clock that can be moved.
func (k *Kit) Jump(d time.Duration) {
	s, ok := k.level.(*sched)
	if !ok {
		k.Fatalf("only the clock of a seeded run can be moved")
	}
	s.wall.Add(int64(d))
	k.Note("the wall clock jumps by %s", d)
}

// Await lets time pass until the condition holds, and fails when max does not suffice.
func (k *Kit) Await(max time.Duration, until func() bool) {
	k.t.Helper()
	if !k.level.await(max, until) {
		k.Fatalf("the condition does not hold after %s", max)
	}
}

// WaitFor blocks whoever calls it until the condition holds, or ctx ends: a client that Go runs,
// a fake, a handler that is to hang.
func (k *Kit) WaitFor(ctx context.Context, until func() bool) error {
	k.level.block(func() bool { return until() || ctx.Err() != nil })
	if until() {
		return nil
	}
	return context.Cause(ctx)
}

// Note adds a line to the trace.
func (k *Kit) Note(format string, args ...any) {
	k.trace.add(event{kind: evNote, text: fmt.Sprintf(format, args...)})
}

// Trace is what happened so far, a line for each event.
func (k *Kit) Trace() string { return k.trace.String() }

// Hash is the hash of everything that happened so far; one seed has one.
func (k *Kit) Hash() uint64 { return k.trace.sum() }

// Account is what became of the messages so far.
func (k *Kit) Account() Account { return k.books.account() }

// Errorf fails the test and goes on.
func (k *Kit) Errorf(format string, args ...any) {
	k.t.Helper()
	k.failed = true
	k.t.Errorf(format, args...)
}

// Fatalf fails the test and ends it.
func (k *Kit) Fatalf(format string, args ...any) {
	k.t.Helper()
	k.failed = true
	k.t.Fatalf(format, args...)
}

// pending lists the timers that are left.
func (k *Kit) pending() string {
	s, ok := k.level.(*sched)
	if !ok {
		return ""
	}
	var b strings.Builder
	for _, t := range s.timers.all {
		if t.kind != background {
			fmt.Fprintf(&b, "\n  in %s: %s", time.Duration(t.at-s.now.Load()), t.of)
		}
	}
	return b.String()
}

// activity changes whenever anything happens.
func (k *Kit) activity() int {
	k.trace.mu.Lock()
	defer k.trace.mu.Unlock()
	return k.trace.count + int(k.books.account().Handled)
}

// busy tells whether a child of any tree has something to do.
func (k *Kit) busy() (busy bool) {
	for _, s := range k.systems {
		s.Inspect().Walk(func(n supervision.Node) bool {
			busy = busy || n.Mailbox > 0 || n.BusyWith != ""
			return !busy
		})
	}
	return busy
}

// Stop stops the trees, newest first. The test may go on and look at what is left.
func (k *Kit) Stop() {
	for i := len(k.systems) - 1; i >= 0; i-- {
		k.stop(k.systems[i])
	}
	k.Settle()
}

// Close ends the run: what hangs is released, the trees are stopped newest first, and
// everything that was not declared fails the test. It is called by Sim, Bubble, Real and New.
func (k *Kit) Close() {
	k.t.Helper()
	if k.closed {
		return
	}
	k.closed = true
	crashed := k.failed || k.t.Failed()
	if !crashed {
		k.Settle()
	}
	letters := k.books.close()
	wrong := k.takeDown()
	if !crashed {
		wrong = append(wrong, k.verdict(letters)...)
	}
	for _, w := range wrong {
		k.Errorf("%s", w)
	}
}

// takeDown stops everything and tells what would not go.
func (k *Kit) takeDown() (wrong []string) {
	k.injections.release()
	k.cancel()
	if s, ok := k.level.(*sched); ok && s.stuck {
		return nil
	}
	k.Stop()
	for _, name := range k.level.close() {
		wrong = append(wrong, name+" is still waiting")
	}
	return wrong
}

func (k *Kit) stop(s *supervision.System) {
	ctx, cancel := context.Background(), func() {}
	if k.level.executor() == nil {
		ctx, cancel = context.WithTimeout(ctx, stopWithin)
	}
	defer cancel()
	s.Stop(ctx)
}

// verdict is what came undeclared, or did not come.
func (k *Kit) verdict(letters []deadLetter) []string {
	wrong := append(k.expected.judge(), k.injections.missed()...)
	dead := judgeCount("dead letters", k.expected.dead, len(letters))
	if len(dead) > 0 {
		for _, l := range letters[:min(len(letters), 10)] {
			dead[0] += fmt.Sprintf("\n  %s to %s: %s", l.what, l.to, l.why)
		}
	}
	abandoned, exits := 0, 0
	for _, s := range k.systems {
		abandoned += int(s.Abandoned())
		select {
		case e := <-s.Done():
			exits++
			if k.expected.exits.most == 0 {
				wrong = append(wrong, fmt.Sprintf("the tree ended by itself: %v", e.Fault))
			}
		default:
		}
	}
	wrong = append(wrong, dead...)
	wrong = append(wrong, judgeCount("abandoned children", k.expected.abandoned, abandoned)...)
	return append(wrong, judgeCount("ends of the tree", k.expected.exits, exits)...)
}

// report prints the trace of a failed run, and how to run it again.
func (k *Kit) report() {
	k.t.Helper()
	k.t.Logf("the trace of seed %d ends with\n%s", k.seed, k.trace)
	if k.replay != "" {
		k.t.Logf("run it again with\n  %s", k.replay)
	}
}

// Steps is how many steps were run so far; 0 where goroutines run the systems.
func (k *Kit) Steps() uint64 {
	if s, ok := k.level.(*sched); ok {
		return s.steps.Load()
	}
	return 0
}
