package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// manifests are the keys of a simulation.
func manifests(n int) (keys []Key) {
	for i := range n {
		keys = append(keys, Key{Namespace: "ns", Name: fmt.Sprint("m", i)})
	}
	return keys
}

// upTo is a random time.
func upTo(k *harness.Kit, d time.Duration) time.Duration {
	return time.Duration(k.Rand().Int64N(int64(d)))
}

// works is a pass that takes a while or none, honours its context, sees late that its manifest is gone, and fails, conflicts or asks for
// more now and then.
func (w *world) works(k *harness.Kit) func(context.Context, Pass) Result {
	return func(ctx context.Context, p Pass) Result {
		if k.Rand().IntN(2) == 0 && w.clock.Sleep(ctx, upTo(k, 300*time.Millisecond)) != nil {
			return Result{Outcome: Failed, Err: context.Cause(ctx)}
		}
		if !w.Has(p.Key) {
			_ = w.clock.Sleep(ctx, upTo(k, 300*time.Millisecond))
			return Result{Outcome: Gone}
		}
		switch k.Rand().IntN(16) {
		case 0:
			return Result{Outcome: Failed, Err: errDown}
		case 1:
			return Result{Outcome: Conflicted}
		case 2:
			return Result{After: upTo(k, 3*time.Second)}
		}
		return Result{}
	}
}

// churn runs clients that do something over and over, at moments that fall between any two messages of the engine, and waits for their end.
func (w *world) churn(k *harness.Kit, clients, times int, act func()) {
	left := clients
	for i := range clients {
		k.Go(fmt.Sprint("client ", i), func(ctx context.Context) {
			for range times {
				act()
				_ = w.clock.Sleep(ctx, []time.Duration{0, 0, upTo(k, 12*time.Millisecond), time.Second, upTo(k, 3*time.Second)}[k.Rand().IntN(5)])
			}
			left--
		})
	}
	k.Await(time.Hour, func() bool { return left == 0 })
}

// edit changes, makes or removes a manifest, or loses the wake of a change and says so.
func (w *world) edit(k *harness.Kit, key Key) {
	switch k.Rand().IntN(8) {
	case 0, 1:
		w.del(key)
	case 2:
		w.change(key, k.Rand().IntN(2) == 0, false)
		w.loseWakes()
	default:
		w.put(key)
	}
}

// TestNoWakeIsLost changes, makes and removes manifests at random for a while, under a limit or none, and lets nothing but wakes bring
// passes about: neither resync nor fallback. In the end every change has been seen, and nothing is left of actors, messages or timers.
func TestNoWakeIsLost(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k.Clock())
		limit := k.Rand().IntN(4)
		e := New("test", w, w.hooks(), quiet(), Limits{Concurrency: limit})
		w.do(w.works(k))
		keys := manifests(4)
		inTree(k, e)
		w.churn(k, 3, 25, func() { w.edit(k, keys[k.Rand().IntN(len(keys))]) })
		w.do(nil)
		k.Advance(2 * time.Minute)
		w.settled(k, e)
		if limit > 0 && w.most > limit {
			k.Errorf("%d passes at a time, the limit is %d", w.most, limit)
		}
	}, harness.Seeds(simSeeds))
}

// TestNoWakeIsLostOverFaults is the same while passes panic and manifests, dispatcher, pool and group are restarted.
func TestNoWakeIsLostOverFaults(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		k.Allow("root/test/manifests/*", supervision.Panic)
		k.AllowDeadLetters()
		w := newWorld(k.Clock())
		e := New("test", w, w.hooks(), quiet(), Limits{Concurrency: k.Rand().IntN(3)})
		works := w.works(k)
		w.do(func(ctx context.Context, p Pass) Result {
			r := works(ctx, p)
			if k.Rand().IntN(15) == 0 {
				panic("for the test")
			}
			return r
		})
		keys := manifests(4)
		inTree(k, e)
		paths := []string{"/dispatcher", "/manifests", "", "/manifests/ns:m1", "/manifests/ns:m2"}
		w.churn(k, 2, 20, func() {
			w.edit(k, keys[k.Rand().IntN(len(keys))])
			if i := k.Rand().IntN(40); i < len(paths) {
				_ = k.System().Restart("root/test" + paths[i]) // there may be no such manifest at present
			}
		})
		w.do(nil)
		k.Advance(faultKept + 10*time.Minute)
		w.settled(k, e)
	}, harness.Seeds(simSeeds))
}

// TestALeaseIsRespected gives and takes the leases of manifests at random. No pass begins without, each that began ends, and whoever has the
// lease in the end has seen everything.
func TestALeaseIsRespected(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k.Clock())
		w.held = map[Key]bool{}
		e := New("test", w, w.hooks(), quiet(), Limits{Concurrency: k.Rand().IntN(3)})
		w.do(w.works(k))
		keys := manifests(4)
		inTree(k, e)
		w.churn(k, 3, 25, func() {
			key := keys[k.Rand().IntN(len(keys))]
			switch k.Rand().IntN(4) {
			case 0:
				w.hold(e, key, false)
			case 1:
				w.hold(e, key, true)
			default:
				w.edit(k, key)
			}
		})
		w.do(nil)
		k.Advance(2 * time.Minute)
		w.settled(k, e)
	}, harness.Seeds(simSeeds))
}
