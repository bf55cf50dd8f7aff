package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// Limits of the seeded scheduler.
const (
	// slowLook is how often, in steps, those are looked at who mostly wait for something that
	// makes itself known.
	slowLook = 16
	// stuckAfter is how much real time one step may take.
	stuckAfter = 10 * time.Second
	// circleAfter is how many steps one call may take.
	circleAfter = 2_000_000
	// lagOdds is how many choices there are to one that lets time pass in spite of work.
	lagOdds = 16
	// idleLooks is how often the watchdog may look without anything else happening before a
	// wait is given up.
	idleLooks = 100_000
	// longestDelay bounds the virtual delay of a job.
	longestDelay = 10 * time.Millisecond
)

// sched runs everything of a test on one goroutine at a time, in an order that its seed
// decides. It is the supervision.Executor and the supervision.Clock of its systems.
//
// Whichever goroutine works off the steps is called the driver. When a step blocks on
// something that the scheduler knows, its goroutine hands the rest of the work to another
// worker and sleeps until it is its turn again; so a step costs no change of goroutine
// unless it blocks.
type sched struct {
	rng   *rand.Rand
	style style
	trace *trace
	now   atomic.Int64
	// wall is how far the wall clock was moved.
	wall atomic.Int64
	// steps is also how the guard sees that something moves.
	steps atomic.Uint64

	// mu guards what may be reached from outside the driver.
	mu     sync.Mutex
	ready  []item
	timers timerHeap
	seq    uint64

	// The rest belongs to the driver, or to the test while nothing is driven.
	goal   goal
	cur    item
	curW   *worker
	idle   []*worker
	asleep []*sleeper
	// dozing are looked at less often, unless hurry is set.
	dozing []*sleeper
	hurry  bool
	looks  int
	dying  bool
	done   chan struct{}
	// crash is what came out of a step that nobody guards; stuck that a step does not return.
	crash string
	stuck bool
	// patience is how much real time a step may take, and alarm what measures it.
	patience time.Duration
	alarm    *time.Timer
	// most is how many steps a call may take, and since where its steps begin.
	most, since uint64
	// lag is how much time may pass while there is work, and calm when there was none last.
	lag, calm int64
	// fail ends the test.
	fail func(string)
	// inline tells which endless jobs run although they have not ended.
	inline func(path, job string) bool
}

// item is one thing that can be run now: work of a system, a sleeper, a timer or a call.
type item struct {
	work  supervision.Work
	wake  *sleeper
	timer *timer
	call  func()
	name  string
}

// sleeper is a step that waits for a condition.
type sleeper struct {
	until func() bool
	w     *worker
	item  item
}

// goal says how far to drive.
type goal struct {
	until func() bool
	// limit is the virtual time not to pass.
	limit int64
	// calm means to stop once only ordinary timers are left, rest once there are not even those.
	calm, rest bool
	met        bool
}

func newSched(seed uint64, tr *trace) *sched {
	rng := rand.New(rand.NewPCG(seed, 0x6e6f6465))
	return &sched{
		rng: rng, style: newStyle(rng), trace: tr, done: make(chan struct{}, 1),
		inline: func(string, string) bool { return false },
	}
}

// Run implements supervision.Executor.
func (s *sched) Run(w supervision.Work) {
	j, ctx, isJob := w.Job()
	switch {
	case !isJob:
		s.add(item{work: w})
	case j.Endless && !s.inline(w.Path(), j.Name):
		s.dozing = append(s.dozing, &sleeper{until: func() bool { return ctx.Err() != nil }, item: item{work: w}})
	default:
		s.later(s.jobDelay(j), w)
	}
}

// later makes work ready after a delay.
func (s *sched) later(d time.Duration, w supervision.Work) {
	if d == 0 {
		s.add(item{work: w})
		return
	}
	s.after(d, delayed, w.Path(), func() { s.add(item{work: w}) })
}

// jobDelay chooses how long a job takes to get going.
func (s *sched) jobDelay(j supervision.Job) time.Duration {
	most := longestDelay
	if j.Deadline > 0 {
		most = min(most, j.Deadline/4)
	}
	if j.BeatWithin > 0 {
		most = min(most, j.BeatWithin/4)
	}
	if most <= 0 || s.rng.Uint64()%2 == 0 {
		return 0
	}
	return time.Duration(s.rng.Int64N(int64(most)))
}

// Watch implements supervision.Executor.
func (s *sched) Watch(d time.Duration, f func()) func() bool {
	return s.after(d, background, "watchdog", f)
}

// Wait implements supervision.Executor. Called by a step it blocks the step; called by the
// test it drives.
func (s *sched) Wait(until func() bool) bool {
	if s.curW != nil {
		return s.park(&s.asleep, until)
	}
	return s.drive(goal{until: until, limit: forever})
}

// Now implements supervision.Clock.
func (s *sched) Now() time.Time { return stamp(s.now.Load(), s.wall.Load()) }

// AfterFunc implements supervision.Clock.
func (s *sched) AfterFunc(d time.Duration, f func()) func() bool {
	return s.after(d, ordinary, s.current(), f)
}

// Sleep implements supervision.Clock.
func (s *sched) Sleep(ctx context.Context, d time.Duration) error {
	over := false
	stop := s.after(d, ordinary, s.current(), func() { over, s.hurry = true, true })
	until := func() bool { return over || ctx.Err() != nil }
	if s.curW != nil {
		s.park(&s.dozing, until)
	} else {
		s.Wait(until)
	}
	stop()
	if !over {
		return context.Cause(ctx)
	}
	return nil
}

func (s *sched) after(d time.Duration, kind timerKind, of string, f func()) func() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	t := &timer{at: s.now.Load() + max(int64(d), 0), seq: s.seq, f: f, of: of, kind: kind}
	if d >= never {
		t.at, t.kind = forever, background
	}
	s.timers.push(t)
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.timers.remove(t)
	}
}

func (s *sched) add(it item) {
	s.mu.Lock()
	s.ready = append(s.ready, it)
	s.mu.Unlock()
}

// current names whatever is being run.
func (s *sched) current() string {
	switch {
	case s.curW == nil:
		return "the test"
	case s.cur.timer != nil:
		return s.cur.timer.of
	case s.cur.work != supervision.Work{}:
		return s.cur.work.Path()
	}
	return s.cur.String()
}

// String names an item in traces and reports.
func (it item) String() string {
	switch {
	case it.name != "":
		return it.name
	case it.timer != nil:
		return "a timer of " + it.timer.of
	case it.wake != nil:
		return it.wake.item.String()
	case it.work == supervision.Work{}:
		return "nothing"
	}
	if j, _, ok := it.work.Job(); ok {
		return fmt.Sprintf("%s#%d job %s", it.work.Path(), it.work.Generation(), j.Name)
	}
	return it.work.Path()
}

// next chooses what to run; false means that the goal is reached or cannot be.
func (s *sched) next() (item, bool) {
	for {
		if s.goal.until != nil && s.goal.until() {
			s.goal.met = true
			return item{}, false
		}
		s.rouse(&s.asleep)
		if s.hurry || s.steps.Load()%slowLook == 0 {
			s.rouse(&s.dozing)
			s.hurry = false
		}
		s.mu.Lock()
		s.dawdle()
		it, ok := s.choose()
		s.mu.Unlock()
		switch {
		case ok:
			return it, true
		case s.rouse(&s.dozing):
		case !s.pass():
			return item{}, false
		}
	}
}

// rouse makes those ready who have waited long enough.
func (s *sched) rouse(all *[]*sleeper) (some bool) {
	left := (*all)[:0]
	for _, p := range *all {
		switch {
		case !p.until():
			left = append(left, p)
		case p.w == nil:
			s.add(p.item)
		default:
			s.add(item{wake: p})
		}
	}
	some = len(left) < len(*all)
	clear((*all)[len(left):])
	*all = left
	return some
}

// dawdle sometimes lets the next timer come due while there is work. The lock is held.
func (s *sched) dawdle() {
	if s.lag == 0 || s.goal.calm {
		return
	}
	t := s.timers.first()
	switch {
	case len(s.ready) == 0:
		s.calm = s.now.Load()
	case t == nil || t.at <= s.now.Load() || t.at > min(s.calm+s.lag, s.goal.limit):
	case s.rng.IntN(lagOdds) == 0:
		s.now.Store(t.at)
	}
}

// choose takes one of what can be run now. The lock is held.
func (s *sched) choose() (item, bool) {
	n := len(s.ready)
	t := s.timers.first()
	due := t != nil && t.at <= s.now.Load()
	if n == 0 && !due {
		return item{}, false
	}
	if due && s.rng.IntN(n+1) == n {
		s.timers.remove(t)
		s.lookedAgain(t.kind)
		return item{timer: t}, true
	}
	i := s.style.pick(s.rng, s.ready)
	it := s.ready[i]
	s.ready[i] = s.ready[n-1]
	s.ready[n-1] = item{}
	s.ready = s.ready[:n-1]
	s.looks = 0
	return it, true
}

// lookedAgain counts the looks of the watchdog since anything else happened.
func (s *sched) lookedAgain(k timerKind) {
	if k == background {
		s.looks++
	} else {
		s.looks = 0
	}
}

// pass lets virtual time pass until the next timer; false when the goal says otherwise.
func (s *sched) pass() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, lost := s.timers.first(), s.goal.limit == forever && s.looks >= idleLooks
	switch {
	case s.goal.calm && s.timers.of[delayed] == 0:
		return false
	case s.goal.rest && s.timers.of[delayed] == 0 && s.timers.of[ordinary] == 0:
		s.goal.met = true
		return false
	case (t == nil || t.at > s.goal.limit) && s.goal.limit != forever:
		s.now.Store(s.goal.limit)
		return false
	case t == nil || lost:
		return false
	}
	s.now.Store(t.at)
	return true
}

// execute runs one item on the goroutine of the driver.
func (s *sched) execute(it item) {
	switch {
	case it.timer != nil:
		if it.timer.kind == ordinary {
			s.trace.add(event{kind: evTimer, path: it.timer.of})
		}
		it.timer.f()
	case it.call != nil:
		s.trace.add(event{kind: evCall, path: it.name})
		it.call()
	default:
		if j, _, ok := it.work.Job(); ok {
			s.trace.add(event{kind: evJob, path: it.work.Path(), gen: it.work.Generation(), text: j.Name})
		} else if it.work.Generation() == 0 {
			s.trace.add(event{kind: evCall, path: it.work.Path()})
		}
		if it.work.Step() {
			s.add(it)
		}
	}
}
