package harness

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// worker is a goroutine that can be the driver.
type worker struct {
	s *sched
	// turn is sent to when it is this worker's turn.
	turn chan struct{}
}

// drive lets a worker run steps until the goal is reached; it is called by the test.
func (s *sched) drive(g goal) bool {
	if s.curW != nil {
		panic("this is for the goroutine of the test, not for a step")
	}
	s.goal, s.looks, s.since = g, 0, s.steps.Load()
	s.worker().turn <- struct{}{}
	s.guard()
	if s.crash != "" {
		crash := s.crash
		s.crash = ""
		s.fail(crash)
	}
	return s.goal.met
}

// guard waits for the driver, and makes sure that it moves.
func (s *sched) guard() {
	if s.alarm == nil {
		s.alarm = time.NewTimer(s.patience)
	} else {
		s.alarm.Reset(s.patience)
	}
	defer s.alarm.Stop()
	for seen := s.steps.Load(); ; {
		select {
		case <-s.done:
			return
		case <-s.alarm.C:
		}
		if now := s.steps.Load(); now != seen {
			seen = now
			s.alarm.Reset(s.patience)
			continue
		}
		s.stuck = true
		s.fail(fmt.Sprintf("%v blocks for real: a step must only wait for the virtual clock, its context or what the kit gives\n%s", s.cur, driverStacks()))
	}
}

// driverStacks shows what the workers do.
func driverStacks() string {
	var out []string
	for _, g := range allGoroutines() {
		if strings.Contains(g, "harness.(*sched).execute") && !strings.Contains(g, "harness.(*sched).park") {
			out = append(out, g)
		}
	}
	return strings.Join(out, "\n\n")
}

// worker returns one that has nothing to do.
func (s *sched) worker() *worker {
	if n := len(s.idle) - 1; n >= 0 {
		w := s.idle[n]
		s.idle = s.idle[:n]
		return w
	}
	w := &worker{s: s, turn: make(chan struct{}, 1)}
	go w.live()
	return w
}

// live waits for its turns. A step may end the goroutine, which then is replaced.
func (w *worker) live() {
	alive := false
	defer func() {
		if !alive {
			w.died(recover())
		}
	}()
	for range w.turn {
		if w.s.dying {
			break
		}
		w.work()
	}
	alive = true
}

// died goes on after a step that ended its goroutine: by Goexit, or by a panic outside any
// guard, which fails the test.
func (w *worker) died(v any) {
	s := w.s
	if v != nil {
		s.crash = fmt.Sprintf("panic in %v: %v\n%s", s.cur, v, debug.Stack())
	}
	if s.dying {
		s.done <- struct{}{}
		return
	}
	s.curW = nil
	if v != nil {
		s.done <- struct{}{}
		return
	}
	s.worker().turn <- struct{}{}
}

// work drives until the goal is reached or another worker has to go on.
func (w *worker) work() {
	s := w.s
	for {
		s.curW = w
		it, ok := s.next()
		s.cur = it
		if s.steps.Add(1)-s.since > s.most && s.crash == "" {
			s.crash, ok = fmt.Sprintf("%d steps and no end: the last was %v", s.most, it), false
		}
		switch {
		case !ok:
			s.curW = nil
			s.idle = append(s.idle, w)
			s.done <- struct{}{}
			return
		case it.wake != nil:
			s.idle = append(s.idle, w)
			it.wake.w.turn <- struct{}{}
			return
		}
		s.execute(it)
	}
}

// park blocks the step that calls it until the condition holds, in one of the lists of
// sleepers.
func (s *sched) park(list *[]*sleeper, until func() bool) bool {
	if s.dying {
		runtime.Goexit()
	}
	if until() {
		return true
	}
	p := &sleeper{until: until, w: s.curW, item: s.cur}
	*list = append(*list, p)
	s.worker().turn <- struct{}{}
	<-p.w.turn
	if s.dying {
		runtime.Goexit()
	}
	s.cur, s.curW = p.item, p.w
	return true
}

// close ends all workers, those in the middle of a step included; it returns what was still
// waiting.
func (s *sched) close() (left []string) {
	if s.stuck {
		return nil
	}
	// What was left behind may come back in its own time.
	s.drive(goal{until: func() bool { return len(s.asleep)+len(s.dozing) == 0 }, limit: s.now.Load() + int64(stopWithin)})
	s.settle()
	s.dying = true
	for _, p := range append(s.asleep, s.dozing...) {
		left = append(left, p.item.String())
		if p.w != nil {
			s.curW = p.w
			p.w.turn <- struct{}{}
			<-s.done
		}
	}
	s.asleep, s.dozing, s.curW = nil, nil, nil
	for _, w := range s.idle {
		close(w.turn)
	}
	s.idle = nil
	return left
}
