package supervision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// watched collects the changes of a system.
func watched(s *supervision.System) (take func() []supervision.Change) {
	var mu sync.Mutex
	var seen []supervision.Change
	s.Watch(func(c supervision.Change) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, c)
	})
	return func() []supervision.Change {
		mu.Lock()
		defer mu.Unlock()
		out := seen
		seen = nil
		return out
	}
}

func shown(changes []supervision.Change) (lines []string) {
	for _, c := range changes {
		line := fmt.Sprintf("%s#%d %v>%v", c.Path, c.Generation, c.From, c.To)
		if c.Fault != nil {
			line += " " + c.Fault.Kind.String()
		}
		if !c.NextTry.IsZero() {
			line += fmt.Sprintf(" next %v", c.NextTry.Sub(c.At))
		}
		if c.Abandoned {
			line += " abandoned"
		}
		if c.Repair > 0 {
			line += fmt.Sprintf(" repaired in %v", c.Repair)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestWatchSeesEveryChange follows one fault of a group's child and the end of the tree.
func TestWatchSeesEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		take := watched(s)
		must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
		synctest.Wait()
		expect(t, shown(take()), "root#1 idle>starting", "root/a#1 idle>starting", "root/a#1 starting>running", "root#1 starting>running")
		s.Send(s.Ref("root/a"), step(boom))
		pass(time.Second)
		expect(t, shown(take()),
			"root/a#1 running>stopping Panic", "root/a#1 stopping>backing-off Panic next 100ms",
			"root/a#2 backing-off>starting", "root/a#2 starting>running Panic repaired in 100ms")
		stopped(t, s)
		expect(t, shown(take()), "root#1 running>stopping", "root/a#2 running>stopping", "root/a#2 stopping>idle", "root#1 stopping>idle")
	})
}

// TestWatchSeesAbandonedChildren holds what is told of a hang.
func TestWatchSeesAbandonedChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := newSystem(t), make(chan struct{})
		must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
		take := watched(s)
		s.Send(s.Ref("root/a"), step(func(supervision.Context) error { <-release; return nil }))
		pass(30 * time.Second)
		expect(t, shown(take()),
			"root/a#1 running>stopping Hang", "root/a#1 stopping>backing-off Hang next 100ms abandoned",
			"root/a#2 backing-off>starting", "root/a#2 starting>running Hang repaired in 5.1s")
		close(release)
		stopped(t, s)
	})
}

// TestWatchSeesMembers follows a member of a pool from its start to its end.
func TestWatchSeesMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pool := withPool(t, func(_, tmpl *supervision.Spec) { tmpl.Policy[core.ErrorReturn].Do = core.DoPark })
		take := watched(s)
		ref := pool.Ensure("m", talker(&journal{}, "m").Start)
		s.Send(ref, step(func(supervision.Context) error { return errors.New("no") }))
		pass(time.Second)
		expect(t, shown(take()), "root/pool/m#1 idle>starting", "root/pool/m#1 starting>running",
			"root/pool/m#1 running>stopping ErrorReturn", "root/pool/m#1 stopping>parked ErrorReturn next 5s")
		pass(5 * time.Second)
		expect(t, shown(take()), "root/pool/m#2 parked>starting", "root/pool/m#2 starting>running ErrorReturn repaired in 5s")
		must(t, s.Restart("root/pool/m"))
		synctest.Wait()
		expect(t, shown(take()), "root/pool/m#2 running>stopping", "root/pool/m#2 stopping>idle",
			"root/pool/m#3 idle>starting", "root/pool/m#3 starting>running")
		pool.Stop("m")
		synctest.Wait()
		expect(t, shown(take()), "root/pool/m#3 running>stopping", "root/pool/m#3 stopping>idle")
		s.Send(pool.Ensure("n", talker(&journal{}, "n").Start), step(func(supervision.Context) error { return supervision.ErrDone }))
		synctest.Wait()
		expect(t, shown(take()), "root/pool/n#4 idle>starting", "root/pool/n#4 starting>running", "root/pool/n#4 running>done")
		stopped(t, s)
	})
}

// TestWatchIsOrderedAndHarmless holds that every subscriber sees every child's changes as a
// chain, though they come from many goroutines, and may ask the system while it is told.
func TestWatchIsOrderedAndHarmless(t *testing.T) {
	s, pool := withPool(t, func(p, tmpl *supervision.Spec) {
		p.Group.Intensity.Max = 1000
		tmpl.Policy[core.Panic].Backoff = core.Backoff{Initial: time.Microsecond, Factor: 1, Cap: time.Millisecond, Reset: time.Minute}
	})
	take := watched(s)
	s.Watch(func(c supervision.Change) { s.Inspect(); panic("a bad subscriber") })
	cancel := s.Watch(func(supervision.Change) {})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				id := fmt.Sprint((g + i) % 10)
				s.Send(pool.Ensure(id, talker(&journal{}, id).Start), step(boom))
				if i%7 == 0 {
					pool.Stop(id)
				}
				time.Sleep(100 * time.Microsecond)
			}
		})
	}
	wg.Wait()
	cancel()
	cancel()
	stopped(t, s)
	last := map[string]supervision.State{}
	changes := take()
	for i, c := range changes {
		if c.From != last[c.Path] && c.Path != "root" && c.Path != "root/pool" {
			t.Fatalf("change %d of %d: %s goes on from %v, it was %v", i, len(changes), shown(changes[i : i+1])[0], c.From, last[c.Path])
		}
		last[c.Path] = c.To
	}
	if len(changes) < 500 {
		t.Errorf("only %d changes", len(changes))
	}
	if slices.ContainsFunc(changes, func(c supervision.Change) bool { return c.At.IsZero() || c.Row == "" }) {
		t.Error("a change without time or row")
	}
}

// TestWatchIsOrderedForEverySubscriber holds that a change which a subscriber causes is told to
// the others after the one that it reacts to.
func TestWatchIsOrderedForEverySubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pool := withPool(t, nil)
		idle := func() supervision.Handler { return idle{} }
		var order []string
		s.Watch(func(c supervision.Change) {
			if c.Path == "root/pool/first" && c.To == core.Starting {
				pool.Ensure("second", idle)
			}
		})
		s.Watch(func(c supervision.Change) {
			if c.To == core.Starting {
				order = append(order, c.Path)
			}
		})
		pool.Ensure("first", idle)
		synctest.Wait()
		expect(t, order, "root/pool/first", "root/pool/second")
		stopped(t, s)
	})
}

// TestContextsCarryTheFence holds what reaches code that is only handed a context.
func TestContextsCarryTheFence(t *testing.T) {
	if err := supervision.CheckFence(t.Context()); err != nil {
		t.Errorf("without a fence: %v", err)
	}
	if err := supervision.FenceFrom(t.Context()).Check(); !errors.Is(err, supervision.ErrFenced) {
		t.Errorf("the zero fence says %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, release := newSystem(t), make(chan struct{})
		must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
		var inJob, inHandler [2]error
		s.Send(s.Ref("root/a"), step(func(ctx supervision.Context) error {
			ctx.Go(supervision.Job{Name: "stuck", Endless: true, Run: func(jc context.Context, _ func()) (any, error) {
				inJob[0] = supervision.CheckFence(jc)
				<-release
				inJob[1] = supervision.CheckFence(jc)
				return nil, nil
			}})
			inHandler[0] = supervision.FenceFrom(ctx.Context()).Check()
			<-release
			inHandler[1] = supervision.CheckFence(context.WithoutCancel(ctx.Context()))
			return nil
		}))
		pass(30 * time.Second)
		close(release)
		synctest.Wait()
		for where, seen := range map[string][2]error{"job": inJob, "handler": inHandler} {
			if seen[0] != nil || !errors.Is(seen[1], supervision.ErrFenced) {
				t.Errorf("in the %s: before %v, after the next generation has started %v", where, seen[0], seen[1])
			}
		}
		stopped(t, s)
	})
}
