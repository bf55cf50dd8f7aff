package supervision_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/supervision/serve"
)

func withPool(t *testing.T, change func(p, tmpl *supervision.Spec), above ...func(root *supervision.Spec)) (*supervision.System, supervision.Pool) {
	t.Helper()
	s, p := newSystem(t), sup("pool", core.Pool)
	tmpl := spec("member", nil)
	tmpl.Start = func() supervision.Handler { return nil }
	p.Template = &tmpl
	if change != nil {
		change(&p, &tmpl)
	}
	root := sup("root", core.OneForOne, p)
	for _, f := range above {
		f(&root)
	}
	must(t, s.Start(root))
	return s, s.Pool("root/pool")
}

// TestEnsureFromEverywhere holds that Ensure is idempotent and safe, however many call it.
func TestEnsureFromEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pool := withPool(t, nil)
		var made, got atomic.Int64
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for i := range 100 {
					ref := pool.Ensure(fmt.Sprintf("ns/%d", i), func() supervision.Handler {
						made.Add(1)
						return counter{&got}
					})
					if !s.Send(ref, 1) {
						t.Error("a message to a member is refused")
					}
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if made.Load() != 100 || got.Load() != 2000 || pool.Len() != 100 {
			t.Errorf("%d members made, %d there, %d messages", made.Load(), pool.Len(), got.Load())
		}
		stopped(t, s)
	})
}

// TestSuccessorKeepsItsMessages holds that a member which is just ending gets a successor, that
// nothing sent to it is lost, and that two generations never overlap.
func TestSuccessorKeepsItsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pool := withPool(t, nil)
		var alive, overlaps, handled atomic.Int64
		start := func() supervision.Handler {
			return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
				switch msg {
				case supervision.Started{}:
					if alive.Add(1) > 1 {
						overlaps.Add(1)
					}
				case supervision.Stopping{}:
					time.Sleep(time.Second)
					alive.Add(-1)
				case "done":
					return supervision.ErrDone
				case "count":
					handled.Add(1)
				}
				return nil
			})
		}
		old := pool.Ensure("x", start)
		for i, end := range []func(){func() { s.Send(old, "done") }, func() { pool.Stop("x") }, func() { must(t, s.Restart("root/pool/x")) }} {
			end()
			synctest.Wait()
			ref := pool.Ensure("x", start)
			if ref != pool.Ensure("x", start) {
				t.Errorf("case %d: two references to one member differ", i)
			}
			if !s.Send(ref, "count") || !s.Send(old, "count") || !pool.Send("x", "count") {
				t.Errorf("case %d: a message to the successor is refused", i)
			}
			pass(5 * time.Second)
			if handled.Load() != int64(3*(i+1)) || overlaps.Load() != 0 {
				t.Errorf("case %d: %d handled, %d overlaps", i, handled.Load(), overlaps.Load())
			}
			if n := nodeAt(s, "root/pool/x"); n.Generation != uint64(i+2) {
				t.Errorf("case %d: generation %d", i, n.Generation)
			}
		}
		stopped(t, s)
	})
}

// TestEnsureRightBehindAStop sends to a member that was stopped a moment ago, over and over, on real goroutines: whatever the old one is doing,
// there is one to take the message.
func TestEnsureRightBehindAStop(t *testing.T) {
	s, pool := withPool(t, nil)
	var got atomic.Int64
	for i := range 20_000 {
		pool.Ensure("a", func() supervision.Handler { return counter{&got} })
		if !pool.Send("a", 1) {
			t.Fatalf("nobody took message %d", i)
		}
		for got.Load() <= int64(i) {
			runtime.Gosched()
		}
		pool.Stop("a")
		for range i % 40 {
			runtime.Gosched()
		}
	}
	stopped(t, s)
}

// TestMemberThatEndsIsForgotten holds that an old reference finds the next life of its member.
func TestMemberThatEndsIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pool := withPool(t, nil)
		var got atomic.Int64
		early := s.Ref("root/pool/x")
		old := pool.Ensure("x", func() supervision.Handler { return counter{&got} })
		pool.Stop("x")
		synctest.Wait()
		if pool.Len() != 0 || s.Send(old, 1) {
			t.Errorf("%d members are left", pool.Len())
		}
		pool.Ensure("x", func() supervision.Handler { return counter{&got} })
		if !s.Send(old, 1) || !s.Send(early, 1) {
			t.Error("a reference of before does not find the member")
		}
		synctest.Wait()
		if got.Load() != 2 {
			t.Errorf("%d messages arrived", got.Load())
		}
		stopped(t, s)
	})
}

// TestPoolPolicies holds what each reaction means for a member.
func TestPoolPolicies(t *testing.T) {
	for do, want := range map[core.ReactionKind]core.State{core.DoRestart: core.Running, core.DoStop: core.Dead, core.DoPark: core.Parked} {
		synctest.Test(t, func(t *testing.T) {
			s, pool := withPool(t, func(_, tmpl *supervision.Spec) {
				tmpl.Policy[core.Panic].Do = do
				tmpl.Policy[core.Panic].Backoff.Cap = time.Hour
			})
			ref := pool.Ensure("x", talker(&journal{}, "x").Start)
			s.Send(ref, step(boom))
			pass(time.Minute)
			if n := nodeAt(s, "root/pool/x"); n.State != want {
				t.Errorf("policy %d leaves the member %v, want %v", do, n.State, want)
			}
			pool.Ensure("x", talker(&journal{}, "x").Start)
			must(t, s.Restart("root/pool/x"))
			pass(time.Minute)
			if n := nodeAt(s, "root/pool/x"); n.State != core.Running {
				t.Errorf("after a restart by hand the member is %v", n.State)
			}
			stopped(t, s)
		})
	}
}

// TestPoolEscalates holds that a member whose policy says so takes the pool down, which
// comes back empty.
func TestPoolEscalates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pool := withPool(t, func(_, tmpl *supervision.Spec) { tmpl.Policy[core.Panic] = core.Reaction{Do: core.DoEscalate} })
		pool.Ensure("y", talker(&journal{}, "y").Start)
		s.Send(pool.Ensure("x", talker(&journal{}, "x").Start), step(boom))
		pass(time.Second)
		n := nodeAt(s, "root/pool")
		if n.State != core.Running || n.Generation != 2 || pool.Len() != 0 {
			t.Errorf("the pool is %v in generation %d with %d members", n.State, n.Generation, pool.Len())
		}
		if ref := pool.Ensure("x", talker(&journal{}, "x").Start); !s.Send(ref, "hello") {
			t.Error("the new pool takes no members")
		}
		stopped(t, s)
	})
}

// TestDrain holds for many seeds that every message is handled, part of a fault, or a dead
// letter: the sum is checked.
func TestDrain(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) { drainCase(t, rand.New(rand.NewPCG(seed, 3))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func drainCase(t *testing.T, rng *rand.Rand) {
	var handled, faulted, sent, refused atomic.Int64
	overflow := core.RejectNewest + core.Overflow(rng.IntN(3))
	limit := 1 + rng.IntN(20)
	s, pool := withPool(t, func(_, tmpl *supervision.Spec) {
		tmpl.Mailbox = core.Mailbox{Limit: limit, Overflow: overflow}
	})
	start := func() supervision.Handler {
		return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
			switch msg {
			case "work":
				handled.Add(1)
				time.Sleep(time.Millisecond)
			case "panic":
				faulted.Add(1)
				panic("boom")
			case "done":
				handled.Add(1)
				return supervision.ErrDone
			}
			return nil
		})
	}
	words := []string{"work", "work", "work", "work", "panic", "done"}
	for range 300 {
		id := fmt.Sprint(rng.IntN(3))
		ref := pool.Ensure(id, start)
		switch rng.IntN(20) {
		case 0:
			pool.Stop(id)
		case 1:
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		default:
			sent.Add(1)
			if !s.Send(ref, words[rng.IntN(len(words))]) {
				refused.Add(1)
			}
		}
	}
	stopped(t, s)
	dead := int64(s.DeadLetters())
	if got := handled.Load() + faulted.Load() + dead; got != sent.Load() {
		t.Errorf("%d sent, but %d handled + %d faulted + %d dead letters = %d", sent.Load(), handled.Load(), faulted.Load(), dead, got)
	}
	if refused.Load() > dead {
		t.Errorf("%d refused, %d dead letters", refused.Load(), dead)
	}
}

// TestOverflow holds the three overflow policies.
func TestOverflow(t *testing.T) {
	for overflow, want := range map[core.Overflow]string{core.RejectNewest: "[0 1 2]", core.DropOldest: "[7 8 9]", core.FaultOnOverflow: "[]"} {
		synctest.Test(t, func(t *testing.T) {
			s := newSystem(t)
			gate := make(chan struct{})
			got := []int{}
			child := spec("a", func() supervision.Handler {
				return supervision.HandlerFunc(func(_ supervision.Context, msg any) error {
					switch m := msg.(type) {
					case string:
						<-gate
					case int:
						got = append(got, m)
					}
					return nil
				})
			})
			child.Mailbox = core.Mailbox{Limit: 3, Overflow: overflow}
			must(t, s.Start(sup("root", core.OneForOne, child)))
			s.Send(s.Ref("root/a"), "wait")
			synctest.Wait()
			for i := range 10 {
				s.Send(s.Ref("root/a"), i)
			}
			close(gate)
			synctest.Wait()
			if fmt.Sprint(got) != want {
				t.Errorf("overflow policy %d: %v, want %s", overflow, got, want)
			}
			if faults := len(s.Faults().Recent()); (faults == 1) != (overflow == core.FaultOnOverflow) {
				t.Errorf("overflow policy %d: %d faults", overflow, faults)
			}
			stopped(t, s)
		})
	}
}

// TestCheck09_Bind holds that a taken port is a BindFailure that is retried, touches no sibling,
// and is served soon after it is free.
func TestCheck09_Bind(t *testing.T) {
	held, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := held.Addr().String()
	serving := make(chan struct{}, 1)
	port := spec("port", func() supervision.Handler {
		return serve.New(serve.Config{Network: "tcp", Addr: addr, Serve: acceptUntilEnd(serving)})
	})
	for k := range port.Policy {
		port.Policy[k].Backoff = core.Backoff{Initial: 10 * time.Millisecond, Factor: 2, Cap: 100 * time.Millisecond, Reset: time.Minute}
	}
	s := newSystem(t)
	root := sup("root", core.RestForOne, port, talker(&journal{}, "later"))
	root.Group.Intensity.Max = 1
	must(t, s.Start(root))
	waitFor(t, func() bool {
		return s.Faults().Counts()[supervision.FaultKey{Path: "root/port", Kind: core.BindFailure}] >= 4
	})
	must(t, held.Close())
	select {
	case <-serving:
	case <-time.After(5 * time.Second):
		t.Fatal("the freed port is not served")
	}
	if n := nodeAt(s, "root/later"); n.Generation != 1 {
		t.Errorf("the sibling is in generation %d", n.Generation)
	}
	stopped(t, s)
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited too long")
		}
	}
}
