package harness_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/harness"
)

// allLevels runs one test on the levels 1 to 3.
func allLevels(t *testing.T, f func(k *harness.Kit)) {
	levels(t, f)
	t.Run("real", func(t *testing.T) { harness.Real(t, f) })
}

// forward sends strings on to a probe.
func forward(p *harness.Probe) supervision.HandlerFunc {
	return func(ctx supervision.Context, msg any) error {
		if s, ok := msg.(string); ok {
			ctx.Send(p.Ref(), s)
		}
		return nil
	}
}

// TestProbe holds what a probe answers.
func TestProbe(t *testing.T) {
	allLevels(t, func(k *harness.Kit) {
		p := k.Probe("p")
		k.Tree(lone(forward(p)))
		for _, s := range []string{"a", "b", "c", "d", "e"} {
			k.Send("root/a", s)
		}
		p.Expect("a", "b")
		if got := p.Fish(func(msg any) bool { return msg == "d" }); got != "d" {
			k.Errorf("fished %v", got)
		}
		if got := harness.Next[string](p); got != "e" {
			k.Errorf("the next is %v", got)
		}
		p.ExpectNone()
		k.Send("root/a", "f")
		if got := p.Take(); !slices.Equal(got, []any{"f"}) {
			k.Errorf("took %v", got)
		}
	})
}

// TestHang holds the whole protocol at every level: the hang is found, the generation given up
// and replaced, and the old one can do nothing any more when it comes back.
func TestHang(t *testing.T) {
	allLevels(t, func(k *harness.Kit) {
		p := k.Probe("p")
		var fences []supervision.Fence
		tree := lone(func(ctx supervision.Context, msg any) error {
			if _, ok := msg.(supervision.Started); ok {
				fences = append(fences, ctx.Fence())
			}
			return forward(p)(ctx, msg)
		})
		a := &tree.Children[0]
		a.HangAfter, a.StopTimeout, a.Policy[supervision.Hang].Backoff.Initial = 400*time.Millisecond, 400*time.Millisecond, 10*time.Millisecond
		s := k.Tree(tree)
		k.Expect("root/a", supervision.Hang)
		k.ExpectAbandoned(1)
		in := k.Inject("root/a", 1, supervision.Hang).Stubborn()
		k.Send("root/a", "lost")
		k.Advance(3 * time.Second)
		k.Send("root/a", "found")
		p.Expect("found")
		zombies := s.Inspect().Root.Children[0].Abandoned
		in.Release()
		k.Advance(time.Second)
		if left := s.Inspect().Root.Children[0].Abandoned; zombies != 1 || left != 0 {
			k.Errorf("%d zombies, %d after the release", zombies, left)
		}
		if len(fences) != 2 || !errors.Is(fences[0].Check(), supervision.ErrFenced) || fences[1].Check() != nil {
			k.Errorf("the fences of %d generations are wrong", len(fences))
		}
	})
}

// TestGoexit holds that an assertion which fails inside an actor is a fault like any other.
func TestGoexit(t *testing.T) {
	allLevels(t, func(k *harness.Kit) {
		p := k.Probe("p")
		k.Tree(lone(forward(p)))
		k.Expect("root/a", supervision.Panic)
		k.InjectGoexit("root/a", 2)
		k.Send("root/a", "one")
		k.Send("root/a", "two")
		k.Advance(time.Second)
		k.Send("root/a", "three")
		p.Expect("one", "three")
	})
}

// TestGoexitAtTheStop holds that the generation then goes on to its end.
func TestGoexitAtTheStop(t *testing.T) {
	levels(t, func(k *harness.Kit) {
		p := k.Probe("p")
		s := k.Tree(lone(forward(p)))
		k.AllowDeadLetters()
		k.ExpectTimes("root/a", supervision.Panic, 2)
		k.InjectGoexit("root/a", 1)
		k.InjectGoexit("root/a", harness.AtStop)
		k.Send("root/a", "lost")
		for range 2 {
			if err := s.Restart("root/a"); err != nil {
				k.Fatalf("%v", err)
			}
		}
		// Where the restart came first, the message was a dead letter, and this one is lost.
		k.Advance(time.Minute)
		k.Send("root/a", "perhaps")
		k.Advance(time.Minute)
		k.Send("root/a", "found")
		p.Fish(func(msg any) bool { return msg == "found" })
	})
}

// TestLifecycle injects into Started and Stopping.
func TestLifecycle(t *testing.T) {
	levels(t, func(k *harness.Kit) {
		p := k.Probe("p")
		s := k.Tree(lone(forward(p)))
		k.ExpectTimes("root/a", supervision.Panic, 2)
		k.Inject("root/a", harness.AtStop, supervision.Panic)
		k.Inject("root/a", harness.AtStart, supervision.Panic)
		if err := s.Restart("root/a"); err != nil {
			k.Fatalf("%v", err)
		}
		k.Advance(time.Minute)
		k.Send("root/a", "alive")
		p.Expect("alive")
		if gen := s.Inspect().Root.Children[0].Generation; gen != 3 {
			k.Errorf("generation %d", gen)
		}
	})
}

// TestHold holds messages up and lets them go in other orders.
func TestHold(t *testing.T) {
	for order, want := range map[harness.Order][]any{
		harness.InOrder: {"c", "a", "b"}, harness.Reversed: {"c", "b", "a"}, harness.Dropped: {"c"},
	} {
		levels(t, func(k *harness.Kit) {
			p := k.Probe("p")
			k.Tree(lone(forward(p)))
			held := k.Hold("root/a", func(msg any) bool { return msg == "a" || msg == "b" })
			for _, s := range []string{"a", "b", "c"} {
				k.Send("root/a", s)
			}
			k.Settle()
			if held.Held() != 2 {
				k.Errorf("%d messages are held", held.Held())
			}
			held.Release(order)
			p.Expect(want...)
			p.ExpectNone()
		})
	}
}

// TestGate shuffles the events of a watch.
func TestGate(t *testing.T) {
	orders := map[string]bool{}
	harness.Sim(t, func(k *harness.Kit) {
		var got []byte
		g := harness.NewGate(k, func(b byte) { got = append(got, b) })
		g.Push('0')
		g.Hold()
		for _, b := range []byte("123") {
			g.Push(b)
		}
		g.Release(harness.Shuffled)
		g.Push('4')
		if len(got) != 5 || got[0] != '0' || got[4] != '4' {
			k.Errorf("got %s", got)
		}
		orders[string(got)] = true
	})
	if len(orders) != 6 {
		t.Errorf("%d orders of three events: %v", len(orders), orders)
	}
}

// TestJobs holds what jobs of each kind do in a seeded run.
func TestJobs(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		p := k.Probe("p")
		note := func(text string) { k.System().Send(p.Ref(), text) }
		k.RunEndless("root/a", "pump")
		k.Jobs(func(_ string, j supervision.Job) supervision.Job {
			if j.Name == "real" {
				j.Run = func(context.Context, func()) (any, error) { return "faked", nil }
			}
			return j
		})
		k.Tree(lone(func(ctx supervision.Context, msg any) error {
			switch m := msg.(type) {
			case supervision.Started:
				ctx.Go(supervision.Job{Name: "pump", Endless: true, Run: func(c context.Context, _ func()) (any, error) {
					for ctx.Clock().Sleep(c, time.Minute) == nil {
						note("pumped")
					}
					return nil, nil
				}})
				ctx.Go(supervision.Job{Name: "outside", Endless: true, Run: func(c context.Context, _ func()) (any, error) {
					<-c.Done()
					note("outside has ended")
					return nil, nil
				}})
				ctx.Go(supervision.Job{Name: "real", Deadline: time.Second, Run: func(context.Context, func()) (any, error) { panic("real") }})
				ctx.Go(supervision.Job{Name: "late", Deadline: time.Second, Run: func(c context.Context, _ func()) (any, error) {
					return nil, ctx.Clock().Sleep(c, time.Hour)
				}})
			case supervision.JobDone:
				if errors.Is(m.Err, context.DeadlineExceeded) {
					note(m.Name + " is late")
				} else if m.Value != nil {
					note(m.Value.(string))
				}
			}
			return nil
		}))
		p.Expect("faked")
		k.Advance(2 * time.Second)
		p.Expect("late is late")
		k.Advance(2 * time.Minute)
		p.Expect("pumped", "pumped")
		if err := k.System().Restart("root/a"); err != nil {
			k.Fatalf("%v", err)
		}
		p.Fish(func(msg any) bool { return msg == "outside has ended" })
	})
}

// TestSilentJob holds that a job which does not beat is a hang, and that an injected one is.
func TestSilentJob(t *testing.T) {
	levels(t, func(k *harness.Kit) {
		k.Tree(lone(func(ctx supervision.Context, msg any) error {
			if _, ok := msg.(supervision.Started); ok {
				ctx.Go(supervision.Job{Name: "work", BeatWithin: time.Second, Run: func(c context.Context, beat func()) (any, error) {
					for range 10 {
						beat()
						if err := ctx.Clock().Sleep(c, 500*time.Millisecond); err != nil {
							return nil, err
						}
					}
					return nil, nil
				}})
			}
			return nil
		}))
		k.Advance(time.Minute)
		k.Expect("root/a", supervision.Hang)
		k.InjectJob("root/a", "work", 1, supervision.Hang)
		if err := k.System().Restart("root/a"); err != nil {
			k.Fatalf("%v", err)
		}
		k.Advance(time.Minute)
	})
}

// TestBuggify holds that a site is armed in some seeds, and then fires sometimes.
func TestBuggify(t *testing.T) {
	armed, fired := 0, 0
	harness.Sim(t, func(k *harness.Kit) {
		n := 0
		for range 100 {
			if k.Buggify("site") {
				n++
			}
		}
		if fired += n; n > 0 {
			armed++
		}
	}, harness.Seeds(400), harness.Once())
	if armed < 60 || armed > 140 || fired < armed*15 || fired > armed*35 {
		t.Errorf("armed in %d of 400 seeds, fired %d times", armed, fired)
	}
}

// TestNew uses a kit that ends with the test.
func TestNew(t *testing.T) {
	k := harness.New(t, harness.Seed(7))
	p := k.Probe("p")
	k.Tree(lone(forward(p)))
	k.Send("root/a", "x")
	p.Expect("x")
	k.Steady(time.Minute)
	if k.Seed() != 7 || k.Trace() == "" || k.Hash() == 0 {
		t.Errorf("seed %d, hash %x, trace %q", k.Seed(), k.Hash(), k.Trace())
	}
}

// TestTraces holds how many different orders seeds find.
func TestTraces(t *testing.T) {
	traces := map[uint64]bool{}
	harness.Sim(t, func(k *harness.Kit) {
		p := k.Probe("p")
		k.Tree(harness.Group("root", harness.OneForOne, harness.Actor("a", forward(p)), harness.Actor("b", forward(p)), harness.Actor("c", forward(p))))
		for _, to := range []string{"a", "b", "c"} {
			k.Send("root/"+to, to)
		}
		got := uint64(0)
		for _, msg := range p.Take() {
			got = got<<8 | uint64(msg.(string)[0])
		}
		traces[got] = true
	})
	if len(traces) != 6 {
		t.Errorf("100 seeds found %d of 6 orders", len(traces))
	}
}

// TestGroup runs a supervised group inside a job: in a seeded run its goroutines are steps.
func TestGroup(t *testing.T) {
	levels(t, func(k *harness.Kit) {
		p := k.Probe("p")
		k.Tree(lone(func(ctx supervision.Context, msg any) error {
			switch m := msg.(type) {
			case supervision.Started:
				ctx.Go(supervision.Job{Name: "fan out", Deadline: time.Minute, Run: func(c context.Context, _ func()) (any, error) {
					g, sum := supervision.NewGroup(c, "workers", nil), make([]int, 3)
					for i := range sum {
						g.Go("one", func(c context.Context) error {
							sum[i] = i + 1
							return ctx.Clock().Sleep(c, time.Duration(i)*time.Second)
						})
					}
					g.Go("two", func(context.Context) error { panic("oops") })
					err := g.Wait()
					return sum[0] + sum[1] + sum[2], err
				}})
			case supervision.JobDone:
				ctx.Send(p.Ref(), m.Value)
				ctx.Send(p.Ref(), m.Err.Error())
			}
			return nil
		}))
		k.Advance(10 * time.Second)
		p.Expect(6, "two: panic: oops")
	})
}

// TestWaitFor lets a client, a handler that hangs and the test itself wait for a condition.
func TestWaitFor(t *testing.T) {
	levels(t, func(k *harness.Kit) {
		var mu sync.Mutex
		phase := 0
		reach := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			phase = n
		}
		reached := func(n int) func() bool {
			return func() bool {
				mu.Lock()
				defer mu.Unlock()
				return phase >= n
			}
		}
		k.Tree(lone(func(ctx supervision.Context, msg any) error {
			if msg == "wait" {
				if err := k.WaitFor(ctx.Context(), reached(1)); err != nil {
					return err
				}
				reach(2)
			}
			return nil
		}))
		var ended error
		k.Go("client", func(ctx context.Context) {
			if k.WaitFor(ctx, reached(2)) == nil {
				reach(3)
			}
			for ctx.Err() == nil {
				ended = k.Clock().Sleep(ctx, math.MaxInt64)
			}
		})
		k.Send("root/a", "wait")
		k.Clock().AfterFunc(time.Second, func() { reach(1) })
		before := k.Clock().Now()
		k.Await(time.Minute, reached(3))
		if took := k.Clock().Now().Sub(before); took < time.Second || took > 1100*time.Millisecond || ended != nil {
			k.Errorf("after %s, %v", took, ended)
		}
		k.Steady(time.Hour)
	})
}

// TestDrills uses the faults that the system itself injects.
func TestDrills(t *testing.T) {
	levels(t, func(k *harness.Kit) {
		p := k.Probe("p")
		s := k.Tree(lone(forward(p)))
		for kind := range core.NumFaultKinds {
			k.Expect("root/a", kind)
			if err := s.Inject("root/a", kind); err != nil {
				k.Fatalf("%v", err)
			}
			k.Advance(time.Minute)
			k.Send("root/a", kind.String())
			p.Expect(kind.String())
		}
	})
}

// TestFirst shares seeds among runs.
func TestFirst(t *testing.T) {
	var seeds []uint64
	harness.Sim(t, func(k *harness.Kit) { seeds = append(seeds, k.Seed()) }, harness.First(5), harness.Seeds(3), harness.Once())
	if !slices.Equal(seeds, []uint64{5, 6, 7}) {
		t.Errorf("ran %v", seeds)
	}
}
