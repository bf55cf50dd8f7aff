package supervision_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// TestCheck05_Budgets holds, in virtual time, the burst, the sustained rate, the product over
// three levels of different intensities, and the parking of a pool's members.
func TestCheck05_Budgets(t *testing.T) {
	t.Run("burst", func(t *testing.T) { synctest.Test(t, burst) })
	t.Run("sustained", func(t *testing.T) { synctest.Test(t, sustained) })
	t.Run("product", func(t *testing.T) { synctest.Test(t, product) })
	t.Run("pool", func(t *testing.T) { synctest.Test(t, poolBudgets) })
}

// failing makes a group with one child, which is told to fail by fail, every gap, n times.
func failing(t *testing.T, burst, sustained core.Intensity) (s *supervision.System, fail func(gap time.Duration, n int)) {
	t.Helper()
	s = newSystem(t)
	child := talker(&journal{}, "child")
	child.Policy[core.Panic].Backoff = core.Backoff{Initial: time.Millisecond, Factor: 1, Cap: time.Millisecond, Reset: time.Hour}
	g := sup("g", core.OneForOne, child)
	g.Group.Intensity, g.Group.Sustained = burst, sustained
	must(t, s.Start(sup("root", core.OneForOne, g)))
	return s, func(gap time.Duration, n int) {
		for range n {
			s.Send(s.Ref("root/g/child"), step(boom))
			pass(gap)
		}
	}
}

func wantGeneration(t *testing.T, s *supervision.System, what string, want uint64) {
	t.Helper()
	if n := nodeAt(s, "root/g"); n.Generation != want {
		t.Errorf("%s: the group is in generation %d, want %d", what, n.Generation, want)
	}
}

// burst: five within ten seconds are borne, the sixth is not; as soon as the window has slid
// there is room again.
func burst(t *testing.T) {
	s, fail := failing(t, core.Intensity{Max: 5, Within: 10 * time.Second}, core.Intensity{Max: 1000, Within: 10 * time.Hour})
	fail(time.Second, 5)
	wantGeneration(t, s, "five in five seconds", 1)
	pass(5 * time.Second)
	fail(time.Second, 5)
	wantGeneration(t, s, "five more, each when the one ten seconds ago is forgotten", 1)
	fail(time.Second, 1)
	wantGeneration(t, s, "the sixth within ten seconds", 2)
	stopped(t, s)
}

// sustained: at a rate which the burst bears for ever, the slower budget gives up.
func sustained(t *testing.T) {
	s, fail := failing(t, core.Intensity{Max: 5, Within: 10 * time.Second}, core.Intensity{Max: 20, Within: 10 * time.Minute})
	fail(3*time.Second, 20)
	wantGeneration(t, s, "twenty in a minute", 1)
	fail(3*time.Second, 1)
	wantGeneration(t, s, "the one after", 2)
	fail(31*time.Second, 100)
	wantGeneration(t, s, "a hundred, less than twenty in ten minutes", 2)
	stopped(t, s)
}

// product: each level starts the next anew with a fresh budget, so the lives multiply; the
// wider window at the top ends it.
func product(t *testing.T) {
	s, lives := newSystem(t), 0
	broken := spec("broken", func() supervision.Handler {
		lives++
		return supervision.HandlerFunc(func(supervision.Context, any) error { return errors.New("always") })
	})
	once := core.Backoff{Initial: 100 * time.Millisecond, Factor: 1, Cap: 100 * time.Millisecond, Reset: time.Hour}
	broken.Policy[core.ErrorReturn].Backoff = once
	level := func(id string, in core.Intensity, child supervision.Spec) supervision.Spec {
		g := sup(id, core.OneForOne, child)
		g.Group.Intensity, g.Group.Sustained = in, core.Intensity{Max: 1000, Within: 1000 * time.Hour}
		g.Policy[core.ErrorReturn].Backoff = once
		return g
	}
	low := level("low", core.Intensity{Max: 7, Within: time.Second}, broken)
	mid := level("mid", core.Intensity{Max: 3, Within: 10 * time.Second}, low)
	_ = s.Start(level("root", core.Intensity{Max: 2, Within: time.Minute}, mid))
	pass(time.Hour)
	if want := (7 + 1) * (3 + 1) * (2 + 1); lives != want {
		t.Errorf("the child lived %d times, want %d", lives, want)
	}
	if e := exitOf(t, s); e.Fault.Kind != core.ErrorReturn {
		t.Errorf("exit %+v", e)
	}
	stopped(t, s)
}

// poolBudgets: each member has both budgets for itself; beyond either it is parked, and the
// pool and the other members go on.
func poolBudgets(t *testing.T) {
	s, pool := withPool(t, func(p, tmpl *supervision.Spec) {
		p.Group.Intensity, p.Group.Sustained = core.Intensity{Max: 3, Within: 10 * time.Second}, core.Intensity{Max: 6, Within: 10 * time.Minute}
		tmpl.Policy[core.Panic].Backoff = core.Backoff{Initial: time.Millisecond, Factor: 2, Cap: time.Hour, Reset: time.Hour}
	})
	for _, id := range []string{"fast", "slow", "good"} {
		pool.Ensure(id, talker(&journal{}, id).Start)
	}
	fail := func(id string, gap time.Duration, n int) core.State {
		for range n {
			pool.Send(id, step(boom))
			pass(gap)
		}
		return nodeAt(s, "root/pool/"+id).State
	}
	if got := fail("fast", time.Second, 3); got != core.Running {
		t.Errorf("within its burst the member is %v", got)
	}
	if got := fail("fast", time.Second, 1); got != core.Parked {
		t.Errorf("beyond its burst the member is %v", got)
	}
	if got := fail("slow", 20*time.Second, 6); got != core.Running {
		t.Errorf("within its sustained rate the member is %v", got)
	}
	if got := fail("slow", 20*time.Second, 1); got != core.Parked {
		t.Errorf("beyond its sustained rate the member is %v", got)
	}
	if n := nodeAt(s, "root/pool/good"); n.State != core.Running || n.Restarts != 0 {
		t.Errorf("the other member is %+v", n)
	}
	wantPool := nodeAt(s, "root/pool")
	if wantPool.Generation != 1 || wantPool.LastFault != nil {
		t.Errorf("the pool is %+v", wantPool)
	}
	stopped(t, s)
}
