package supervision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// exitOf returns why the tree ended, or fails the test.
func exitOf(t *testing.T, s *supervision.System) supervision.Exit {
	t.Helper()
	select {
	case e := <-s.Done():
		return e
	default:
		t.Fatal("the tree still stands")
		return supervision.Exit{}
	}
}

// TestAnotherChildFailsDuringRestart holds, for the strategies that draw siblings in, that a
// sibling which fails while the restart is under way is not restarted twice, and that the
// order stays.
func TestAnotherChildFailsDuringRestart(t *testing.T) {
	for strategy, want := range map[core.Strategy][]string{
		core.OneForAll:  {"c down", "b down", "a down", "a up", "b up", "c up"},
		core.RestForOne: {"c down", "b down", "a down", "a up", "b up", "c up"},
		core.OneForOne:  {"b down", "b up", "a down", "a up"},
	} {
		synctest.Test(t, func(t *testing.T) {
			j, s := &journal{}, newSystem(t)
			slow := func(id string) supervision.Spec { return dawdler(j, id, 0, 2*time.Second) }
			root := sup("root", strategy, slow("a"), slow("b"), slow("c"))
			must(t, s.Start(root))
			j.take()
			s.Send(s.Ref("root/b"), step(boom))
			pass(time.Second)
			s.Send(s.Ref("root/a"), step(boom))
			pass(time.Minute)
			expect(t, j.take(), want...)
			for _, id := range []string{"a", "b", "c"} {
				if n := nodeAt(s, "root/"+id); n.State != core.Running || n.Restarts > 1 {
					t.Errorf("%v: %s is %v after %d restarts", strategy, id, n.State, n.Restarts)
				}
			}
			stopped(t, s)
		})
	}
}

// TestChildFailsToComeBack holds that a sibling which fails at its start during the restart of
// another counts on the same budget, and that the group heals.
func TestChildFailsToComeBack(t *testing.T) {
	for _, strategy := range []core.Strategy{core.OneForAll, core.RestForOne} {
		synctest.Test(t, func(t *testing.T) {
			s, starts := newSystem(t), 0
			flaky := spec("flaky", func() supervision.Handler {
				starts++
				failing := starts == 2
				return supervision.HandlerFunc(func(_ supervision.Context, msg any) error {
					if _, ok := msg.(supervision.Started); ok && failing {
						return errors.New("not yet")
					}
					return nil
				})
			})
			must(t, s.Start(sup("root", strategy, talker(&journal{}, "a"), flaky)))
			s.Send(s.Ref("root/a"), step(boom))
			pass(time.Minute)
			if n := nodeAt(s, "root/flaky"); n.State != core.Running || n.Generation != 3 || len(s.Faults().Recent()) != 2 {
				t.Errorf("%v: the sibling is %+v", strategy, n)
			}
			stopped(t, s)
		})
	}
}

// TestHangingRestartLoop holds that a child which hangs in each of its starts is given up each
// time, and that the group gives up too: by its budget, or because of what is left behind.
func TestHangingRestartLoop(t *testing.T) {
	for name, tc := range map[string]struct {
		maxAbandoned int
		lives        int
		reason       string
	}{
		"budget":    {100, 4, "no progress for 10s"},
		"abandoned": {1, 2, "too many abandoned children, the last is root/g/stuck"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, release, lives := newSystem(t), make(chan struct{}), 0
				stuck := spec("stuck", func() supervision.Handler {
					lives++
					return supervision.HandlerFunc(func(supervision.Context, any) error { <-release; return nil })
				})
				g := sup("g", core.OneForOne, stuck)
				g.Group.MaxAbandoned = tc.maxAbandoned
				for k := range g.Policy {
					g.Policy[k] = core.Reaction{Do: core.DoEscalate}
				}
				root := sup("root", core.RestForOne, talker(&journal{}, "a"), g)
				root.Group.MaxAbandoned = 200
				root.StartTimeout, root.Children[1].StartTimeout = time.Hour, time.Hour
				_ = s.Start(root)
				pass(10 * time.Minute)
				e := exitOf(t, s)
				if lives != tc.lives || e.Fault.Kind != core.Hang || !strings.Contains(e.Fault.Error(), tc.reason) {
					t.Errorf("%d lives, then %v", lives, e.Fault)
				}
				close(release)
				stopped(t, s)
			})
		})
	}
}

// TestBudgetCountsAcrossFaults holds that faults of all kinds, of all children, are counted on
// one budget, and each member's own in a pool. A taken address is not counted.
func TestBudgetCountsAcrossFaults(t *testing.T) {
	kinds := []core.FaultKind{core.Panic, core.BindFailure, core.ErrorReturn, core.BindFailure, core.Hang, core.BindFailure}
	fail := func(s *supervision.System, paths []string) {
		for i, kind := range kinds {
			s.Send(s.Ref(paths[i%len(paths)]), endOf(kind))
			pass(16 * time.Second)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		g := sup("g", core.OneForOne, talker(&journal{}, "a"), talker(&journal{}, "b"))
		g.Group.Intensity, g.Group.Sustained = core.Intensity{Max: 3, Within: time.Hour}, core.Intensity{Max: 4, Within: 24 * time.Hour}
		must(t, s.Start(sup("root", core.OneForOne, g)))
		fail(s, []string{"root/g/a", "root/g/b"})
		if n := nodeAt(s, "root/g"); n.Generation != 1 {
			t.Fatalf("three restarts are within the budget, but the group is %+v", n)
		}
		s.Send(s.Ref("root/g/b"), endOf(core.ErrorReturn))
		pass(time.Minute)
		if n := nodeAt(s, "root/g"); n.Generation != 2 {
			t.Errorf("after four restarts the group is %+v", n)
		}
		stopped(t, s)
	})
	synctest.Test(t, func(t *testing.T) {
		s, pool := withPool(t, func(p, _ *supervision.Spec) {
			p.Group.Intensity, p.Group.Sustained = core.Intensity{Max: 3, Within: time.Hour}, core.Intensity{Max: 4, Within: 24 * time.Hour}
		})
		pool.Ensure("a", talker(&journal{}, "a").Start)
		fail(s, []string{"root/pool/a"})
		s.Send(s.Ref("root/pool/a"), endOf(core.ErrorReturn))
		synctest.Wait()
		if n := nodeAt(s, "root/pool/a"); n.State != core.Parked || n.Restarts != len(kinds) {
			t.Errorf("after four restarts and three taken addresses the member is %v, restarted %d times", n.State, n.Restarts)
		}
		stopped(t, s)
	})
}

// TestEscalationStorm lets all groups fail at once, again and again: the parent stays free, its
// other child serves all the while, and everything comes back.
func TestEscalationStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups, rounds = 50, 5
		s, answers := newSystem(t), 0
		bystander := spec("bystander", func() supervision.Handler {
			return supervision.HandlerFunc(func(_ supervision.Context, msg any) error {
				if msg == "ping" {
					answers++
				}
				return nil
			})
		})
		children := []supervision.Spec{bystander}
		for i := range groups {
			var workers []supervision.Spec
			for w := range 4 {
				c := talker(&journal{}, fmt.Sprintf("w%d", w))
				c.Policy[core.Panic] = core.Reaction{Do: core.DoEscalate}
				workers = append(workers, c)
			}
			children = append(children, sup(fmt.Sprintf("g%d", i), core.OneForAll, workers...))
		}
		root := sup("root", core.OneForOne, children...)
		root.Group.Intensity, root.Group.Sustained = core.Intensity{Max: 300, Within: time.Minute}, core.Intensity{Max: 400, Within: time.Hour}
		must(t, s.Start(root))
		for round := range rounds {
			for i := range groups {
				for w := range 4 {
					s.Send(s.Ref(fmt.Sprintf("root/g%d/w%d", i, w)), step(boom))
				}
			}
			s.Send(s.Ref("root/bystander"), "ping")
			synctest.Wait()
			if answers != round+1 {
				t.Fatalf("round %d: the bystander has answered %d times", round, answers)
			}
			pass(10 * time.Second)
		}
		for i := range groups {
			n := nodeAt(s, fmt.Sprintf("root/g%d", i))
			if n.State != core.Running || n.Restarts != rounds || len(n.Children) != 4 {
				t.Fatalf("%s is %v after %d restarts, want %d", n.Path, n.State, n.Restarts, rounds)
			}
		}
		stopped(t, s)
	})
}

// TestEscalationStormEndsOnce holds that a storm beyond the budget ends the tree once, in order,
// with the first reason.
func TestEscalationStormEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := newSystem(t), &journal{}
		var children []supervision.Spec
		for i := range 20 {
			c := talker(j, fmt.Sprintf("c%d", i))
			c.Policy[core.Panic] = core.Reaction{Do: core.DoEscalate}
			children = append(children, c)
		}
		must(t, s.Start(sup("root", core.OneForOne, children...)))
		j.take()
		for i := range 20 {
			s.Send(s.Ref(fmt.Sprintf("root/c%d", i)), step(boom))
		}
		pass(time.Minute)
		if e := exitOf(t, s); e.Fault.Kind != core.Panic || e.Fault.Path != "root" {
			t.Errorf("the reason is %v", e.Fault)
		}
		if len(s.Done()) != 0 {
			t.Error("a second reason was given")
		}
		if stops := j.take(); len(stops) != 20 {
			t.Errorf("%d children were stopped", len(stops))
		}
		stopped(t, s)
	})
}

// TestSignificantChildren copies the table of ends of a significant child: the group ends
// normally with it, or fails with its fault, and only then.
func TestSignificantChildren(t *testing.T) {
	for _, tc := range []struct {
		restart     core.Restart
		end         core.FaultKind
		generations uint64
		state       core.State
	}{
		{core.Transient, normalEnd, 1, core.Done},
		{core.Transient, core.Panic, 1, core.Running},
		{core.Temporary, normalEnd, 1, core.Done},
		{core.Temporary, core.Panic, 2, core.Running},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSystem(t)
			main := talker(&journal{}, "main")
			main.Restart, main.Significant = tc.restart, true
			g := sup("g", core.OneForOne, talker(&journal{}, "other"), main)
			g.Restart = core.Transient
			must(t, s.Start(sup("root", core.OneForOne, g)))
			s.Send(s.Ref("root/g/main"), endOf(tc.end))
			pass(time.Minute)
			if n := nodeAt(s, "root/g"); n.State != tc.state || n.Generation != tc.generations {
				t.Errorf("%v significant child, end %v: the group is %v in generation %d", tc.restart, tc.end, n.State, n.Generation)
			}
			stopped(t, s)
		})
	}
}
