package supervision_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// stuck blocks on a message until it is released, whatever its context says, and writes then.
type stuck struct {
	release chan struct{}
	wrote   func(error)
	cancel  func()
}

func (h stuck) Receive(ctx supervision.Context, msg any) error {
	if msg != "hang" || ctx.Generation() > 1 {
		return nil
	}
	go func() { <-ctx.Context().Done(); h.cancel() }()
	h.blocked()
	h.wrote(write(ctx.Context()))
	return nil
}

// blocked is the frame that the stack of the hang has to name.
func (h stuck) blocked() { <-h.release }

// write stands for an effect, which is guarded as a store guards it.
func write(ctx context.Context) error { return supervision.CheckFence(ctx) }

// TestCheck03_Hang follows the trace: detected within HangAfter and a tick, cancelled at once,
// abandoned after StopTimeout, replaced, fenced; the zombie's handler runs to its end, and
// nothing else of it.
func TestCheck03_Hang(t *testing.T) {
	t.Run("blocked", func(t *testing.T) { synctest.Test(t, blockedHandler) })
	t.Run("spinning", spinningHandler)
}

func blockedHandler(t *testing.T) {
	s, began := newSystem(t), time.Now()
	at := func() time.Duration { return time.Since(began) }
	var fault, cancelled, respawned time.Duration
	fenced := errors.New("nothing was written")
	release := make(chan struct{})
	s.Faults().Subscribe(func(f supervision.Fault) { fault = at() })
	started := 0
	child := spec("child", func() supervision.Handler {
		if started++; started == 2 {
			respawned = at()
		}
		return stuck{release, func(err error) { fenced = err }, func() { cancelled = at() }}
	})
	must(t, s.Start(sup("root", core.RestForOne, child, talker(&journal{}, "later"))))
	s.Send(s.Ref("root/child"), "hang")
	s.Send(s.Ref("root/child"), "never handled")
	pass(30 * time.Second)
	if fault < 10*time.Second || fault > 11*time.Second || cancelled != fault {
		t.Errorf("the hang was seen after %v and cancelled after %v", fault, cancelled)
	}
	if respawned < fault+5*time.Second || respawned > fault+6*time.Second {
		t.Errorf("the next generation started after %v, the hang was seen after %v", respawned, fault)
	}
	f := s.Faults().Recent()[0]
	if f.Kind != core.Hang || f.Message != "string" || f.At.Sub(f.Since) < 10*time.Second {
		t.Errorf("the fault is %+v", f)
	}
	if !strings.Contains(string(f.Stack), "stuck.blocked") {
		t.Errorf("the stack does not show where it hangs:\n%s", f.Stack)
	}
	if n := nodeAt(s, "root/later"); n.Generation != 2 {
		t.Errorf("the later sibling is in generation %d", n.Generation)
	}
	if s.Abandoned() != 1 {
		t.Errorf("%d abandoned", s.Abandoned())
	}
	close(release)
	synctest.Wait()
	if !errors.Is(fenced, supervision.ErrFenced) {
		t.Errorf("the zombie's write is answered with %v", fenced)
	}
	if s.DeadLetters() != 1 {
		t.Errorf("%d dead letters, want the one message that waited", s.DeadLetters())
	}
	stopped(t, s)
}

// TestHangThatReturnsInTime holds that a handler that comes back within the grace is stopped
// in order and not abandoned.
func TestHangThatReturnsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s := &journal{}, newSystem(t)
		must(t, s.Start(sup("root", core.OneForOne, talker(j, "a"))))
		s.Send(s.Ref("root/a"), step(func(ctx supervision.Context) error {
			<-ctx.Context().Done()
			time.Sleep(time.Second)
			return nil
		}))
		pass(20 * time.Second)
		expect(t, j.take(), "a#1 started", "a#1 stopping", "a#2 started")
		if s.Abandoned() != 0 {
			t.Errorf("%d abandoned", s.Abandoned())
		}
		stopped(t, s)
	})
}

// spinner burns CPU on a message until it is released, and writes then.
type spinner struct {
	release *atomic.Bool
	wrote   chan<- error
}

func (h spinner) Receive(ctx supervision.Context, msg any) error {
	switch m := msg.(type) {
	case string:
		h.spinning()
		h.wrote <- write(ctx.Context())
	case chan uint64:
		m <- ctx.Generation()
	}
	return nil
}

// spinning is the frame that the stack of the hang has to name.
func (h spinner) spinning() {
	for !h.release.Load() {
	}
}

// spinningHandler holds the protocol for a handler that burns CPU, in real time.
func spinningHandler(t *testing.T) {
	s, release, wrote := newSystem(t), new(atomic.Bool), make(chan error, 1)
	child := spec("child", func() supervision.Handler { return spinner{release, wrote} })
	child.HangAfter, child.StopTimeout = 200*time.Millisecond, 50*time.Millisecond
	child.Policy[core.Hang].Backoff.Initial = time.Millisecond
	must(t, s.Start(sup("root", core.OneForOne, child)))
	began := time.Now()
	s.Send(s.Ref("root/child"), "spin")
	answer := make(chan uint64, 1)
	for len(answer) == 0 && time.Since(began) < 10*time.Second {
		if n := nodeAt(s, "root/child"); n.Generation == 2 && n.State == core.Running {
			s.Send(s.Ref("root/child"), answer)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("a new generation serves after %v", time.Since(began))
	if len(answer) == 0 || <-answer != 2 {
		t.Error("no second generation serves")
	}
	if f := s.Faults().Recent(); len(f) != 1 || !strings.Contains(string(f[0].Stack), "spinner.spinning") {
		t.Errorf("the faults do not show where it spins: %v", f)
	}
	release.Store(true)
	if err := <-wrote; !errors.Is(err, supervision.ErrFenced) {
		t.Errorf("the zombie's write is answered with %v", err)
	}
	stopped(t, s)
}

// TestJobsHang holds that a silent job and one that overruns its deadline are hangs, and that
// the next generation waits for their end or gives them up.
func TestJobsHang(t *testing.T) {
	for name, tc := range map[string]struct {
		job  supervision.Job
		seen time.Duration
	}{
		"silent":  {supervision.Job{Name: "j", BeatWithin: 20 * time.Second, Endless: true}, 20 * time.Second},
		"overrun": {supervision.Job{Name: "j", Deadline: 20 * time.Second}, 25 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, began, release := newSystem(t), time.Now(), make(chan struct{})
				tc.job.Run = func(ctx context.Context, beat func()) (any, error) { <-release; return nil, nil }
				var seen time.Duration
				s.Faults().Subscribe(func(f supervision.Fault) { seen = time.Since(began) })
				must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
				s.Send(s.Ref("root/a"), step(func(ctx supervision.Context) error { ctx.Go(tc.job); return nil }))
				pass(29 * time.Second)
				if f := s.Faults().Recent(); len(f) != 1 || f[0].Kind != core.Hang || f[0].Message != "job j" {
					t.Fatalf("faults %v", f)
				}
				if seen < tc.seen || seen > tc.seen+time.Second {
					t.Errorf("seen after %v, want %v", seen, tc.seen)
				}
				pass(10 * time.Second)
				if n := nodeAt(s, "root/a"); n.Generation != 2 || s.Abandoned() != 1 {
					t.Errorf("generation %d, %d abandoned", n.Generation, s.Abandoned())
				}
				close(release)
				stopped(t, s)
			})
		})
	}
}

// TestBeatsKeepAJobAlive holds that an endless job which beats is never a hang.
func TestBeatsKeepAJobAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
		s.Send(s.Ref("root/a"), step(func(ctx supervision.Context) error {
			ctx.Go(supervision.Job{Name: "j", BeatWithin: 5 * time.Second, Endless: true, Run: func(c context.Context, beat func()) (any, error) {
				for ctx.Clock().Sleep(c, time.Second) == nil {
					beat()
				}
				return nil, nil
			}})
			return nil
		}))
		pass(time.Hour)
		if f := s.Faults().Recent(); len(f) > 0 {
			t.Errorf("faults %v", f)
		}
		stopped(t, s)
	})
}

// TestStartNotAcknowledged holds StartTimeout for group children and for members of a pool.
func TestStartNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		shy := func() supervision.Handler {
			return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
				if ctx.Generation() == 1 {
					ctx.DeferReady()
				}
				return nil
			})
		}
		p := sup("pool", core.Pool)
		tmpl := spec("member", shy)
		p.Template = &tmpl
		root := sup("root", core.RestForOne, spec("a", shy), p)
		root.StartTimeout = time.Hour
		began := time.Now()
		must(t, s.Start(root))
		if took := time.Since(began); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("the start took %v", took)
		}
		s.Pool("root/pool").Ensure("m", shy)
		pass(12 * time.Second)
		for _, path := range []string{"root/a", "root/pool/m"} {
			n := nodeAt(s, path)
			if n.State != core.Running || n.Generation != 2 || n.LastFault == nil || n.LastFault.Kind != core.Hang {
				t.Errorf("%s is %+v", path, n)
			}
		}
		stopped(t, s)
	})
}

// TestTooManyAbandonedEndTheNode holds that zombies of the whole tree are limited by the root.
func TestTooManyAbandonedEndTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := newSystem(t), make(chan struct{})
		p := sup("pool", core.Pool)
		p.Group.MaxAbandoned = 100
		tmpl := spec("member", nil)
		tmpl.Start = func() supervision.Handler { return nil }
		p.Template = &tmpl
		must(t, s.Start(sup("root", core.OneForOne, p)))
		for _, id := range []string{"a", "b", "c", "d"} {
			ref := s.Pool("root/pool").Ensure(id, talker(&journal{}, id).Start)
			s.Send(ref, step(func(supervision.Context) error { <-release; return nil }))
		}
		pass(time.Minute)
		select {
		case e := <-s.Done():
			if e.Fault.Kind != core.Hang {
				t.Errorf("exit %+v", e)
			}
		default:
			t.Error("four zombies are borne, the limit is three")
		}
		close(release)
		stopped(t, s)
	})
}

// TestStopReportsWhatWouldNotStop holds the report and its stacks, and the one overall deadline.
func TestStopReportsWhatWouldNotStop(t *testing.T) {
	for name, patience := range map[string]time.Duration{"own timeout": time.Hour, "deadline of the node": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, release := newSystem(t), make(chan struct{})
				j := &journal{}
				must(t, s.Start(sup("root", core.OneForOne, talker(j, "a"), spec("b", func() supervision.Handler {
					return stuck{release, func(error) {}, func() {}}
				}))))
				s.Send(s.Ref("root/b"), "hang")
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				r := s.Stop(ctx)
				if len(r.Unstopped) == 0 || !strings.Contains(r.Stacks["root/b"], "stuck.blocked") {
					t.Errorf("the report is %+v", r)
				}
				if r.Took > 6*time.Second {
					t.Errorf("the stop took %v", r.Took)
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}

// TestTooManyAbandonedFailTheirPool holds that a pool counts what its members leave behind, and
// counts it off when it ends.
func TestTooManyAbandonedFailTheirPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pool := withPool(t, func(p, _ *supervision.Spec) { p.Group.MaxAbandoned = 1 })
		release := make(chan struct{}, 2)
		hang := func(id string) {
			s.Send(pool.Ensure(id, talker(&journal{}, id).Start), step(func(supervision.Context) error { <-release; return nil }))
			pass(30 * time.Second)
		}
		hang("a")
		release <- struct{}{}
		pass(time.Second)
		hang("b")
		if n := nodeAt(s, "root/pool"); n.Generation != 1 {
			t.Errorf("one at a time is left behind, but the pool is %+v", n)
		}
		hang("c")
		n := nodeAt(s, "root/pool")
		if n.Generation != 2 || n.LastFault == nil || !strings.Contains(n.LastFault.Error(), "the last is root/pool/c") {
			t.Errorf("two are left behind, and the pool is in generation %d with %v", n.Generation, n.LastFault)
		}
		close(release)
		stopped(t, s)
	})
}

// TestHangInTheConstructor holds the protocol for a child that is not even built: the zombie
// gets no message when its constructor returns after all.
func TestHangInTheConstructor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s, release := &journal{}, newSystem(t), make(chan struct{})
		var made atomic.Int32
		child := talker(j, "a")
		start := child.Start
		child.Start = func() supervision.Handler {
			if made.Add(1) == 1 {
				<-release
			}
			return start()
		}
		root := sup("root", core.OneForOne, child)
		root.StartTimeout = time.Hour
		must(t, s.Start(root))
		pass(20 * time.Second)
		expect(t, j.take(), "a#2 started")
		if f := s.Faults().Recent(); len(f) != 1 || f[0].Kind != core.Hang || s.Abandoned() != 1 {
			t.Errorf("faults %v, %d abandoned", f, s.Abandoned())
		}
		close(release)
		synctest.Wait()
		expect(t, j.take())
		stopped(t, s)
	})
}

// TestStopThatHangs holds that a child which will not stop is left behind after its StopTimeout,
// without a fault, and that its successor waits for just that long.
func TestStopThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := newSystem(t), make(chan struct{})
		stubborn := func() supervision.Handler {
			return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
				if _, ok := msg.(supervision.Stopping); ok && ctx.Generation() <= 2 {
					<-release
				}
				return nil
			})
		}
		p, tmpl := sup("pool", core.Pool), spec("member", stubborn)
		p.Template = &tmpl
		must(t, s.Start(sup("root", core.OneForOne, spec("a", stubborn), p)))
		s.Pool("root/pool").Ensure("m", stubborn)
		for _, path := range []string{"root/a", "root/pool/m"} {
			must(t, s.Restart(path))
			pass(4 * time.Second)
			if n := nodeAt(s, path); n.State != core.Stopping {
				t.Errorf("%s is %v while it stops", path, n.State)
			}
			pass(2 * time.Second)
			if n := nodeAt(s, path); n.State != core.Running || n.Generation != 2 || n.Abandoned != 1 {
				t.Errorf("%s is %+v", path, n)
			}
		}
		if f := s.Faults().Recent(); len(f) > 0 {
			t.Errorf("faults %v", f)
		}
		close(release)
		stopped(t, s)
	})
}

// TestManyHangTogether holds that children which hang at the same time are all seen and
// replaced, each with its own stack.
func TestManyHangTogether(t *testing.T) {
	const many = 300
	s, pool := withPool(t, func(p, tmpl *supervision.Spec) {
		tmpl.HangAfter, tmpl.StopTimeout, p.Group.MaxAbandoned = 500*time.Millisecond, 250*time.Millisecond, 2*many
		tmpl.Policy[core.Hang].Backoff.Initial = time.Millisecond
	}, func(root *supervision.Spec) { root.Group.MaxAbandoned = 2 * many })
	release := make(chan struct{})
	defer stopped(t, s)
	defer close(release)
	for i := range many {
		s.Send(pool.Ensure(strconv.Itoa(i), talker(&journal{}, "m").Start), step(func(supervision.Context) error { <-release; return nil }))
	}
	waitFor(t, func() bool { return s.Abandoned() == many })
	for i := range many { // one that is replaced only while all stops would count as not stopped
		waitFor(t, func() bool {
			n := nodeAt(s, "root/pool/"+strconv.Itoa(i))
			return n.State == core.Running && n.Generation > 1
		})
	}
	for _, f := range s.Faults().Recent() {
		if f.Kind != core.Hang || strings.Count(string(f.Stack), "TestManyHangTogether") == 0 {
			t.Fatalf("%s of %s without its stack:\n%s", f.Kind, f.Path, f.Stack)
		}
	}
}

// TestExpendableChildrenMayHang: children that hold nothing but a goroutine end neither their pool nor the node, however many hang.
func TestExpendableChildrenMayHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := newSystem(t), make(chan struct{})
		p := sup("pool", core.Pool)
		p.Group.MaxAbandoned = 1
		tmpl := spec("member", nil)
		tmpl.Expendable = true
		tmpl.Start = func() supervision.Handler { return nil }
		p.Template = &tmpl
		must(t, s.Start(sup("root", core.OneForOne, p)))
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			ref := s.Pool("root/pool").Ensure(id, talker(&journal{}, id).Start)
			s.Send(ref, step(func(supervision.Context) error { <-release; return nil }))
		}
		pass(time.Minute)
		select {
		case e := <-s.Done():
			t.Errorf("exit %+v", e)
		default:
		}
		if n := s.Zombies(); n != 5 {
			t.Errorf("%d zombies", n)
		}
		close(release)
		stopped(t, s)
	})
}
