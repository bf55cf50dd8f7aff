package supervision_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// TestP71_BackoffIsExponentialCappedAndJittered holds the waits that children really have: each
// twice the one before, up to the cap, shortened by up to the jitter, begun anew after Reset.
func TestP71_BackoffIsExponentialCappedAndJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chance := 0.0
		s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler), Rand: func() float64 { return chance }})
		must(t, err)
		child := talker(&journal{}, "a")
		child.Policy[core.Panic].Backoff = core.Backoff{Initial: 10 * time.Second, Factor: 2, Cap: 2 * time.Minute, Jitter: 0.5, Reset: time.Hour}
		must(t, s.Start(sup("root", core.OneForOne, child)))
		take := watched(s)
		wait := func() time.Duration {
			s.Send(s.Ref("root/a"), step(boom))
			pass(3 * time.Minute)
			for _, c := range take() {
				if c.To == core.BackingOff {
					return c.NextTry.Sub(c.At)
				}
			}
			t.Fatal("the child does not back off")
			return 0
		}
		for i, want := range []time.Duration{10, 20, 40, 80, 120, 120} {
			if got := wait(); got != want*time.Second {
				t.Errorf("wait %d is %v, want %vs", i+1, got, want)
			}
		}
		chance = 0.5
		if got := wait(); got != 90*time.Second {
			t.Errorf("in the middle of the jitter the wait is %v, want three quarters of the cap", got)
		}
		pass(time.Hour)
		if got := wait(); got != 7500*time.Millisecond {
			t.Errorf("after an hour of service the wait is %v", got)
		}
		stopped(t, s)
	})
}

// logbook is a log whose records can be asked for.
type logbook struct {
	slog.Handler
	mu   sync.Mutex
	said []string
}

func newLogbook() *logbook { return &logbook{Handler: slog.DiscardHandler} }

func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.said = append(l.said, line)
	return nil
}

func (l *logbook) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.said {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}

// TestP72_AStopNobodyAskedForIsAnAlarm holds that a child which goes down for good by its
// policy, and a permanent one that ends by itself, are logged, counted and told.
func TestP72_AStopNobodyAskedForIsAnAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogbook()
		s, err := supervision.New(supervision.Config{Log: slog.New(l), Rand: func() float64 { return 0 }})
		must(t, err)
		give := talker(&journal{}, "gives-up")
		give.Policy[core.Panic] = core.Reaction{Do: core.DoStop}
		once := talker(&journal{}, "once")
		once.Restart = core.Temporary
		must(t, s.Start(sup("root", core.OneForOne, give, once, talker(&journal{}, "ends"))))
		take := watched(s)
		for _, id := range []string{"gives-up", "once"} {
			s.Send(s.Ref("root/"+id), step(boom))
			pass(time.Second)
			if !l.has("ERROR", "stays down", "root/"+id, "Panic", "boom") {
				t.Errorf("the log says nothing of %s: %q", id, l.said)
			}
			changes := take()
			if last := changes[len(changes)-1]; last.To != core.Dead || last.Fault == nil {
				t.Errorf("the last change of %s is %+v", id, last)
			}
		}
		if s.UnaskedStops() != 2 {
			t.Errorf("%d stops are counted", s.UnaskedStops())
		}
		s.Send(s.Ref("root/ends"), endOf(normalEnd))
		pass(time.Second)
		if n := nodeAt(s, "root/ends"); n.State != core.Running || n.LastFault == nil || !l.has("ERROR", "ended by itself", "root/ends") {
			t.Errorf("a permanent child that ends by itself is %v, its fault is %v", n.State, n.LastFault)
		}
		stopped(t, s)
		if s.UnaskedStops() != 2 {
			t.Error("a stop that was asked for is an alarm")
		}
	})
}

// TestP73_EscalationEndsTheTreeInOrder holds that a fault which nobody bears ends in an ordered
// stop and a reason, never in a panic.
func TestP73_EscalationEndsTheTreeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s := &journal{}, newSystem(t)
		up := func(s supervision.Spec) supervision.Spec {
			for k := range s.Policy {
				s.Policy[k] = core.Reaction{Do: core.DoEscalate}
			}
			return s
		}
		inner := up(sup("inner", core.OneForOne, talker(j, "b"), up(talker(j, "c"))))
		root := sup("root", core.RestForOne, talker(j, "a"), up(sup("outer", core.OneForOne, inner, talker(j, "d"))), talker(j, "e"))
		must(t, s.Start(root))
		j.take()
		s.Send(s.Ref("root/outer/inner/c"), step(boom))
		pass(time.Minute)
		expect(t, j.take(), "c#1 stopping", "b#1 stopping", "d#1 stopping", "e#1 stopping", "a#1 stopping")
		e := exitOf(t, s)
		var origin supervision.Fault
		for err := error(e.Fault); errors.As(err, &origin); err = origin.Err {
		}
		if e.Finished || origin.Path != "root/outer/inner/c" || !strings.Contains(e.Fault.Error(), "boom") {
			t.Errorf("the reason is %v, which began at %s", e.Fault, origin.Path)
		}
		if s.Inspect().Root.State != core.Idle || s.Send(s.Ref("root/a"), "hello") {
			t.Error("something of the tree still stands")
		}
		stopped(t, s)
	})
}

// TestP74_ABlockedChildDoesNotFreezeItsBranch holds that a child which blocks for ever holds up
// neither its siblings, nor a restart of its group, nor the stop of the tree, by more than its
// own windows.
func TestP74_ABlockedChildDoesNotFreezeItsBranch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s, release := &journal{}, newSystem(t), make(chan struct{})
		block := step(func(supervision.Context) error { <-release; return nil })
		must(t, s.Start(sup("root", core.OneForOne, sup("g", core.OneForOne, talker(j, "blocked"), talker(j, "other")))))
		j.take()
		s.Send(s.Ref("root/g/blocked"), block)
		synctest.Wait()
		s.Send(s.Ref("root/g/other"), step(func(supervision.Context) error { j.add("other serves"); return nil }))
		synctest.Wait()
		expect(t, j.take(), "other serves")
		must(t, s.Restart("root/g"))
		pass(6 * time.Second)
		expect(t, j.take(), "other#1 stopping", "blocked#2 started", "other#2 started")
		s.Send(s.Ref("root/g/blocked"), block)
		synctest.Wait()
		if r := s.Stop(t.Context()); r.Took > 6*time.Second || len(r.Unstopped) != 1 {
			t.Errorf("the stop took %v, not stopped: %v", r.Took, r.Unstopped)
		}
		close(release)
	})
}

// TestP75_WrappedGoroutines holds that a panic in whatever a child or other code starts beside
// itself is contained: in a job, in a timer's message, in a group, in a subscriber.
func TestP75_WrappedGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, before := newSystem(t), supervision.Panics()
		must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
		s.Watch(func(supervision.Change) { panic("in a subscriber") })
		s.Send(s.Ref("root/a"), job(func() { panic("in a job") }))
		pass(time.Second)
		s.Send(s.Ref("root/a"), step(func(ctx supervision.Context) error {
			ctx.After(time.Second, step(boom))
			return nil
		}))
		pass(5 * time.Second)
		var contained atomic.Int32
		g := supervision.NewGroup(t.Context(), "beside the tree", func(supervision.Fault) { contained.Add(1) })
		g.Go("bad", func(context.Context) error { panic("in a group") })
		g.Go("good", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if err := g.Wait(); err == nil || contained.Load() != 1 {
			t.Errorf("the group ends with %v after %d panics", err, contained.Load())
		}
		if n := nodeAt(s, "root/a"); n.State != core.Running || n.Restarts != 2 {
			t.Errorf("the child is %v after %d restarts, want 2", n.State, n.Restarts)
		}
		if n := supervision.Panics() - before; n < 4 {
			t.Errorf("%d panics were contained", n)
		}
		stopped(t, s)
	})
}

// TestP77_WhatAPanicLeavesBehind holds that the message which caused a panic is not given out
// again and is named in the fault, that those behind it are counted, and that what is kept of
// restarts does not grow.
func TestP77_WhatAPanicLeavesBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := newSystem(t), &journal{}
		child := talker(j, "a")
		child.Policy[core.Panic].Backoff = core.Backoff{Initial: time.Second, Factor: 1, Cap: time.Second, Reset: time.Hour}
		g := sup("g", core.OneForOne, child)
		g.Group.Intensity, g.Group.Sustained = core.Intensity{Max: 900, Within: time.Hour}, core.Intensity{Max: 1000, Within: 24 * time.Hour}
		must(t, s.Start(sup("root", core.OneForOne, g)))
		for range 500 {
			s.Send(s.Ref("root/g/a"), step(boom))
			s.Send(s.Ref("root/g/a"), step(func(supervision.Context) error { j.add("handled after all"); return nil }))
			pass(2 * time.Second)
		}
		for _, line := range j.take() {
			if line == "handled after all" {
				t.Fatal("a message behind the one that caused the panic was handled")
			}
		}
		if s.DeadLetters() != 500 {
			t.Errorf("%d dead letters", s.DeadLetters())
		}
		faults := s.Faults().Recent()
		if len(faults) != 500 || faults[0].Message != "func(supervision.Context) error" {
			t.Errorf("%d faults, the first in %q", len(faults), faults[0].Message)
		}
		if first, last := faults[0].StackHash(), faults[499].StackHash(); first != last {
			t.Errorf("one cause has the stack hashes %s and %s", first, last)
		}
		stopped(t, s)
	})
}
