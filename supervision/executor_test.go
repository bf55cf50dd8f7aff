package supervision_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// fifo is the simplest executor: it runs what came first, and its clock moves when there is
// nothing to run.
type fifo struct {
	now    time.Time
	queue  []func()
	timers []*alarm
	jobs   int
}

type alarm struct {
	at time.Time
	f  func()
}

func (x *fifo) Run(w supervision.Work) {
	if _, _, ok := w.Job(); ok {
		x.jobs++
	}
	x.queue = append(x.queue, func() {
		if w.Step() {
			x.Run(w)
		}
	})
}

func (x *fifo) Watch(d time.Duration, f func()) func() bool { return x.AfterFunc(d, f) }

func (x *fifo) Wait(until func() bool) bool {
	for !until() {
		if len(x.queue) == 0 && !x.ring() {
			return false
		}
		if len(x.queue) > 0 {
			f := x.queue[0]
			x.queue = x.queue[1:]
			f()
		}
	}
	return true
}

// ring calls the timer that is due first.
func (x *fifo) ring() bool {
	first := -1
	for i, a := range x.timers {
		if a.f != nil && (first < 0 || a.at.Before(x.timers[first].at)) {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	a := x.timers[first]
	x.now, x.timers = a.at, append(x.timers[:first], x.timers[first+1:]...)
	a.f()
	return true
}

func (x *fifo) Now() time.Time { return x.now }

func (x *fifo) AfterFunc(d time.Duration, f func()) func() bool {
	a := &alarm{x.now.Add(d), f}
	x.timers = append(x.timers, a)
	return func() bool {
		was := a.f != nil
		a.f = nil
		return was
	}
}

func (x *fifo) Sleep(ctx context.Context, d time.Duration) error {
	end := x.now.Add(d)
	x.Wait(func() bool { return !x.now.Before(end) || ctx.Err() != nil })
	return ctx.Err()
}

// TestExecutor runs a tree, with faults, a job and an injected hang, on the goroutine of the test alone.
func TestExecutor(t *testing.T) {
	x := &fifo{now: time.Unix(1e9, 0)}
	if _, err := supervision.New(supervision.Config{Executor: x}); err == nil {
		t.Error("an executor without a clock is taken")
	}
	s, err := supervision.New(supervision.Config{Executor: x, Clock: x, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	before, got := runtime.NumGoroutine(), 0
	child := spec("child", func() supervision.Handler {
		return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
			switch m := msg.(type) {
			case int:
				ctx.Go(supervision.Job{Name: "add", Deadline: time.Second, Run: func(context.Context, func()) (any, error) { return m + 1, nil }})
			case supervision.JobDone:
				got = m.Value.(int)
			case string:
				panic(m)
			}
			return nil
		})
	})
	must(t, s.Start(sup("root", core.OneForOne, child)))
	s.Send(s.Ref("root/child"), 1)
	s.Send(s.Ref("root/child"), "oops")
	x.Wait(func() bool { n := nodeAt(s, "root/child"); return n.Generation == 2 && n.State == core.Running })
	must(t, s.Inject("root/child", supervision.Hang))
	x.Wait(func() bool { n := nodeAt(s, "root/child"); return n.Generation == 3 && n.State == core.Running })
	s.Send(s.Ref("root/child"), 41)
	x.Wait(func() bool { return got == 42 })
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	if r := s.Stop(context.Background()); len(r.Unstopped) > 0 || x.jobs == 0 {
		t.Errorf("unstopped %v, %d jobs", r.Unstopped, x.jobs)
	}
}
