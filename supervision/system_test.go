package supervision_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// journal notes what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.lines
	j.lines = nil
	return out
}

func backoff() core.Backoff {
	return core.Backoff{Initial: 100 * time.Millisecond, Factor: 2, Cap: 5 * time.Second, Reset: time.Minute}
}

func spec(id string, start func() supervision.Handler) supervision.Spec {
	r := core.Reaction{Do: core.DoRestart, Backoff: backoff()}
	return supervision.Spec{Start: start, ChildSpec: core.ChildSpec{
		ID: id, Row: id, Kind: core.Worker, Restart: core.Permanent,
		StartTimeout: 10 * time.Second, HangAfter: 10 * time.Second, StopTimeout: 5 * time.Second,
		Mailbox: core.Mailbox{Limit: 100, Overflow: core.RejectNewest},
		Policy:  [core.NumFaultKinds]core.Reaction{r, r, r, r},
	}}
}

func sup(id string, s core.Strategy, children ...supervision.Spec) supervision.Spec {
	out := spec(id, nil)
	out.Kind = core.Supervisor
	out.StopTimeout = time.Minute
	out.Group = core.GroupSpec{Strategy: s, Intensity: core.Intensity{Max: 3, Within: time.Minute}, Sustained: core.Intensity{Max: 1000, Within: 24 * time.Hour}, MaxAbandoned: 3}
	out.Children = children
	return out
}

// talker journals its life; messages are functions to run.
func talker(j *journal, id string) supervision.Spec {
	return spec(id, func() supervision.Handler {
		return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
			switch m := msg.(type) {
			case supervision.Started:
				j.add("%s#%d started", id, ctx.Generation())
			case supervision.Stopping:
				j.add("%s#%d stopping", id, ctx.Generation())
			case func(supervision.Context) error:
				return m(ctx)
			}
			return nil
		})
	})
}

type step = func(supervision.Context) error

func boom(supervision.Context) error { panic("boom") }

func newSystem(t *testing.T) *supervision.System {
	t.Helper()
	return quietSystem(t)
}

// quietSystem logs nothing and has no jitter.
func quietSystem(tb testing.TB) *supervision.System {
	tb.Helper()
	s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0 }})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func stopped(t *testing.T, s *supervision.System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if r := s.Stop(ctx); len(r.Unstopped) > 0 {
		t.Errorf("not stopped: %v", r.Unstopped)
	}
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestStartAndStopAreOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s := &journal{}, newSystem(t)
		must(t, s.Start(sup("root", core.RestForOne, talker(j, "a"), sup("g", core.OneForOne, talker(j, "b"), talker(j, "c")), talker(j, "d"))))
		expect(t, j.take(), "a#1 started", "b#1 started", "c#1 started", "d#1 started")
		stopped(t, s)
		expect(t, j.take(), "d#1 stopping", "c#1 stopping", "b#1 stopping", "a#1 stopping")
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStrategies(t *testing.T) {
	for _, tc := range []struct {
		strategy core.Strategy
		want     []string
	}{
		{core.OneForOne, []string{"b#1 stopping", "b#2 started"}},
		{core.RestForOne, []string{"c#1 stopping", "b#1 stopping", "b#2 started", "c#2 started"}},
		{core.OneForAll, []string{"c#1 stopping", "b#1 stopping", "a#1 stopping", "a#2 started", "b#2 started", "c#2 started"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			j, s := &journal{}, newSystem(t)
			must(t, s.Start(sup("root", tc.strategy, talker(j, "a"), talker(j, "b"), talker(j, "c"))))
			j.take()
			s.Send(s.Ref("root/b"), step(boom))
			time.Sleep(time.Second)
			got := j.take()
			expect(t, got, tc.want...)
			if n := s.Faults().Counts()[supervision.FaultKey{Path: "root/b", Kind: supervision.Panic}]; n != 1 {
				t.Errorf("%d panics are counted, want 1", n)
			}
			stopped(t, s)
		})
	}
}

func TestGuardCatchesEveryWayOut(t *testing.T) {
	for name, tc := range map[string]struct {
		msg  step
		kind supervision.FaultKind
	}{
		"panic":      {boom, supervision.Panic},
		"goexit":     {func(supervision.Context) error { runtime.Goexit(); return nil }, supervision.Panic},
		"error":      {func(supervision.Context) error { return errors.New("no") }, supervision.ErrorReturn},
		"bind":       {func(supervision.Context) error { return &supervision.BindError{Addr: ":1", Err: errors.New("taken")} }, supervision.BindFailure},
		"job panic":  {job(func() { panic("in a job") }), supervision.Panic},
		"job goexit": {job(runtime.Goexit), supervision.Panic},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, s := &journal{}, newSystem(t)
				must(t, s.Start(sup("root", core.OneForOne, talker(j, "a"))))
				j.take()
				s.Send(s.Ref("root/a"), tc.msg)
				time.Sleep(time.Second)
				expect(t, j.take(), "a#1 stopping", "a#2 started")
				if n := s.Faults().Counts()[supervision.FaultKey{Path: "root/a", Kind: tc.kind}]; n != 1 {
					t.Errorf("counts %v, want one %s", s.Faults().Counts(), tc.kind)
				}
				stopped(t, s)
			})
		})
	}
}

func job(f func()) step {
	return func(ctx supervision.Context) error {
		ctx.Go(supervision.Job{Name: "j", Deadline: time.Minute, Run: func(context.Context, func()) (any, error) { f(); return nil, nil }})
		return nil
	}
}

func TestHangIsAbandonedFencedAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s := &journal{}, newSystem(t)
		must(t, s.Start(sup("root", core.OneForOne, talker(j, "a"))))
		j.take()
		release, after := make(chan bool), make(chan error, 1)
		s.Send(s.Ref("root/a"), step(func(ctx supervision.Context) error {
			f := ctx.Fence()
			<-release
			after <- f.Check()
			return nil
		}))
		time.Sleep(10500 * time.Millisecond)
		synctest.Wait()
		var node supervision.Node
		s.Inspect().Walk(func(n supervision.Node) bool { node = n; return true })
		if node.LastFault == nil || node.LastFault.Kind != supervision.Hang {
			time.Sleep(time.Second)
		}
		time.Sleep(6 * time.Second)
		expect(t, j.take(), "a#2 started")
		if s.Abandoned() != 1 {
			t.Errorf("%d abandoned, want 1", s.Abandoned())
		}
		close(release)
		if err := <-after; !errors.Is(err, supervision.ErrFenced) {
			t.Errorf("the zombie's fence says %v", err)
		}
		stopped(t, s)
	})
}

func TestBudgetEscalatesToTheTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s := &journal{}, newSystem(t)
		inner := sup("g", core.OneForOne, talker(j, "a"))
		for k := range inner.Policy {
			inner.Policy[k] = core.Reaction{Do: core.DoEscalate}
		}
		must(t, s.Start(sup("root", core.RestForOne, inner)))
		for range 4 {
			s.Send(s.Ref("root/g/a"), step(boom))
			time.Sleep(2 * time.Second)
		}
		select {
		case e := <-s.Done():
			if e.Fault.Kind != supervision.Panic {
				t.Errorf("exit %v", e)
			}
		default:
			t.Error("the fault did not reach the top")
		}
		stopped(t, s)
	})
}

func TestPoolMembersFailAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s := &journal{}, newSystem(t)
		p := sup("pool", core.Pool)
		tmpl := spec("member", func() supervision.Handler { return nil })
		p.Template = &tmpl
		must(t, s.Start(sup("root", core.OneForOne, p)))
		pool := s.Pool("root/pool")
		for _, id := range []string{"ns/a", "ns/b"} {
			pool.Ensure(id, talker(j, id).Start)
			pool.Ensure(id, talker(j, id).Start)
		}
		synctest.Wait()
		started := j.take()
		slices.Sort(started)
		expect(t, started, "ns/a#1 started", "ns/b#2 started")
		for range 5 {
			pool.Send("ns/a", step(boom))
			time.Sleep(1500 * time.Millisecond)
		}
		state := map[string]supervision.State{}
		s.Inspect().Walk(func(n supervision.Node) bool { state[n.Path] = n.State; return true })
		if state["root/pool/ns/a"] != core.Parked || state["root/pool/ns/b"] != core.Running {
			t.Errorf("states %v", state)
		}
		time.Sleep(6 * time.Second)
		j.take()
		if !pool.Send("ns/a", step(func(supervision.Context) error { j.add("alive"); return nil })) {
			t.Error("the parked member did not come back")
		}
		synctest.Wait()
		expect(t, j.take(), "alive")
		pool.Stop("ns/a")
		synctest.Wait()
		expect(t, j.take()[0:0])
		if pool.Len() != 1 {
			t.Errorf("%d members, want 1", pool.Len())
		}
		stopped(t, s)
	})
}
