package supervision_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// explode is the frame that every stack has to name.
func explode(how string) error {
	switch how {
	case "panic":
		panic("boom")
	case "nil map":
		var m map[string]int
		//lint:ignore SA5000 this is the fault that the guard has to catch
		m["x"] = 1
	case "panic(nil)":
		panic(nil)
	case "error panic":
		panic(errors.ErrUnsupported)
	case "goexit":
		runtime.Goexit()
	}
	return fmt.Errorf("explode: %s", how)
}

// bomb goes off at one place in its first life and behaves after that.
type bomb struct{ where, how string }

func (b bomb) Receive(ctx supervision.Context, msg any) error {
	if ctx.Generation() > 1 {
		return nil
	}
	switch msg := msg.(type) {
	case supervision.Started:
		if b.where == "started" {
			return explode(b.how)
		}
	case supervision.Stopping:
		if b.where == "stopping" {
			return explode(b.how)
		}
	case supervision.JobDone:
		if b.where == "job done" {
			return explode(b.how)
		}
	case string:
		return b.message(ctx, msg)
	}
	return nil
}

func (b bomb) message(ctx supervision.Context, msg string) error {
	switch {
	case b.where == "message" && msg == "go":
		return explode(b.how)
	case b.where == "job" && msg == "go":
		ctx.Go(supervision.Job{Name: "bomb", Deadline: time.Second, Run: func(context.Context, func()) (any, error) {
			return nil, explode(b.how)
		}})
	case b.where == "job done" && msg == "go":
		ctx.Go(supervision.Job{Name: "calm", Deadline: time.Second, Run: func(context.Context, func()) (any, error) { return nil, nil }})
	}
	return nil
}

// TestCheck02_Guard lets every place of a handler fail in every way: one fault of the right kind
// with a stack that names the function, a new generation that serves, a parent that can be
// restarted, a tree that stops.
func TestCheck02_Guard(t *testing.T) {
	for _, where := range []string{"constructor", "started", "message", "job", "job done", "stopping"} {
		for _, how := range []string{"panic", "nil map", "panic(nil)", "error panic", "goexit"} {
			t.Run(where+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { guardCase(t, where, how) })
			})
		}
	}
}

func guardCase(t *testing.T, where, how string) {
	s := newSystem(t)
	made := 0
	child := spec("child", func() supervision.Handler {
		if made++; where == "constructor" && made == 1 {
			_ = explode(how)
		}
		return bomb{where, how}
	})
	before := supervision.Panics()
	must(t, s.Start(sup("root", core.OneForOne, sup("parent", core.OneForOne, child))))
	s.Send(s.Ref("root/parent/child"), "go")
	synctest.Wait()
	if where == "stopping" {
		must(t, s.Restart("root/parent/child"))
	}
	pass(time.Second)
	wantOneFault(t, s, how, before)
	n := nodeAt(s, "root/parent/child")
	if n.State != core.Running || n.Generation != 2 {
		t.Errorf("the child is %v in generation %d", n.State, n.Generation)
	}
	must(t, s.Restart("root/parent"))
	pass(time.Second)
	if n := nodeAt(s, "root/parent/child"); n.State != core.Running || n.Generation != 3 {
		t.Errorf("after a restart of its parent the child is %v in generation %d", n.State, n.Generation)
	}
	stopped(t, s)
}

func wantOneFault(t *testing.T, s *supervision.System, how string, before uint64) {
	t.Helper()
	faults := s.Faults().Recent()
	if len(faults) != 1 || faults[0].Kind != supervision.Panic || faults[0].Generation != 1 {
		t.Fatalf("faults %v, want one panic of generation 1", faults)
	}
	if how != "goexit" && !strings.Contains(string(faults[0].Stack), "supervision_test.explode") {
		t.Errorf("the stack does not name the function:\n%s", faults[0].Stack)
	}
	if n := supervision.Panics() - before; n != 1 {
		t.Errorf("%d panics are counted, want 1", n)
	}
}

// pass lets virtual time go by and waits until everything rests.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func nodeAt(s *supervision.System, path string) (found supervision.Node) {
	s.Inspect().Walk(func(n supervision.Node) bool {
		if n.Path == path {
			found = n
		}
		return true
	})
	return found
}

// TestStoppingIsDeliveredAfterAFault holds that a failed handler can still release what it has.
func TestStoppingIsDeliveredAfterAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s := &journal{}, newSystem(t)
		must(t, s.Start(sup("root", core.OneForOne, talker(j, "a"))))
		s.Send(s.Ref("root/a"), step(func(ctx supervision.Context) error { return errors.New("no") }))
		pass(time.Second)
		expect(t, j.take(), "a#1 started", "a#1 stopping", "a#2 started")
		stopped(t, s)
	})
}

// TestKindsOfFaults holds which error becomes which kind, from a message and from a job.
func TestKindsOfFaults(t *testing.T) {
	bind := &supervision.BindError{Addr: "1.2.3.4:1", Err: errors.New("in use")}
	job := func(err error) step {
		return func(ctx supervision.Context) error {
			ctx.Go(supervision.Job{Name: "j", Deadline: time.Second, Run: func(context.Context, func()) (any, error) { return nil, err }})
			return nil
		}
	}
	for name, tc := range map[string]struct {
		do   step
		want []supervision.FaultKind
	}{
		"error":         {func(supervision.Context) error { return errors.New("no") }, []supervision.FaultKind{core.ErrorReturn}},
		"bind":          {func(supervision.Context) error { return fmt.Errorf("x: %w", bind) }, []supervision.FaultKind{core.BindFailure}},
		"bind in a job": {job(bind), []supervision.FaultKind{core.BindFailure}},
		"job error":     {job(errors.New("no")), nil},
		"unasked end":   {func(supervision.Context) error { return supervision.ErrDone }, []supervision.FaultKind{core.ErrorReturn}},
		"no such job": {func(ctx supervision.Context) error {
			ctx.Go(supervision.Job{Name: "boundless", Run: func(context.Context, func()) (any, error) { return nil, nil }})
			return nil
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t)
				must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
				s.Send(s.Ref("root/a"), tc.do)
				synctest.Wait()
				var kinds []supervision.FaultKind
				for _, f := range s.Faults().Recent() {
					kinds = append(kinds, f.Kind)
				}
				if fmt.Sprint(kinds) != fmt.Sprint(tc.want) {
					t.Errorf("faults %v, want %v", kinds, tc.want)
				}
				stopped(t, s)
			})
		})
	}
}

// TestSubscribersCannotHurt holds that a panicking subscriber is none of the child's business.
func TestSubscribersCannotHurt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, seen := newSystem(t), 0
		s.Faults().Subscribe(func(supervision.Fault) { panic("subscriber") })
		cancel := s.Faults().Subscribe(func(supervision.Fault) { seen++ })
		must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
		s.Send(s.Ref("root/a"), step(boom))
		pass(time.Second)
		cancel()
		s.Send(s.Ref("root/a"), step(boom))
		pass(time.Second)
		if seen != 1 {
			t.Errorf("the subscriber saw %d faults, want 1", seen)
		}
		if n := nodeAt(s, "root/a"); n.State != core.Running || n.Restarts != 2 {
			t.Errorf("the child is %v after %d restarts", n.State, n.Restarts)
		}
		stopped(t, s)
	})
}

// TestInject holds that a drill ends in the fault that was asked for.
func TestInject(t *testing.T) {
	for _, kind := range []supervision.FaultKind{core.Panic, core.Hang, core.ErrorReturn, core.BindFailure} {
		synctest.Test(t, func(t *testing.T) {
			s := newSystem(t)
			must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
			must(t, s.Inject("root/a", kind))
			pass(20 * time.Second)
			if f := s.Faults().Recent(); len(f) != 1 || f[0].Kind != kind {
				t.Errorf("%v ends in %v", kind, f)
			}
			if n := nodeAt(s, "root/a"); n.State != core.Running || n.Generation != 2 {
				t.Errorf("%v leaves the child %v in generation %d", kind, n.State, n.Generation)
			}
			if err := s.Inject("root/nobody", kind); !errors.Is(err, supervision.ErrNoChild) {
				t.Errorf("injecting into nobody gives %v", err)
			}
			stopped(t, s)
		})
	}
}
