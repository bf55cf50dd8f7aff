package supervision_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// dawdler takes its time to start and to stop.
func dawdler(j *journal, id string, start, stop time.Duration) supervision.Spec {
	return spec(id, func() supervision.Handler {
		return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
			switch m := msg.(type) {
			case supervision.Started:
				ctx.DeferReady()
				ctx.After(start, "up")
			case supervision.Stopping:
				time.Sleep(stop)
				j.add("%s down", id)
			case string:
				j.add("%s up", id)
				ctx.Ready()
			case step:
				return m(ctx)
			}
			return nil
		})
	})
}

// TestOrderWithRandomDelays holds for many seeds that children come up oldest first and go
// down newest first, one at a time, under each strategy.
func TestOrderWithRandomDelays(t *testing.T) {
	const seeds = 1000
	ids := []string{"a", "b", "c", "d", "e"}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 0))
		strategy := core.OneForOne + core.Strategy(seed%3)
		failing := rng.IntN(len(ids))
		synctest.Test(t, func(t *testing.T) {
			j, s := &journal{}, newSystem(t)
			var children []supervision.Spec
			for _, id := range ids {
				children = append(children, dawdler(j, id, time.Duration(rng.IntN(500))*time.Millisecond, time.Duration(rng.IntN(4000))*time.Millisecond))
			}
			must(t, s.Start(sup("root", strategy, children...)))
			expect(t, j.take(), "a up", "b up", "c up", "d up", "e up")
			s.Send(s.Ref("root/"+ids[failing]), step(boom))
			pass(2 * time.Minute)
			expect(t, j.take(), expectedRestart(strategy, ids, failing)...)
			stopped(t, s)
			expect(t, j.take(), "e down", "d down", "c down", "b down", "a down")
		})
		if t.Failed() {
			t.Fatalf("seed %d, strategy %v, %s failed", seed, strategy, ids[failing])
		}
	}
}

func expectedRestart(strategy core.Strategy, ids []string, failing int) (want []string) {
	first, last := failing, failing
	switch strategy {
	case core.OneForAll:
		first, last = 0, len(ids)-1
	case core.RestForOne:
		last = len(ids) - 1
	}
	for i := last; i >= first; i-- {
		want = append(want, ids[i]+" down")
	}
	for i := first; i <= last; i++ {
		want = append(want, ids[i]+" up")
	}
	return want
}

// TestNestedOrder holds the order over levels.
func TestNestedOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s := &journal{}, newSystem(t)
		slow := func(id string) supervision.Spec { return dawdler(j, id, time.Second, 2*time.Second) }
		root := sup("root", core.RestForOne, slow("a"), sup("g", core.OneForOne, slow("b"), sup("h", core.OneForAll, slow("c"), slow("d"))), slow("e"))
		root.StartTimeout = time.Minute
		for i := range root.Children {
			root.Children[i].StartTimeout = time.Minute
		}
		must(t, s.Start(root))
		expect(t, j.take(), "a up", "b up", "c up", "d up", "e up")
		must(t, s.Restart("root/g"))
		pass(time.Minute)
		expect(t, j.take(), "e down", "d down", "c down", "b down", "b up", "c up", "d up", "e up")
		stopped(t, s)
		expect(t, j.take(), "e down", "d down", "c down", "b down", "a down")
	})
}

// TestGenerationsAreNeverReused holds that a restarted group goes on counting.
func TestGenerationsAreNeverReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		must(t, s.Start(sup("root", core.OneForOne, sup("g", core.OneForOne, talker(&journal{}, "a")))))
		for want := uint64(2); want < 5; want++ {
			must(t, s.Restart("root/g"))
			pass(time.Second)
			if n := nodeAt(s, "root/g/a"); n.Generation != want {
				t.Errorf("the child is in generation %d, want %d", n.Generation, want)
			}
		}
		stopped(t, s)
	})
}

// TestBudgetsOverThreeLevels counts the lives of a child that always fails at its start: each
// level gives up after its own budget, and the top ends the tree with the reason.
func TestBudgetsOverThreeLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lives := newSystem(t), 0
		broken := spec("broken", func() supervision.Handler {
			lives++
			return supervision.HandlerFunc(func(supervision.Context, any) error { return errors.New("always") })
		})
		quick := core.Backoff{Initial: time.Millisecond, Factor: 1, Cap: time.Millisecond, Reset: time.Hour}
		broken.Policy[core.ErrorReturn].Backoff = quick
		level := func(id string, max int, child supervision.Spec) supervision.Spec {
			g := sup(id, core.OneForOne, child)
			g.Group.Intensity.Max = max
			g.Policy[core.ErrorReturn].Backoff = quick
			g.Policy[core.ErrorReturn].Do = core.DoRestart
			return g
		}
		root := level("root", 1, level("mid", 2, level("low", 3, broken)))
		_ = s.Start(root)
		pass(time.Minute)
		if want := (3 + 1) * (2 + 1) * (1 + 1); lives != want {
			t.Errorf("the child lived %d times, want %d", lives, want)
		}
		select {
		case e := <-s.Done():
			if e.Fault.Kind != core.ErrorReturn {
				t.Errorf("exit %+v", e)
			}
		default:
			t.Error("the tree still stands")
		}
		stopped(t, s)
	})
}

// TestStartFailsWithTheReason holds that a child which must not fail ends the start.
func TestStartFailsWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the disk is gone")
		s := newSystem(t)
		broken := spec("broken", func() supervision.Handler {
			return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error { return cause })
		})
		broken.Policy[core.ErrorReturn] = core.Reaction{Do: core.DoEscalate}
		j := &journal{}
		err := s.Start(sup("root", core.RestForOne, talker(j, "a"), broken))
		if !errors.Is(err, supervision.ErrStart) || !errors.Is(err, cause) {
			t.Errorf("the start ends with %v", err)
		}
		expect(t, j.take(), "a#1 started", "a#1 stopping")
		stopped(t, s)
	})
}

// TestSignificantChildEndsTheTree holds that a normal end also reaches the top.
func TestSignificantChildEndsTheTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, s := &journal{}, newSystem(t)
		main := talker(j, "main")
		main.Restart, main.Significant = core.Transient, true
		g := sup("g", core.OneForOne, talker(j, "a"), main)
		g.Restart, g.Significant = core.Transient, true
		must(t, s.Start(sup("root", core.OneForOne, g)))
		s.Send(s.Ref("root/g/main"), step(func(supervision.Context) error { return supervision.ErrDone }))
		pass(time.Minute)
		select {
		case e := <-s.Done():
			if !e.Finished {
				t.Errorf("exit %+v", e)
			}
		default:
			t.Error("the tree still stands")
		}
		expect(t, j.take(), "a#1 started", "main#1 started", "main#1 stopping", "a#1 stopping")
		stopped(t, s)
	})
}

// TestRestartTypes copies the grid of ends and restart types, for each strategy.
func TestRestartTypes(t *testing.T) {
	ends := map[string]step{
		"normal":   func(supervision.Context) error { return supervision.ErrDone },
		"abnormal": func(supervision.Context) error { return errors.New("no") },
		"panic":    boom,
	}
	states := map[core.Restart]map[string]core.State{
		core.Permanent: {"normal": core.Running, "abnormal": core.Running, "panic": core.Running},
		core.Transient: {"normal": core.Done, "abnormal": core.Running, "panic": core.Running},
		core.Temporary: {"normal": core.Done, "abnormal": core.Dead, "panic": core.Dead},
	}
	for _, strategy := range []core.Strategy{core.OneForOne, core.OneForAll, core.RestForOne} {
		for restart, byEnd := range states {
			for end, want := range byEnd {
				synctest.Test(t, func(t *testing.T) {
					s := newSystem(t)
					child := talker(&journal{}, "a")
					child.Restart = restart
					must(t, s.Start(sup("root", strategy, child, talker(&journal{}, "b"))))
					s.Send(s.Ref("root/a"), ends[end])
					pass(time.Minute)
					if got := nodeAt(s, "root/a").State; got != want {
						t.Errorf("%v, restart type %d, %s end: %v, want %v", strategy, restart, end, got, want)
					}
					if got := nodeAt(s, "root/b").State; got != core.Running {
						t.Errorf("the sibling is %v", got)
					}
					stopped(t, s)
				})
			}
		}
	}
}

// TestRestartByHandRevives holds that a dead child can be restarted, under a new generation.
func TestRestartByHandRevives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		child := talker(&journal{}, "a")
		child.Policy[core.Panic] = core.Reaction{Do: core.DoStop}
		must(t, s.Start(sup("root", core.OneForOne, child)))
		s.Send(s.Ref("root/a"), step(boom))
		pass(time.Second)
		if n := nodeAt(s, "root/a"); n.State != core.Dead || n.LastFault == nil {
			t.Errorf("the child is %+v", n)
		}
		must(t, s.Restart("root/a"))
		pass(time.Second)
		if n := nodeAt(s, "root/a"); n.State != core.Running || n.Generation != 2 || n.LastFault == nil {
			t.Errorf("the child is %+v", n)
		}
		for _, path := range []string{"root", "root/x", "nobody/at/all"} {
			if err := s.Restart(path); err == nil {
				t.Errorf("%s can be restarted", path)
			}
		}
		stopped(t, s)
	})
}

// TestInvalidTreesAreRefused holds that nothing of an invalid tree starts.
func TestInvalidTreesAreRefused(t *testing.T) {
	good := talker(&journal{}, "a")
	pool := sup("p", core.Pool)
	for name, root := range map[string]supervision.Spec{
		"a worker at the root": good,
		"no children's code":   sup("root", core.OneForOne, spec("a", nil)),
		"two of one name":      sup("root", core.OneForOne, good, good),
		"no template":          sup("root", core.OneForOne, pool),
		"unset":                {},
	} {
		s := newSystem(t)
		if err := s.Start(root); !errors.Is(err, core.ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
		if report := s.Stop(t.Context()); len(report.Unstopped) > 0 {
			t.Errorf("%s: %+v", name, report)
		}
	}
}
